"""The file of a gate: candidates with the code that they were compiled to, and what that took."""

import base64
import binascii
import datetime
import json
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tuner.core.candidate import Candidate
from tuner.core.dataclass_json import decode, encode
from tuner.core.errors import UsageError
from tuner.core.kernel_program import KernelProgram
from tuner.core.problem import Problem
from tuner.core.record import Measurement
from tuner.core.target import Artifact, Panel
from tuner.core.target_name import TargetName
from tuner.core.text_file import read_text

FORMAT: Final = "tuner-gate"
VERSION: Final = 1
FILE_LIMIT_BYTES: Final = 256 << 20
CODE_LIMIT_BYTES: Final = 64 << 20  # of one entry, unpacked


@dataclass(frozen=True)
class GateEntry:
    """One candidate as it was."""

    problem: Problem
    target: TargetName
    threads: int
    strategy: str  # as a run's settings name it
    candidate: Candidate
    script_sha256: str
    artifact: Artifact
    measurement: Measurement
    machine: str  # Machine.name
    mlir: str  # LLVM that made the code, and on CPUs the machine code of it
    compiler: str  # Compiler.fingerprint

    @property
    def key(self) -> str:
        """Returns what names an entry: a file has one of each."""
        threads = f" {self.threads} threads" if self.threads > 1 else ""
        return f"{self.problem.key} {self.target.text}{threads}"


@dataclass(frozen=True)
class GateFile:
    """The entries of a file."""

    created: datetime.datetime
    tuner: str  # version
    entries: tuple[GateEntry, ...]

    def with_entries(self, entries: tuple[GateEntry, ...]) -> "GateFile":
        """Returns the file with entries added, or put in the place of earlier ones of their key."""
        by_key = {entry.key: entry for entry in (*self.entries, *entries)}
        return replace(self, entries=tuple(by_key.values()))


@dataclass(frozen=True)
class _Stored:
    """An entry as JSON has it: code packed."""

    problem: Problem
    target: TargetName
    threads: int
    strategy: str
    candidate: Candidate
    script_sha256: str
    artifact_sha256: str
    code: bytes
    panels: tuple[Panel, ...]
    program: KernelProgram | None
    measurement: Measurement
    machine: str
    mlir: str
    compiler: str


def gate_file_bytes(file: GateFile) -> bytes:
    """Returns the file."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "created": encode(file.created),
        "tuner": file.tuner,
        "entries": [encode(_stored(entry)) for entry in file.entries],
    }
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def read_gate_file(path: Path) -> GateFile:
    """Reads a file. Raises UsageError with the place of what does not fit."""
    try:
        document = json.loads(read_text(path, "a file of tuner gate", FILE_LIMIT_BYTES))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: found no JSON ({error}), allowed a file of tuner gate") from error
    head = document if isinstance(document, dict) else {}
    found = (head.get("format"), head.get("version"))
    if found != (FORMAT, VERSION):
        raise UsageError(f"{path}: found format and version {found}, allowed {(FORMAT, VERSION)}")
    entries = head.get("entries")
    if not isinstance(entries, list) or not entries:
        raise UsageError(f"{path}: entries: found none, allowed a list of one or more")
    return GateFile(
        decode(datetime.datetime, head.get("created"), f"{path}: created"),
        decode(str, head.get("tuner"), f"{path}: tuner"),
        tuple(_entry(each, f"{path}: entries[{number}]") for number, each in enumerate(entries)),
    )


def _stored(entry: GateEntry) -> _Stored:
    artifact, program = entry.artifact, entry.artifact.program
    return _Stored(
        entry.problem,
        entry.target,
        entry.threads,
        entry.strategy,
        entry.candidate,
        entry.script_sha256,
        artifact.sha256,
        _packed(artifact.code.encode()),
        artifact.panels,
        None if program is None else replace(program, ptx="", cubin=_packed(program.cubin)),
        entry.measurement,
        entry.machine,
        entry.mlir,
        entry.compiler,
    )


def _entry(found: Any, place: str) -> GateEntry:
    stored = decode(_Stored, found, place)
    try:
        code = _unpacked(stored.code, f"{place}.code").decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{place}.code: found bytes that are no text, allowed code") from error
    program = stored.program
    if program is not None:
        program = replace(program, ptx=code, cubin=_unpacked(program.cubin, f"{place}.program.cubin"))
    return GateEntry(
        stored.problem,
        stored.target,
        stored.threads,
        stored.strategy,
        stored.candidate,
        stored.script_sha256,
        Artifact(code, stored.artifact_sha256, stored.panels, program=program),
        stored.measurement,
        stored.machine,
        stored.mlir,
        stored.compiler,
    )


def _packed(content: bytes) -> bytes:
    return base64.b64encode(zlib.compress(content, 9))


def _unpacked(packed: bytes, place: str) -> bytes:
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(base64.b64decode(packed, validate=True), CODE_LIMIT_BYTES)
    except (binascii.Error, zlib.error) as error:
        raise UsageError(f"{place}: found damaged code ({error}), allowed what tuner gate wrote") from error
    if not unpacking.eof:
        raise UsageError(f"{place}: found code cut off or above {CODE_LIMIT_BYTES} bytes, allowed it whole")
    return content
