"""Events that a run reports to its observer, which prints them."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.core.machine import Machine
from tuner.core.processors import PresentLoad
from tuner.core.record import Record
from tuner.core.runs import Baseline, Counts, RunSettings


@dataclass(frozen=True)
class RunStarted:
    """The feasible set is known, and the run is stored."""

    run: int
    settings: RunSettings
    machine: Machine
    cartesian: int  # combinations of knob values
    feasible: int
    proposed_before: int  # trials that earlier sessions of the run proposed


@dataclass(frozen=True)
class MachineBusy:
    """Other programs use processors that the timed threads need."""

    run: int
    load: PresentLoad
    processors: int  # that this process may use


@dataclass(frozen=True)
class BaselineMeasured:
    """The baseline was timed: alone in a separate process, or interleaved with the top-k candidates."""

    baseline: Baseline


@dataclass(frozen=True)
class BaselineFailed:
    """The baseline could not be timed; the run continues without a baseline."""

    reason: str


@dataclass(frozen=True)
class TrialDone:
    """The outcome of one trial is stored."""

    trial: int
    number: int
    record: Record
    counts: Counts
    best: Record | None  # fastest so far
    elapsed_s: float  # of all sessions of the run


@dataclass(frozen=True)
class WaitsForLock:
    """Another tuner is timing on the same device; this run waits."""

    who: str  # the other tuner's description of itself


@dataclass(frozen=True)
class WaitsForNode:
    """No node of the fleet has reported anything for a long time."""

    why: str  # a job is waiting


@dataclass(frozen=True)
class RemeasurementStarted:
    """The best trials are timed again, interleaved."""

    trials: int


@dataclass(frozen=True)
class NoiseMeasured:
    """The noise floor: how much two timings of the same code differ."""

    noise: float  # relative


@dataclass(frozen=True)
class RoundLost:
    """The final re-measurement produced no times."""

    reason: str


Event = (
    RunStarted
    | MachineBusy
    | BaselineMeasured
    | BaselineFailed
    | TrialDone
    | RemeasurementStarted
    | NoiseMeasured
    | RoundLost
    | WaitsForLock
    | WaitsForNode
)
Observer = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The observer that ignores every event."""
