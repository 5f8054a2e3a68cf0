"""A piece of work for a node, and what a node tells of it: values that cross as JSON."""

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
FINALS: Final = "finals"
BASELINE: Final = "baseline"
ROOFLINE: Final = "roofline"
HASH_DIGITS: Final = 12  # of what names a queue

Key = tuple[str, int, str]  # run, number, stage


@dataclass(frozen=True)
class FleetWork:
    """What a node is asked to do. Its key says which outcome it is to have, whoever gives it."""

    run: str  # uuid
    number: int  # of the trial; below 0: no trial's
    stage: str
    maker: str  # what makes code for the run: compiler_build_of
    machine: str  # Machine.name
    problem: Problem
    target: TargetName
    threads: int
    seed: int
    blobs: tuple[str, ...] = ()  # hashes of the script, or of the artifacts
    effort: Effort = Effort()
    slowest_s: float | None = None  # of a call, where it is known: what takes much longer hangs
    has_baseline: bool = False  # takes turns with the artifacts of finals

    @property
    def key(self) -> Key:
        """Returns what its outcome is stored under."""
        return (self.run, self.number, self.stage)

    @property
    def words(self) -> str:
        """Returns what it is, for people."""
        return f"{self.stage} of trial {self.number}" if self.number >= 0 else self.stage


@dataclass(frozen=True)
class Compiled:
    """A script became an artifact."""

    blob: str  # hash of the packed artifact
    artifact_sha256: str
    is_refused: bool  # it is not worth loading


@dataclass(frozen=True)
class Outcome:
    """What became of a piece of work; a Failure is a candidate's, or says that nobody could do it."""

    value: Compiled | Evaluation | FinalTimes | Baseline | Roofline | Failure
    seconds: float  # that it took


def to_json(value: FleetWork | Outcome) -> dict[str, Any]:
    """Returns a value as it crosses."""
    fields: dict[str, Any] = encode(value)
    return fields


def work_from_json(found: Any) -> FleetWork:
    """Reads a piece of work. Raises UsageError for what a driver of another version wrote."""
    return decode(FleetWork, found, "work")


def outcome_from_json(found: Any) -> Outcome:
    """Reads an outcome. Raises UsageError for what a node of another version wrote."""
    return decode(Outcome, found, "outcome")


def compiler_build_of(compiler: Compiler) -> str:
    """Returns what must be equal where code is made and where it was asked for."""
    return f"tuner {__version__}, {compiler.fingerprint}"


@dataclass(frozen=True)
class Service:
    """A queue that a node serves."""

    queue: str
    at_once: int  # jobs


def compile_queue(maker: str) -> str:
    """Returns the queue of all that make the same code."""
    return f"compile:{_digits(maker)}"


def measure_queue(machine: str, device: str) -> str:
    """Returns the queue of one device: one job of it runs in the whole fleet."""
    return f"measure:{_digits(machine)}:{_digits(device)}"


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]
