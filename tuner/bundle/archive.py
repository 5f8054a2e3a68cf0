"""Reads and writes a bundle: a zip file with a manifest, and texts and machine code named by their hash.

See docs/reference/json-documents.md.
"""

import datetime
import hashlib
import io
import json
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, final

from tuner.core.dataclass_json import decode, encode, parsed, require_format
from tuner.core.errors import UsageError
from tuner.core.pending_trial import PendingTrial

FORMAT: Final = "tuner-bundle"
VERSION: Final = 1
MANIFEST: Final = "manifest.json"
MANIFEST_HASH: Final = "manifest.sha256"  # SHA-256 of the manifest's bytes, in hexadecimal
MANIFEST_LIMIT_BYTES: Final = 64 << 20  # unpacked; contains hashes in place of texts and machine code
BLOBS: Final = "blobs/"
LIMIT_BYTES: Final = 64 << 20  # of one part, unpacked: a file that claims more was not written by the tuner
BUNDLE_LIMIT_BYTES: Final = 4 << 30  # of all parts, unpacked
COMPRESSIONS: Final = (
    zipfile.ZIP_STORED,
    zipfile.ZIP_DEFLATED,
)  # written by the tuner; other methods are not read
CHECK: Final = {  # for readers; the numbers are in tuner/payload/reference.py
    "inputs": "numpy default_rng(seed + place in trials): standard normal, rounded to the dtype; for every "
    "check, rows of A and columns of B times fresh signed powers of two",
    "reference": "float64 product; rows of problems above 2**40 flop",
    "tolerance": "16 roundings of the type of the sums times |row of A| |column of B|, plus that of the "
    "epilogue and of a narrow C",
}


@dataclass(frozen=True)
class Bundle:
    """The content of a bundle file: compiled candidates that still have to be timed on a GPU.

    An export lists the candidates of each problem together, the most promising first. ``seed`` is that of the
    inputs on which they are verified.
    """

    sha256: str  # of the manifest, which contains the hash of every other part
    created: datetime.datetime  # UTC
    tuner: str  # version
    seed: int  # of the inputs that candidates are verified on
    trials: tuple[PendingTrial, ...]


