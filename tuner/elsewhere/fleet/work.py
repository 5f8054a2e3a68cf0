"""A piece of work for a node and its outcome, exchanged as JSON with blobs, and checks of outcomes.

``FleetWork`` is what a driver queues, ``Outcome`` what a node reports. Functions named ``admitted...`` accept
or refuse what a node, which is not trusted, has stored.
"""

import base64
import hashlib
import json
import math
import zlib
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Refusal, UsageError
from tuner.core.interfaces import Artifact, Effort, FinalTimes
from tuner.core.plausibility import MOST_S, why_impossible, why_no_baseline, why_no_verdict
from tuner.core.problem import Problem
from tuner.core.problem_documents import PROBLEM
from tuner.core.records import Measurement, Verdict
from tuner.core.roofline import Roofline, why_no_roofline
from tuner.core.runs import Baseline, Compiler
from tuner.core.serialization import decode, encode, if_changed
from tuner.runtime.workers.protocol import Reply
from tuner.version import __version__

COMPILE: Final = "compile"  # stages of work
EVALUATE: Final = "evaluate"
REMEASURE: Final = "remeasure"
BASELINE: Final = "baseline"
ROOFLINE: Final = "roofline"
HASH_DIGITS: Final = 12  # of the hashes in names of queues
Key = tuple[str, int, str]  # run, number, stage


def inflate(packed: bytes, limit_bytes: int) -> bytes:
    """Returns zlib data decompressed.

    Raises ValueError for damaged data, and for more than ``limit_bytes`` once unpacked.
    """
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
    """Returns the SHA-256 of some bytes in hexadecimal, under which a fleet stores them."""
    return hashlib.sha256(blob).hexdigest()


def packed(artifact: Artifact) -> bytes:
    """Returns an artifact as bytes to store: JSON in UTF-8, with machine code in base64."""
    code = replace(artifact.code, binary=base64.b64encode(artifact.code.binary))
    return json.dumps(encode(replace(artifact, code=code))).encode()


def unpacked(blob: bytes) -> Artifact:
    """Returns the artifact of bytes that ``packed`` made.

    Raises UsageError for JSON of another form, ValueError for bytes that are not JSON.
    """
    artifact = decode(Artifact, json.loads(blob), "artifact")
    code = replace(artifact.code, binary=base64.b64decode(artifact.code.binary))
    return replace(artifact, code=code)


def require_hash(sha256: str, blob: bytes) -> bytes:
    """Returns ``blob``. Raises UsageError if its SHA-256 is not ``sha256``."""
    if hash_of(blob) != sha256:
        raise UsageError(f"fleet: blob {sha256[:12]}: its content does not match its hash")
    return blob


@dataclass(frozen=True)
class FleetWork:
    """A piece of work for a node: one stage (COMPILE, EVALUATE, REMEASURE, ...) of a trial or of a run."""

    run: str  # uuid
    number: int  # of the trial; negative: work outside of trials
    stage: str
    compiler_build: str  # compiler build of the run: compiler_build_of
    machine: str  # Machine.name
    problem: Problem = field(metadata=PROBLEM)
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
        if self.number >= 0:
            return f"{self.stage} of trial {self.number}"
        return self.stage


@dataclass(frozen=True)
class Compiled:
    """The outcome of a successful compilation: hashes of the artifact, and whether it cannot be loaded."""

    blob: str  # hash of the packed artifact
    artifact_sha256: str
    is_refused: bool  # the artifact was refused and cannot be loaded


@dataclass(frozen=True)
class Outcome:
    """The outcome of a piece of work: a value, or a Failure in place of it, and the seconds it took.

    A Failure is the candidate's, or says that no node could do the work. Of an evaluation the value is a
    Measurement or, without a clock, a Verdict.
    """

    value: Compiled | Measurement | Verdict | FinalTimes | Baseline | Roofline | Failure
    seconds: float  # that the work took
    verdict: Verdict | None = field(default=None, metadata=if_changed())  # in addition to a Measurement
    stage_s: tuple[tuple[str, float], ...] = field(default=(), metadata=if_changed())  # of an evaluation

    @property
    def reply(self) -> Reply:
        """Returns the outcome as the child process of the node has sent it."""
        return Reply(self.value, self.seconds, verdict=self.verdict, stage_s=self.stage_s)


def to_json(value: FleetWork | Outcome) -> dict[str, Any]:
    """Returns a piece of work or an outcome as a JSON object."""
    fields: dict[str, Any] = encode(value)
    return fields


def work_from_json(document: Any) -> FleetWork:
    """Returns the piece of work of a JSON object. Raises UsageError for a JSON object of another form."""
    return decode(FleetWork, document, "work")


def outcome_from_json(document: Any) -> Outcome:
    """Returns the outcome of a JSON object. Raises UsageError for a JSON object of another form."""
    return decode(Outcome, document, "outcome")


