"""Selects a result from trials: a run's best trial with its ties, and a candidate for several machines.

``select_result`` finds the fastest trial, the trials that the bootstrap does not show to be slower
(``Tied``), and of these the simplest. ``best_compromise`` takes the trials of several machines.
"""

from dataclasses import dataclass
from operator import itemgetter

from tuner.core.candidate import Candidate, Value
from tuner.core.records import Measurement
from tuner.core.round_quality import NOISE_LIMIT
from tuner.core.trials import StoredTrial
from tuner.space.scripts.header import code_lines, custom_ops

OFF: tuple[Value, ...] = (0, 1, "none")  # values that switch a knob's transform off: no block, no unrolling
SIMPLICITY_LIMIT = 0.05  # relative: how much slower a simpler script may be, however noisy the session
RESAMPLES = 1000  # of the bootstrap
SEED = 0  # fixed: equal samples give equal intervals


@dataclass(frozen=True)
class Slowdown:
    """The relative difference of two median times, with its 95 % interval: 0.02 is 2 % longer."""

    median: float
    interval: tuple[float, float]  # 95 %


@dataclass(frozen=True)
class Tied:
    """A trial that was not shown to be slower than the fastest by more than noise, with its slowdown."""

    trial: StoredTrial
    slowdown: Slowdown  # against the fastest


@dataclass(frozen=True)
class SelectedResult:
    """The trial of a run to use, and the trials tied with the fastest trial."""

    best: StoredTrial  # the simplest of the trials as fast as the fastest within noise
    ties: tuple[Tied, ...]  # ``best`` included; fastest first
    floor: float = 0.0  # noise floor: relative difference taken for noise

    @property
    def measurement(self) -> Measurement:
        """Returns the best trial's measurement: of the final re-measurement if any, else of the search."""
        return timed(self.best)

    @property
    def can_separate(self) -> bool:
        """Returns whether the noise floor is at most NOISE_LIMIT (5 %).

        Only then does a tie mean that trials are about equally fast.
        """
        return self.floor <= NOISE_LIMIT

    @property
    def tied(self) -> tuple[StoredTrial, ...]:
        """Returns the trials tied with the fastest trial, itself included, fastest first."""
        return tuple(tie.trial for tie in self.ties)


def timed(trial: StoredTrial) -> Measurement:
    """Returns a trial's time from its final re-measurement; if it has none, from the search.

    Raises ValueError if it has no time.
    """
    if trial.final is not None:
        return trial.final
    if isinstance(trial.record.outcome, Measurement):
        return trial.record.outcome
    raise ValueError(f"trial {trial.id} was not timed")


def select_result(trials: tuple[StoredTrial, ...], noise: float | None) -> SelectedResult | None:
    """Returns the best of the measured trials and the trials tied with the fastest; None without times.

    If any trial was re-measured, only such trials count: times taken minutes apart are not comparable. Tied
    are trials that the bootstrap does not show slower by more than ``noise`` (None: ``half_width`` of the
    fastest's time). The best is the simplest of the tied trials within the noise and SIMPLICITY_LIMIT (5 %),
    by ``complexity``; among equals the fastest.
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


def slowdown(measurement: Measurement, reference: Measurement) -> Slowdown:
    """Returns by which share ``measurement`` is longer than ``reference``, with a 95 % bootstrap interval."""
    import numpy as np

    rng = np.random.default_rng(SEED)
    ours = np.array(measurement.samples_s)
    theirs = np.array(reference.samples_s)
    draws = rng.integers(len(ours), size=(RESAMPLES, len(ours)))
    others = draws  # in pairs: equally many samples are usually of the same rounds
    if len(ours) != len(theirs):
        others = rng.integers(len(theirs), size=(RESAMPLES, len(theirs)))
    ratios = np.median(ours[draws], axis=1) / np.median(theirs[others], axis=1) - 1
    low, high = np.percentile(ratios, (2.5, 97.5))
    return Slowdown(measurement.median_s / reference.median_s - 1, (float(low), float(high)))


def top_trials_of(trials: tuple[StoredTrial, ...]) -> tuple[StoredTrial, ...]:
    """Returns the re-measured trials; if there are none, all measured ones.

    No stale or early-stopped trials.
    """
    trials = tuple(trial for trial in trials if not trial.stale and trial.early_stopped is None)
    final_times = tuple(trial for trial in trials if trial.final is not None)
    return final_times or tuple(trial for trial in trials if trial.best_s is not None)


def half_width(measurement: Measurement) -> float:
    """Returns half the width of the 95 % interval of a measurement's median, relative to the median."""
    low_s, high_s = measurement.interval_s
    return (high_s - low_s) / 2 / measurement.median_s


def complexity(trial: StoredTrial) -> tuple[int, int, int]:
    """Returns a sort key, the smaller the simpler: tuner's transform ops, script lines, knobs switched on."""
    script = trial.script_text
    return len(custom_ops(script)), script_lines(script), knobs_on(trial.record.candidate)


def script_lines(text: str) -> int:
    """Returns the number of lines of an MLIR script that are neither blank nor a ``//`` comment."""
    return sum(1 for line in code_lines(text) if line.strip())


def knobs_on(candidate: Candidate) -> int:
    """Returns how many knobs of a candidate are switched on: have another value than 0, 1 and 'none'."""
    return sum(1 for _, value in candidate.choices if value not in OFF)


@dataclass(frozen=True)
class Compromise:
    """A candidate that was timed on each of several machines, with its slowdown on each."""

    trials: tuple[StoredTrial, ...]  # of the same candidate, one per machine
    slowdowns: tuple[float, ...]  # against the machine's fastest trial: 0.1 is 10 % slower
    fastest: tuple[StoredTrial, ...]  # one per machine

    @property
    def worst(self) -> float:
        return max(self.slowdowns)


def best_compromise(machines: tuple[tuple[StoredTrial, ...], ...]) -> Compromise | None:
    """Returns the candidate whose largest slowdown over the machines is the least.

    ``machines``: the trials of each machine. None if no candidate has a time on each of them. Stale and
    early-stopped trials are left out.
    """
    by_candidate = list(map(_by_candidate, machines))
    if not all(by_candidate):
        return None
    fastest = tuple(map(_fastest, machines))
    shared = set.intersection(*map(set, by_candidate))
    choices = []
    for candidate in by_candidate[0]:
        if candidate in shared:
            trials = tuple(map(itemgetter(candidate), by_candidate))
            choices.append(Compromise(trials, tuple(map(_slowdown_of, trials, fastest)), fastest))
    return min(choices, key=lambda choice: choice.worst, default=None)


def _by_candidate(trials: tuple[StoredTrial, ...]) -> dict[Candidate, StoredTrial]:
    timed_trials = {}
    for trial in trials:
        if trial.best_s is not None and not trial.stale and trial.early_stopped is None:
            timed_trials[trial.record.candidate] = trial
    return timed_trials


def _fastest(trials: tuple[StoredTrial, ...]) -> StoredTrial:
    return min(top_trials_of(trials), key=lambda trial: timed(trial).median_s)


def _slowdown_of(trial: StoredTrial, fastest: StoredTrial) -> float:
    return max(0.0, timed(trial).median_s / timed(fastest).median_s - 1)
