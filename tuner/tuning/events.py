"""What a run tells while it goes on. Printing is the observer's."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.core.machine import Machine
from tuner.core.processors import PresentLoad
from tuner.core.record import Record
from tuner.core.runs import Baseline, Counts, RunSettings


@dataclass(frozen=True)
class RunStarted:
    """The feasible set is known and the run is stored."""

    run: int
    settings: RunSettings
    machine: Machine
    cartesian: int  # combinations of knobs
    feasible: int
    proposed_before: int  # by earlier sessions of the run


@dataclass(frozen=True)
class MachineBusy:
    """Other programs use processors that the timed threads need."""

    run: int
    load: PresentLoad
    processors: int  # that this process may use


@dataclass(frozen=True)
class BaselineMeasured:
    """The baseline was timed: in a process of its own, or in turns with the finalists."""

    baseline: Baseline


@dataclass(frozen=True)
class BaselineFailed:
    """The baseline could not be timed; the run goes on without."""

    reason: str


@dataclass(frozen=True)
class TrialDone:
    """One trial is stored."""

    trial: int
    number: int
    record: Record
    counts: Counts
    best: Record | None  # fastest so far
    elapsed_s: float  # of all sessions of the run


@dataclass(frozen=True)
class WaitsForLock:
    """Another tuner times on the same device; this one waits."""

    who: str  # as that one tells of itself


@dataclass(frozen=True)
class WaitsForNode:
    """No node of a fleet has told anything for long."""

    why: str  # a job waits


@dataclass(frozen=True)
class RemeasurementStarted:
    """The best trials are timed again, interleaved."""

    trials: int


@dataclass(frozen=True)
class NoiseMeasured:
    """How much two timings of the same code differ."""

    noise: float  # relative


@dataclass(frozen=True)
class RoundLost:
    """The final re-measurement gave no times."""

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
    """Observes nothing."""
