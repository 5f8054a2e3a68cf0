"""The file of a gate: candidates with their compiled code and its times."""

import base64
import binascii
import datetime
import json
import zlib
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Final

from tuner.core.candidate import Candidate
from tuner.core.chosen_strategy import ChosenStrategy
from tuner.core.dataclass_json import decode, encode, form, parsed, require_format
from tuner.core.documents import with_alignment
from tuner.core.errors import UsageError
from tuner.core.kernel_program import KernelProgram
from tuner.core.problem import Problem
from tuner.core.record import Measurement
from tuner.core.target import Artifact, Partition
from tuner.core.target_name import TargetName
from tuner.core.text_file import read_text

FORMAT: Final = "tuner-gate"
VERSION: Final = 1
FILE_LIMIT_BYTES: Final = 256 << 20
CODE_LIMIT_BYTES: Final = 64 << 20  # of one entry, unpacked


@dataclass(frozen=True)
class _Code:
    """The artifact of an entry in JSON: code compressed, in base64."""

    artifact_sha256: str
    code: bytes
    panels: tuple[Partition, ...]  # thread partitions; gate files have this key
    program: KernelProgram | None  # its cubin compressed; its PTX is ``code``


def _packed_code(artifact: Artifact) -> _Code:
    program = artifact.program
    if program is not None:
        program = replace(program, ptx="", cubin=_packed(program.cubin))
    return _Code(artifact.sha256, _packed(artifact.code.encode()), artifact.partitions, program)


def _artifact(stored: _Code) -> Artifact:
    try:
        code = _unpacked(stored.code, "code").decode()
    except UnicodeDecodeError as error:
        raise UsageError("code: is not text") from error
    program = stored.program
    if program is not None:
        program = replace(program, ptx=code, cubin=_unpacked(program.cubin, "program.cubin"))
    return Artifact("" if program else code, stored.artifact_sha256, stored.panels, program=program)


@dataclass(frozen=True)
class GateEntry:
    """One candidate of a gate file, with its recorded code, time, machine and compiler."""

    problem: Problem
    target: TargetName
    threads: int
    strategy: ChosenStrategy = field(metadata=form(str, attrgetter("text"), ChosenStrategy.parse))
    candidate: Candidate
    script_sha256: str
    artifact: Artifact = field(metadata=form(_Code, _packed_code, _artifact, is_flat=True))
    measurement: Measurement
    machine: str  # Machine.name
    mlir: str  # version of the LLVM that generated the code, and on CPUs its machine code
    compiler: str  # Compiler.fingerprint

    @property
    def key(self) -> str:
        """Returns the text that identifies an entry in its file: problem, target, number of threads."""
        threads = f" {self.threads} threads" if self.threads > 1 else ""
        return f"{self.problem.key} {self.target.text}{threads}"


@dataclass(frozen=True)
class GateFile:
    """The content of a gate file: candidates whose speed is checked with later compilers."""

    created: datetime.datetime
    tuner: str  # version
    entries: tuple[GateEntry, ...]

    def with_entries(self, entries: tuple[GateEntry, ...]) -> "GateFile":
        """Returns a copy of the file with entries added; each replaces an earlier entry of the same key."""
        by_key = {entry.key: entry for entry in (*self.entries, *entries)}
        return replace(self, entries=tuple(by_key.values()))


def gate_file_bytes(file: GateFile) -> bytes:
    """Returns the content of a gate file as JSON in UTF-8; ``read_gate_file`` reads it."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "created": encode(file.created),
        "tuner": file.tuner,
        "entries": [encode(entry) for entry in file.entries],
    }
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def read_gate_file(path: Path) -> GateFile:
    """Reads a gate file. Raises UsageError for an unreadable file, an empty one and wrong values.

    The message names the place of the first wrong value.
    """
    head = parsed(read_text(path, "a file of tuner gate", FILE_LIMIT_BYTES), f"{path}")
    require_format(head, FORMAT, VERSION, f"{path}")
    entries = head.get("entries")
    if not isinstance(entries, list) or not entries:
        raise UsageError(f"{path}: entries: is empty")
    return GateFile(
        decode(datetime.datetime, head.get("created"), f"{path}: created"),
        decode(str, head.get("tuner"), f"{path}: tuner"),
        tuple(
            decode(GateEntry, with_alignment(each), f"{path}: entries[{place}]")
            for place, each in enumerate(entries)
        ),
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
