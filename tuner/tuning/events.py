"""Events that a run or a campaign reports to its observer, and the user's request to end a run."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from tuner.core.errors import Failure
from tuner.core.machine import Machine, PresentLoad
from tuner.core.queries import Counts
from tuner.core.records import Record
from tuner.core.reliability import Reliability
from tuner.core.requests import Campaign
from tuner.core.runs import Baseline, RunSettings
from tuner.core.trials import NOT_TIMED

E = TypeVar("E")  # events of a run or a campaign


@dataclass(frozen=True)
class RunStarted:
    """Event: a run is stored or resumed, its feasible set is known, and its trials begin."""

    run: int
    settings: RunSettings
    machine: Machine
    cartesian: int  # combinations of knob values
    feasible: int
    proposed_before: int  # trials that earlier sessions of the run proposed
    notes: tuple[str, ...] = ()  # why a strategy has no feasible configuration; then ``Plan.notes``
    remeasured_s: float = 0.0  # of earlier sessions: seconds that no budget counts

    @property
    def most_trials(self) -> int:
        """Returns the number of trials after which the search ends if no budget ends it before."""
        if self.settings.trials is None:
            return self.feasible
        return min(self.settings.trials, self.feasible)


@dataclass(frozen=True)
class MachineBusy:
    """Event: before the first timing, other programs or the hypervisor occupy processors."""

    run: int
    load: PresentLoad
    processors: int  # that this process may use


@dataclass(frozen=True)
class CompilesAgain:
    """Event: before a run goes on, its trials are compiled again: tuner's sources or scripts have changed.

    The run continues if the code is the same.
    """

    run: int
    trials: int  # with scripts of their own


@dataclass(frozen=True)
class BaselineStarted:
    """Event: the baseline is timed now, alone in a separate process."""


@dataclass(frozen=True)
class BaselineMeasured:
    """Event: the baseline was timed, alone in a separate process or interleaved with the top-k candidates."""

    baseline: Baseline
    reliability: Reliability = NOT_TIMED  # of its time


@dataclass(frozen=True)
class BaselineFailed:
    """Event: the baseline could not be timed; the run continues without a baseline."""

    reason: str


@dataclass(frozen=True)
class TrialDone:
    """Event: the outcome of one trial is stored; with the run's counts and its best record so far."""

    trial: int
    number: int
    record: Record
    counts: Counts
    best: Record | None  # fastest so far
    elapsed_s: float  # of all sessions of the run
    best_reliability: Reliability = NOT_TIMED  # of the best's time, which was taken alone


@dataclass(frozen=True)
class WaitsForLock:
    """Event: another tuner is timing on the same device, and this run waits for it to finish."""

    who: str  # the other tuner's description of itself
    has_budget: bool = False  # the time that is waited counts: the budget ends the wait


@dataclass(frozen=True)
class LockWaitEnded:
    """Event: the budget ends while another tuner is timing; this run goes on without waiting for it."""

    who: str  # the other tuner's description of itself


@dataclass(frozen=True)
class WaitedForLock:
    """Event: a session has ended that waited for other tuners on this machine for much of its time."""

    waited_s: float
    elapsed_s: float  # of the session


@dataclass(frozen=True)
class WaitsForNode:
    """Event: a job of this run waits, and no node of the fleet has reported anything for a long time."""

    why: str  # what the job waits for


@dataclass(frozen=True)
class SpaceExhausted:
    """Event: the search ends because every configuration of the feasible set has been tried."""

    feasible: int
    is_sample: bool  # the feasible set is a sample of a space that is too large to list


@dataclass(frozen=True)
class FailedAlike:
    """Event: the search ends because all trials of the run's only script failed for the same reason."""

    trials: int
    failure: Failure


@dataclass(frozen=True)
class RooflineStarted:
    """Event: the machine's peak flop/s and memory bandwidth are measured now, in a separate process."""


@dataclass(frozen=True)
class RemeasurementStarted:
    """Event: the final re-measurement begins, in which the best trials are timed again, interleaved."""

    trials: int


@dataclass(frozen=True)
class NoiseMeasured:
    """Event: the noise floor is known, from two timings of one candidate in the final re-measurement."""

    noise: float  # relative; never less than half the width of an interval: ``noise_of``


@dataclass(frozen=True)
class TrialRefuted:
    """Event: the final re-measurement found the code of a timed trial wrong; it counts as failed now."""

    trial: int  # id
    failure: Failure
    best: Record | None  # the fastest of the trials that are left


@dataclass(frozen=True)
class RoundDisturbed:
    """Event: the final re-measurement was disturbed; it is repeated, else the order from before is kept."""

    is_repeated: bool = False


@dataclass(frozen=True)
class RoundLost:
    """Event: the final re-measurement produced no times, with the reason."""

    reason: str


Event = (
    RunStarted
    | MachineBusy
    | CompilesAgain
    | BaselineStarted
    | BaselineMeasured
    | BaselineFailed
    | RooflineStarted
    | TrialDone
    | SpaceExhausted
    | FailedAlike
    | RemeasurementStarted
    | NoiseMeasured
    | TrialRefuted
    | RoundDisturbed
    | RoundLost
    | WaitsForLock
    | LockWaitEnded
    | WaitedForLock
    | WaitsForNode
)
Observer = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Does nothing: the default observer of a run's events."""


class Interruption:
    """A request to end a run, made from a signal handler.

    While the run waits, as for a candidate, the request raises KeyboardInterrupt; otherwise the run reads
    ``is_asked``.
    """

    def __init__(self) -> None:
        self._is_asked = False
        self._is_waiting = False

    @property
    def is_asked(self) -> bool:
        """Returns True once ``ask`` has requested that the run end."""
        return self._is_asked

    def ask(self) -> None:
        """Requests that the run end; for a signal handler. Raises KeyboardInterrupt if the run waits."""
        self._is_asked = True
        if self._is_waiting:
            self._is_waiting = False
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Context manager: in its body ``ask`` raises KeyboardInterrupt, at once if it was called before."""
        self._is_waiting = True
        try:
            if self._is_asked:  # checked after marking: a signal in between raises by itself
                raise KeyboardInterrupt
            yield
        finally:
            self._is_waiting = False


@dataclass(frozen=True)
class CampaignStarted:
    """Event: a campaign is stored or resumed, and its trials begin.

    ``settings.columns`` of the campaign are the configurations that are tried on every problem to which they
    apply.
    """

    campaign: Campaign
    proposed_before: int  # trials that earlier sessions of the campaign proposed
    feasible: int  # configurations of all its problems together


@dataclass(frozen=True)
class RunEvent:
    """Event: one of the runs of a campaign has reported an event."""

    run_index: int  # of the run in the campaign
    event: Event
    proposed: int  # trials of the campaign so far
    elapsed_s: float  # of all sessions of the campaign


CampaignEvent = CampaignStarted | RunEvent
CampaignObserver = Callable[[CampaignEvent], None]


def both_observers(first: Callable[[E], None], second: Callable[[E], None]) -> Callable[[E], None]:
    """Returns an observer that calls ``first``, then ``second``, with each event."""

    def both(event: E) -> None:
        first(event)
        second(event)

    return both


def ignore_campaign(event: CampaignEvent) -> None:
    """Does nothing: the default observer of a campaign's events."""
