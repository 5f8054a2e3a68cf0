"""Reads and writes bundles: files that carry compiled candidates to a machine with a GPU.

A bundle is a zip file: a manifest in JSON, and scripts and machine code named by their hash. See
docs/reference/json-documents.md.
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

from tuner.core.errors import UsageError
from tuner.core.remote_results import PendingTrial
from tuner.core.serialization import decode, encode, parsed, require_format
from tuner.core.text_files import unreadable

BUNDLE_FORMAT: Final = "tuner-bundle"
BUNDLE_VERSION: Final = 3  # 3: code as text and binary
MANIFEST: Final = "manifest.json"
MANIFEST_HASH: Final = "manifest.sha256"  # SHA-256 of the manifest's bytes, in hexadecimal
MANIFEST_LIMIT_BYTES: Final = 64 << 20  # unpacked; contains hashes in place of texts and machine code
BLOBS: Final = "blobs/"
LIMIT_BYTES: Final = 64 << 20  # of one part, unpacked: a file that claims more was not written by the tuner
BUNDLE_LIMIT_BYTES: Final = 4 << 30  # of all parts, unpacked
COMPRESSIONS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # that tuner writes; others are not read
CHECK: Final = {  # for readers; the numbers are in tuner/payload/drawing.py and reference.py
    "inputs": "numpy default_rng(seed + index in trials): standard normal, rounded to the dtype; for every "
    "check, rows of A and columns of B times fresh signed powers of two",
    "reference": "float64 product; rows of problems above 2**40 flop",
    "tolerance": "16 roundings of the type of the sums times |row of A| |column of B|, plus that of the "
    "epilogue and of a narrow C",
}


@dataclass(frozen=True)
class Bundle:
    """Compiled candidates for a GPU, in the order in which they were exported."""

    sha256: str  # of the manifest, which contains the hash of every other part
    created: datetime.datetime  # UTC
    tuner: str  # version
    seed: int  # of the inputs that candidates are verified on
    trials: tuple[PendingTrial, ...]


def pack(trials: tuple[PendingTrial, ...], seed: int, tuner: str, created: datetime.datetime) -> bytes:
    """Returns the bytes of a bundle of ``trials``, in their order.

    ``seed``: of the inputs that candidates are verified on; ``tuner``: version that exports; ``created``:
    UTC.
    """
    blobs: dict[str, bytes] = {}

    def kept(content: bytes) -> str:
        name = hashlib.sha256(content).hexdigest() if content else ""
        if name:
            blobs[name] = content
        return name

    entries = []
    for trial in trials:
        program = trial.program
        named = replace(program, text=kept(program.text.encode()), binary=kept(program.binary).encode())
        entries.append(encode(replace(trial, script_text=kept(trial.script_text.encode()), program=named)))
    head = {"format": BUNDLE_FORMAT, "version": BUNDLE_VERSION, "created": encode(created), "tuner": tuner}
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
    """Reads a bundle and checks its hashes.

    Raises UsageError for a file that is unreadable, not a bundle, of another version, too large or altered.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(path, archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise UsageError(f"{path}: is not a whole bundle of {BUNDLE_FORMAT} ({error})") from error
    except OSError as error:
        raise unreadable(path, error, "a bundle") from error


def _read(path: Path, archive: zipfile.ZipFile) -> Bundle:
    claimed = sum(part.file_size for part in archive.infolist())
    if claimed > BUNDLE_LIMIT_BYTES:
        raise UsageError(f"{path}: found {claimed} bytes once unpacked, allowed {BUNDLE_LIMIT_BYTES}")
    content = _part(path, archive, MANIFEST, MANIFEST_LIMIT_BYTES)
    manifest = parsed(content, f"{path}: {MANIFEST}")
    require_format(manifest, BUNDLE_FORMAT, BUNDLE_VERSION, f"{path}")
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
    trials = tuple(_trial(blobs, entry, f"{path}: trials[{index}]") for index, entry in enumerate(entries))
    return Bundle(
        digest,
        decode(datetime.datetime, manifest.get("created"), f"{path}: created"),
        decode(str, manifest.get("tuner"), f"{path}: tuner"),
        seed,
        trials,
    )


def _trial(blobs: "_Blobs", entry: Any, where: str) -> PendingTrial:
    trial = decode(PendingTrial, entry, where)
    named = trial.program
    try:
        ptx = blobs.text(named.text, where)
        script = blobs.text(trial.script_text, where)
    except UnicodeDecodeError as error:
        raise UsageError(f"{where}: found code or a script that is not text: {error}") from error
    if hashlib.sha256(script.encode()).hexdigest() != trial.script_sha256:
        raise UsageError(f"{where}: found a script of another hash than {trial.script_sha256[:12]}")
    program = replace(named, text=ptx, binary=blobs.content(named.binary.decode(), where))
    return replace(trial, script_text=script, program=program)


@final
class _Blobs:
    """The contents in a bundle by their hashes, each in memory once; several trials may share one."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path = path
        self._archive = archive
        self._contents: dict[str, bytes] = {"": b""}
        self._texts: dict[str, str] = {}

    def content(self, name: str, where: str) -> bytes:
        if name not in self._contents:
            content = _part(self._path, self._archive, BLOBS + name, LIMIT_BYTES)
            if hashlib.sha256(content).hexdigest() != name:
                raise UsageError(f"{where}: {BLOBS}{name[:12]}... was altered after the export")
            self._contents[name] = content
        return self._contents[name]

    def text(self, name: str, where: str) -> str:
        if name not in self._texts:
            self._texts[name] = self.content(name, where).decode()
        return self._texts[name]


def _part(path: Path, archive: zipfile.ZipFile, name: str, limit_bytes: int) -> bytes:
    try:
        part = archive.getinfo(name)
    except KeyError as error:
        raise UsageError(f"{path}: {name[:40]} is missing: not a file of {BUNDLE_FORMAT}") from error
    if part.file_size > limit_bytes:
        raise UsageError(f"{path}: {name[:40]}: found {part.file_size} bytes, allowed {limit_bytes}")
    if part.compress_type not in COMPRESSIONS:
        raise UsageError(f"{path}: {name[:40]}: found compression {part.compress_type}, allowed 0 and 8")
    with archive.open(part) as unpacking:
        return unpacking.read(part.file_size + 1)  # without a limit it unpacks all, whatever the claimed size