def pack(trials: tuple[PendingTrial, ...], seed: int, tuner: str, created: datetime.datetime) -> bytes:
    """Returns a bundle of compiled trials, as the bytes of a zip file.

    ``seed`` is that of the inputs on which the candidates will be verified, ``tuner`` the version that
    exports. The trials keep their order.
    """
    blobs: dict[str, bytes] = {}
    entries = [_entry(trial, blobs) for trial in trials]
    head = {"format": FORMAT, "version": VERSION, "created": encode(created), "tuner": tuner}
    manifest = {**head, "seed": seed, "check": CHECK, "trials": entries}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        text = json.dumps(manifest, indent=1)
        archive.writestr(zipfile.ZipInfo(MANIFEST), text, zipfile.ZIP_DEFLATED)
        archive.writestr(zipfile.ZipInfo(MANIFEST_HASH), hashlib.sha256(text.encode()).hexdigest())
        for name, content in sorted(blobs.items()):
            archive.writestr(zipfile.ZipInfo(BLOBS + name), content, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def read_bundle(path: Path) -> Bundle:
    """Reads a bundle file and checks the hashes of its manifest and of each part that its trials need.

    Raises UsageError for a file that cannot be read, is truncated, altered, no bundle, or of another version.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(path, archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise UsageError(f"{path}: is not a whole bundle of {FORMAT} ({error})") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error}), expected a bundle") from error


def _read(path: Path, archive: zipfile.ZipFile) -> Bundle:
    _require_size(path, archive)
    content = _part(path, archive, MANIFEST, MANIFEST_LIMIT_BYTES)
    manifest = parsed(content, f"{path}: {MANIFEST}")
    require_format(manifest, FORMAT, VERSION, f"{path}")
    digest = hashlib.sha256(content).hexdigest()
    if _part(path, archive, MANIFEST_HASH, len(digest)) != digest.encode():
        raise UsageError(f"{path}: {MANIFEST}: was altered after the export")
    entries = manifest.get("trials")
    if not isinstance(entries, list):
        raise UsageError(f"{path}: {MANIFEST}: trials: is empty")
    seed = decode(int, manifest.get("seed"), f"{path}: seed")
    if seed < 0:
        raise UsageError(f"{path}: seed: found {seed}, allowed 0 or more")
    blobs = _Blobs(path, archive)
    trials = tuple(_trial(blobs, entry, f"{path}: trials[{number}]") for number, entry in enumerate(entries))
    return Bundle(
        digest,
        decode(datetime.datetime, manifest.get("created"), f"{path}: created"),
        decode(str, manifest.get("tuner"), f"{path}: tuner"),
        seed,
        trials,
    )


def _entry(trial: PendingTrial, blobs: dict[str, bytes]) -> Any:
    """Returns a trial as JSON, with hashes in place of texts and machine code, which go to ``blobs``."""

    def kept(content: bytes) -> str:
        name = hashlib.sha256(content).hexdigest() if content else ""
        if name:
            blobs[name] = content
        return name

    program = trial.program
    named = replace(program, ptx=kept(program.ptx.encode()), cubin=kept(program.cubin).encode())
    return encode(replace(trial, script_text=kept(trial.script_text.encode()), program=named))


def _trial(blobs: "_Blobs", entry: Any, place: str) -> PendingTrial:
    """Returns a trial with texts and machine code in place of their hashes. Raises UsageError."""
    trial = decode(PendingTrial, entry, place)
    named = trial.program
    try:
        ptx, script = blobs.text(named.ptx, place), blobs.text(trial.script_text, place)
    except UnicodeDecodeError as error:
        raise UsageError(f"{place}: found PTX or a script that is no text: {error}") from error
    if hashlib.sha256(script.encode()).hexdigest() != trial.script_sha256:
        raise UsageError(f"{place}: found a script of another hash than {trial.script_sha256[:12]}")
    program = replace(named, ptx=ptx, cubin=blobs.content(named.cubin.decode(), place))
    return replace(trial, script_text=script, program=program)


@final
class _Blobs:
    """The parts that trials refer to by hash; a part that several trials share is in memory once."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path = path
        self._archive = archive
        self._contents: dict[str, bytes] = {"": b""}
        self._texts: dict[str, str] = {}

    def content(self, name: str, place: str) -> bytes:
        """Returns the part with hash ``name``. Raises UsageError for content with another hash."""
        if name not in self._contents:
            content = _part(self._path, self._archive, BLOBS + name, LIMIT_BYTES)
            if hashlib.sha256(content).hexdigest() != name:
                raise UsageError(f"{place}: {BLOBS}{name[:12]}... was altered after the export")
            self._contents[name] = content
        return self._contents[name]

    def text(self, name: str, place: str) -> str:
        """Returns the part with hash ``name`` as text. Raises UnicodeDecodeError for other bytes."""
        if name not in self._texts:
            self._texts[name] = self.content(name, place).decode()
        return self._texts[name]


def _require_size(path: Path, archive: zipfile.ZipFile) -> None:
    """Raises UsageError if the parts' claimed sizes exceed the limit; no part is read beyond its claim."""
    claimed = sum(part.file_size for part in archive.infolist())
    if claimed > BUNDLE_LIMIT_BYTES:
        raise UsageError(f"{path}: found {claimed} bytes once unpacked, allowed {BUNDLE_LIMIT_BYTES}")


def _part(path: Path, archive: zipfile.ZipFile, name: str, limit_bytes: int) -> bytes:
    try:
        part = archive.getinfo(name)
    except KeyError as error:
        raise UsageError(f"{path}: {name[:40]} is missing: not a file of {FORMAT}") from error
    if part.file_size > limit_bytes:
        raise UsageError(f"{path}: {name[:40]}: found {part.file_size} bytes, allowed {limit_bytes}")
    if part.compress_type not in COMPRESSIONS:
        raise UsageError(f"{path}: {name[:40]}: found compression {part.compress_type}, allowed 0 and 8")
    with archive.open(part) as unpacking:
        return unpacking.read(part.file_size + 1)  # without a limit it unpacks all, whatever the claimed size
