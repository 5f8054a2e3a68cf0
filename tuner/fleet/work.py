"""A piece of work for a node and its outcome, exchanged as JSON, with scripts and artifacts as blobs."""

import base64
import hashlib
import json
import zlib
from dataclasses import dataclass, replace
from typing import Any, Final

from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, UsageError
from tuner.core.interfaces import Artifact, Effort, FinalTimes
from tuner.core.machine import Compiler, Roofline
from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.core.serialization import decode, encode
from tuner.runtime.workers.services import Evaluation
from tuner.version import __version__


def inflate(packed: bytes, limit_bytes: int) -> bytes:
    """Returns zlib data decompressed. Raises ValueError for damaged data and above ``limit_bytes``."""
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(packed, limit_bytes + 1)
    except zlib.error as error:
        raise ValueError(f"{error}: not zlib's format") from error
    if len(content) > limit_bytes:
        raise ValueError(f"found more than {limit_bytes} bytes once unpacked, allowed {limit_bytes}")
    if not stream.eof or stream.unused_data:
        raise ValueError("the content is cut off or goes on: not zlib's format")
    return content


def hash_of(blob: bytes) -> str:
    """Returns the SHA-256 of some bytes in hexadecimal, the name under which a fleet stores them."""
    return hashlib.sha256(blob).hexdigest()


def packed(artifact: Artifact) -> bytes:
    """Returns a compiled artifact as bytes to store: UTF-8 JSON, with machine code in base64."""
    program = artifact.program
    if program is not None:
        artifact = replace(artifact, program=replace(program, cubin=base64.b64encode(program.cubin)))
    return json.dumps(encode(artifact)).encode()


def unpacked(blob: bytes) -> Artifact:
    """Returns the artifact that ``packed`` wrote; raises UsageError for other JSON, else ValueError."""
    artifact = decode(Artifact, json.loads(blob), "artifact")
    program = artifact.program
    if program is None:
        return artifact
    return replace(artifact, program=replace(program, cubin=base64.b64decode(program.cubin)))


def require_hash(sha256: str, blob: bytes) -> bytes:
    """Returns ``blob`` unchanged. Raises UsageError where its SHA-256 differs from ``sha256``."""
    if hash_of(blob) != sha256:
        raise UsageError(f"fleet: blob {sha256[:12]}: its content does not match its hash")
    return blob


COMPILE: Final = "compile"  # stages of work
EVALUATE: Final = "evaluate"
REMEASURE: Final = "remeasure"
BASELINE: Final = "baseline"
ROOFLINE: Final = "roofline"
HASH_DIGITS: Final = 12  # of the hashes in names of queues

Key = tuple[str, int, str]  # run, number, stage


@dataclass(frozen=True)
class FleetWork:
    """A piece of work for a node: one stage (compile, evaluate, remeasure, ...) of a trial or of a run."""

    run: str  # uuid
    number: int  # of the trial; negative: work outside of trials
    stage: str
    compiler_build: str  # compiler build of the run: compiler_build_of
    machine: str  # Machine.name
    problem: Problem
    target: TargetName
    threads: int
    seed: int
    blobs: tuple[str, ...] = ()  # hashes of the script, or of the artifacts
    effort: Effort = Effort()
    slowest_s: float | None = None  # of a call, where it is known: a call that takes much longer hangs
    has_baseline: bool = False  # the baseline is timed interleaved with the artifacts

    @property
    def key(self) -> Key:
        return (self.run, self.number, self.stage)

    @property
    def text(self) -> str:
        return f"{self.stage} of trial {self.number}" if self.number >= 0 else self.stage


@dataclass(frozen=True)
class Compiled:
    """The outcome of a compilation without an error: hashes of the artifact, and whether it was refused."""

    blob: str  # hash of the packed artifact
    artifact_sha256: str
    is_refused: bool  # the artifact was refused and cannot be loaded


@dataclass(frozen=True)
class Outcome:
    """The outcome of a piece of work: a value, or a Failure in place of it, and the seconds that it took.

    A Failure is the candidate's, or says that no node could do the work.
    """

    value: Compiled | Evaluation | FinalTimes | Baseline | Roofline | Failure
    seconds: float  # that the work took


def to_json(value: FleetWork | Outcome) -> dict[str, Any]:
    """Returns a piece of work or an outcome as a JSON object."""
    fields: dict[str, Any] = encode(value)
    return fields


def work_from_json(found: Any) -> FleetWork:
    """Returns the piece of work of a JSON object. Raises UsageError if it does not fit ``FleetWork``."""
    return decode(FleetWork, found, "work")


def outcome_from_json(found: Any) -> Outcome:
    """Returns the outcome of a JSON object; raises UsageError for one that does not fit ``Outcome``."""
    return decode(Outcome, found, "outcome")


def compiler_build_of(compiler: Compiler) -> str:
    """Names a compiler build by tuner and compiler: equal texts, equal code."""
    return f"tuner {__version__}, {compiler.fingerprint}"


@dataclass(frozen=True)
class Service:
    """A job queue that a node serves, and how many of its jobs the node does at once."""

    queue: str
    at_once: int  # jobs


def compile_queue(compiler_build: str) -> str:
    """Returns the name of the job queue of all nodes that compile with one compiler build."""
    return f"compile:{_digits(compiler_build)}"


def measure_queue(machine: str, device: str) -> str:
    """Returns the name of the queue of one device, of whose jobs the fleet does one at a time."""
    return f"measure:{_digits(machine)}:{_digits(device)}"


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]
