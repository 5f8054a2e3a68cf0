"""Trials -> the answer of a run: the best one, or the set that this session cannot tell apart."""

from dataclasses import dataclass

from tuner.analysis.reliability import NOISE_LIMIT
from tuner.analysis.slowdown import Slowdown, slowdown
from tuner.core.candidate import Candidate, Value
from tuner.core.record import Measurement
from tuner.core.runs import StoredTrial

OFF: tuple[Value, ...] = (0, 1, "none")  # values by which knobs leave something out: no block, no unrolling
SIMPLICITY_LIMIT = 0.05  # slower than the fastest that a simpler script may be, however noisy the session


@dataclass(frozen=True)
class Tied:
    """A trial that was not shown to be slower than the fastest by more than noise."""

    trial: StoredTrial
    slowdown: Slowdown  # against the fastest


@dataclass(frozen=True)
class SelectedResult:
    """The trial to use, and those whose times mean the same."""

    best: StoredTrial  # the simplest of those as fast as the fastest within noise
    ties: tuple[Tied, ...]  # the best is among them; fastest first
    floor: float = 0.0  # relative difference that was taken for noise

    @property
    def measurement(self) -> Measurement:
        """Returns the time of the best: the interleaved one when there is one."""
        return timed(self.best)

    @property
    def can_separate(self) -> bool:
        """Tells whether the timing was quiet enough to call what is tied equally fast."""
        return self.floor <= NOISE_LIMIT

    @property
    def tied(self) -> tuple[StoredTrial, ...]:
        """Returns the trials of the tied set, fastest first."""
        return tuple(tie.trial for tie in self.ties)


def timed(trial: StoredTrial) -> Measurement:
    """Returns the time that a measured trial is judged by. Raises ValueError when it was not timed."""
    if trial.final is not None:
        return trial.final
    if isinstance(trial.record.outcome, Measurement):
        return trial.record.outcome
    raise ValueError(f"trial {trial.id} was not timed")


def select_result(trials: tuple[StoredTrial, ...], noise: float | None) -> SelectedResult | None:
    """Returns the best of the measured trials and what is tied with it; None when none was measured.

    Where finalists were timed again, only they count: times of other minutes do not compare.
    Tied with the fastest are those that the bootstrap does not show to be slower by more than ``noise``, the
    difference between two timings of the same code; for want of it, by more than half the fastest's interval.
    The best is the simplest of the tied whose own median is within that noise and SIMPLICITY_LIMIT; of
    equally simple ones the fastest.
    """
    by_time = sorted(top_trials_of(trials), key=lambda trial: (timed(trial).median_s, trial.number))
    if not by_time:
        return None
    fastest = timed(by_time[0])
    floor = half_width(fastest) if noise is None else noise
    near = (trial for trial in by_time if timed(trial).interval_s[0] <= fastest.interval_s[1] * (1 + floor))
    ties = tuple(Tied(trial, slowdown(timed(trial), fastest)) for trial in near)
    ties = tuple(tie for tie in ties if tie.slowdown.interval[0] <= floor)
    equal = [tie for tie in ties if tie.slowdown.median <= min(floor, SIMPLICITY_LIMIT)]
    best = min(equal, key=lambda tie: (*complexity(tie.trial), tie.slowdown.median))
    return SelectedResult(best.trial, ties, floor)


def top_trials_of(trials: tuple[StoredTrial, ...]) -> tuple[StoredTrial, ...]:
    """Returns the trials timed again together; where none was, all measured ones.

    None is stale or early-stopped: a few samples of what is far too slow are no result.
    """
    trials = tuple(trial for trial in trials if not trial.stale and trial.early_stopped is None)
    finals = tuple(trial for trial in trials if trial.final is not None)
    return finals or tuple(trial for trial in trials if trial.best_s is not None)


def half_width(measurement: Measurement) -> float:
    """Returns half the interval of a median, relative to it."""
    low_s, high_s = measurement.interval_s
    return (high_s - low_s) / 2 / measurement.median_s


def complexity(trial: StoredTrial) -> tuple[int, int]:
    """Returns what to compare, the smaller the simpler: lines of the script, then knobs that do something.

    A script has lines for all that it does: tiles, packing and pipelining that are left out are not in it.
    """
    return script_lines(trial.script_text), knobs_on(trial.record.candidate)


def script_lines(text: str) -> int:
    """Returns the lines of a script that are neither blank nor comment."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("//"))


def knobs_on(candidate: Candidate) -> int:
    """Returns how many knobs have a value other than 0, 1 and 'none'."""
    return sum(1 for _, value in candidate.choices if value not in OFF)