def compiler_build_of(compiler: Compiler) -> str:
    """Returns the name of a compiler build, of tuner and compiler: equal names mean equal generated code."""
    return f"tuner {__version__}, {compiler.fingerprint}"


@dataclass(frozen=True)
class Service:
    """A job queue that a node serves, and how many of its jobs the node does at once."""

    queue: str
    at_once: int  # jobs


def compile_queue(compiler_build: str) -> str:
    """Returns the name of the job queue for all nodes that compile with this compiler build."""
    return f"compile:{_digits(compiler_build)}"


def measure_queue(machine: str, device: str) -> str:
    """Returns the name of the job queue of one device, whose jobs are done one at a time."""
    return f"measure:{_digits(machine)}:{_digits(device)}"


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


# Validation of what nodes report: a report that cannot be the outcome of its work is refused.

OUTCOME_TYPES: Final[dict[str, tuple[type[Any], ...]]] = {
    COMPILE: (Compiled,),
    EVALUATE: (Measurement, Verdict),
    REMEASURE: (FinalTimes,),
    BASELINE: (Baseline,),
    ROOFLINE: (Roofline,),
}


def admitted(work: FleetWork, report: str | None, limit_flop_per_s: float = math.inf) -> Outcome:
    """Checks a node's JSON report on a piece of work; returns the outcome.

    ``report`` None: it was larger than the limit. Raises UsageError for None, for another form or stage, and
    for impossible numbers, such as speeds above ``limit_flop_per_s``.
    """
    if report is None:
        raise UsageError("the outcome is larger than the limit")
    try:
        outcome = outcome_from_json(json.loads(report))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"found an outcome that is not JSON ({type(error).__name__})") from error
    why = _why_refused(work, outcome, limit_flop_per_s)
    if why is not None:
        raise UsageError(why.text)
    return outcome


def admitted_artifact(compiled: Compiled, blob: bytes | None) -> Artifact:
    """Returns the artifact that a node packed into ``blob``, if it is the one that the node reported.

    ``compiled``: the report. Raises UsageError for None (nothing is stored), for bytes of another form, and
    for another artifact.
    """
    if blob is None:
        raise UsageError(f"blob {compiled.blob[:12]} of the reported artifact is missing")
    try:
        artifact = unpacked(blob)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"found an artifact that is not JSON ({type(error).__name__})") from error
    if (artifact.sha256, artifact.refusal is not None) != (compiled.artifact_sha256, compiled.is_refused):
        raise UsageError(
            f"artifact {artifact.sha256[:12]} is not the reported {compiled.artifact_sha256[:12]}"
        )
    return artifact


def _why_refused(work: FleetWork, outcome: Outcome, limit_flop_per_s: float) -> Refusal | None:
    if not 0 <= outcome.seconds <= MOST_S:
        return Refusal(f"found {outcome.seconds:g} seconds of work, allowed 0 to {MOST_S:g}")
    value = outcome.value
    types = OUTCOME_TYPES[work.stage]
    if not isinstance(value, (Failure, *types)):
        allowed = " or ".join(type_.__name__ for type_ in types)
        return Refusal(f"found a {type(value).__name__}, allowed a {allowed} or a Failure")
    match value:
        case Measurement() | Verdict():
            return _why_no_evaluation(work, outcome, limit_flop_per_s)
        case FinalTimes():
            return _why_no_remeasurement(work, value, limit_flop_per_s)
        case Baseline():
            return why_no_baseline(value, work.problem, limit_flop_per_s)
        case Roofline():
            return why_no_roofline(value, limit_flop_per_s)
    return None


def _why_no_evaluation(work: FleetWork, outcome: Outcome, limit_flop_per_s: float) -> Refusal | None:
    for stage, seconds in outcome.stage_s:
        if not 0 <= seconds <= MOST_S:
            return Refusal(f"found {seconds:g} seconds of {stage}, allowed 0 to {MOST_S:g}")
    verdict = outcome.value if isinstance(outcome.value, Verdict) else outcome.verdict
    if verdict is None:
        return Refusal("found a time without a verdict")
    why = why_no_verdict(verdict, work.problem)
    if why is not None or not isinstance(outcome.value, Measurement):
        return why
    return why_impossible(outcome.value, work.problem, limit_flop_per_s)


def _why_no_remeasurement(
    work: FleetWork, final_times: FinalTimes, limit_flop_per_s: float
) -> Refusal | None:
    if len(final_times.times) != len(work.blobs):
        return Refusal(f"found {len(final_times.times)} final times, allowed {len(work.blobs)}")
    times = [time for time in final_times.measured if time is not None]
    whys = [why_impossible(time, work.problem, limit_flop_per_s) for time in times]
    if final_times.baseline is not None:
        whys.append(why_no_baseline(final_times.baseline, work.problem, limit_flop_per_s))
    return next(filter(None, whys), None)
