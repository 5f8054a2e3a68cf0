"""A piece of work for a node, and its outcome: values that are exchanged as JSON."""

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from tuner.core.bench import FinalTimes
from tuner.core.dataclass_json import decode, encode
from tuner.core.errors import Failure
from tuner.core.machine import Compiler, Roofline
from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.core.target import Effort
from tuner.core.target_name import TargetName
from tuner.core.version import __version__
from tuner.workers.evaluation import Evaluation

COMPILE: Final = "compile"  # stages of work
EVALUATE: Final = "evaluate"
REMEASURE: Final = "remeasure"
BASELINE: Final = "baseline"
ROOFLINE: Final = "roofline"
HASH_DIGITS: Final = 12  # of the hashes in names of queues

Key = tuple[str, int, str]  # run, number, stage


@dataclass(frozen=True)
class FleetWork:
    """The work that a node is to do. Its key names the outcome, whichever node reports it."""

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
        """Returns (run, number, stage), under which the outcome is stored."""
        return (self.run, self.number, self.stage)

    @property
    def words(self) -> str:
        """Returns a description for messages, such as "compile of trial 3"."""
        return f"{self.stage} of trial {self.number}" if self.number >= 0 else self.stage


@dataclass(frozen=True)
class Compiled:
    """The outcome of a successful compilation: the hash of the artifact."""

    blob: str  # hash of the packed artifact
    artifact_sha256: str
    is_refused: bool  # the artifact was refused and cannot be loaded


@dataclass(frozen=True)
class Outcome:
    """The outcome of a piece of work.

    A Failure is the candidate's, or says that no node could do the work.
    """

    value: Compiled | Evaluation | FinalTimes | Baseline | Roofline | Failure
    seconds: float  # that the work took


def to_json(value: FleetWork | Outcome) -> dict[str, Any]:
    """Returns work or an outcome as JSON values."""
    fields: dict[str, Any] = encode(value)
    return fields


def work_from_json(found: Any) -> FleetWork:
    """Reads a piece of work. Raises UsageError for JSON from a driver of another version."""
    return decode(FleetWork, found, "work")


def outcome_from_json(found: Any) -> Outcome:
    """Reads an outcome. Raises UsageError for JSON from a node of another version."""
    return decode(Outcome, found, "outcome")


def compiler_build_of(compiler: Compiler) -> str:
    """Returns the compiler build: tuner version and compiler fingerprint, equal where code is equal."""
    return f"tuner {__version__}, {compiler.fingerprint}"


@dataclass(frozen=True)
class Service:
    """A queue that a node serves."""

    queue: str
    at_once: int  # jobs


def compile_queue(compiler_build: str) -> str:
    """Returns the queue of all nodes with one compiler build."""
    return f"compile:{_digits(compiler_build)}"


def measure_queue(machine: str, device: str) -> str:
    """Returns the queue of one device; the whole fleet does one of its jobs at a time."""
    return f"measure:{_digits(machine)}:{_digits(device)}"


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]
