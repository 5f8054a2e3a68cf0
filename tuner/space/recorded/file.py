"""A file of recorded results: read, uncompressed, and parsed as JSON, in either format."""

import contextlib
import gzip
import hashlib
import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuner.core.errors import UsageError

BYTES_LIMIT = 1 << 30  # uncompressed
GZIP_MAGIC = b"\x1f\x8b"
OPEN_ENDS = ("", "}", "}}")  # endings that a file may lack
LONE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # or one of a pair: UTF-8 encodes neither alone
SUFFIXES = (".gz", ".json", ".t4")


@dataclass(frozen=True)
class RecordedFile:
    """A file of recorded tuning results: its name, its hash and its JSON document."""

    name: str  # without folder and suffixes
    sha256: str  # of the bytes on disk
    document: dict[str, Any]


def open_recorded(path: Path) -> RecordedFile:
    """Reads a file of recorded results, JSON that may be compressed by gzip.

    Also reads an unfinished cache of Kernel Tuner, whose closing brackets are missing. Raises UsageError for
    a file that cannot be read, exceeds 1 GiB or is no JSON object.
    """
    try:
        with path.open("rb") as file:
            content = _limited(path, file.read(BYTES_LIMIT + 1))  # a device may be endless
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    document = _parsed(path, _unpacked(path, content))
    if not isinstance(document, dict):
        raise UsageError(f"{path}: is JSON but no object; allowed are T4 or a Kernel Tuner cache")
    return RecordedFile(name_of(path), hashlib.sha256(content).hexdigest(), document)


def name_of(path: Path) -> str:
    """Returns the name of a recording: the file's name without folder, ``.gz``, ``.json`` and ``.t4``."""
    name = path.name
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return printable(" ".join(name.split()))


def printable(text: str) -> str:
    """Returns the text with unprintable characters, which could control a terminal, escaped.

    Line breaks are kept.
    """
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def _unpacked(path: Path, content: bytes) -> bytes:
    if not content.startswith(GZIP_MAGIC):
        return content
    try:
        with gzip.open(path) as file:
            return _limited(path, file.read(BYTES_LIMIT + 1))
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path}: damaged gzip ({error})") from None


def _limited(path: Path, content: bytes) -> bytes:
    if len(content) > BYTES_LIMIT:
        raise UsageError(f"{path}: found more than {BYTES_LIMIT} bytes, allowed {BYTES_LIMIT}")
    return content


def _parsed(path: Path, content: bytes) -> object:
    try:
        text = content.decode().rstrip()
        document = _loads(text)
        if LONE_SURROGATE.search(text):
            json.dumps(document, ensure_ascii=False).encode()
        return document
    except UnicodeEncodeError:
        raise UsageError(f"{path}: half of a surrogate pair, which UTF-8 cannot write") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is not JSON ({error}), allowed T4 or a Kernel Tuner cache") from None


def _loads(text: str) -> object:
    """Parses JSON, also an unfinished cache of Kernel Tuner, whose closing brackets are missing."""
    for ending in OPEN_ENDS:
        with contextlib.suppress(json.JSONDecodeError):
            return json.loads(text.rstrip(",") + ending)
    return json.loads(text)
