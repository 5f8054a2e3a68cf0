"""Final re-measurement of a run: its fastest trials timed again, interleaved, with the noise floor."""

from dataclasses import dataclass, replace

from tuner.analysis.selected_result import half_width
from tuner.core.bench import AbstractBench, BoundRecord
from tuner.core.host_conditions import HostConditions
from tuner.core.record import Measurement
from tuner.core.runs import Baseline, StoredTrial
from tuner.core.target import Effort, Script

TOP_TRIALS = 8
FINAL_EFFORT = Effort(budget_s=0.3, min_samples=15, max_samples=200, has_offsets=True)  # per candidate
LEAST_S = 0.03  # per candidate, however short the search was
SHARE_OF_SEARCH = 0.02  # per candidate: a dozen of them take a quarter of a short search


@dataclass(frozen=True)
class Remeasurement:
    """The times of a final re-measurement of a run's top trials, its noise floor, and its baseline time."""

    times: tuple[tuple[StoredTrial, Measurement], ...]  # of the trials that still work, in the given order
    noise: float | None  # relative; None when the fastest no longer works
    baseline: Baseline | None = None  # None: was not timed interleaved with the trials
    reason: str = ""  # why a time is missing; "": all were timed

    @property
    def host(self) -> HostConditions | None:
        """Returns how loaded the machine was while all trials were timed interleaved.

        None where there are no times, on a GPU, and in a replay of a recording.
        """
        return self.times[0][1].host if self.times else None


def final_effort(search_s: float) -> Effort:
    """Returns how long each candidate is timed after a search of so many seconds of wall time.

    A search of 15 s or more is worth FINAL_EFFORT. After a shorter one fewer samples are taken, and intervals
    are as wide as that makes them.
    """
    budget_s = min(FINAL_EFFORT.budget_s, max(LEAST_S, SHARE_OF_SEARCH * search_s))
    return replace(FINAL_EFFORT, budget_s=budget_s)


def choose_top_trials(trials: tuple[StoredTrial, ...], limit: int = TOP_TRIALS) -> tuple[StoredTrial, ...]:
    """Returns up to ``limit`` measured trials, the fastest first; of trials with equal code only one."""
    measured = [trial for trial in trials if trial.record.median_s is not None]
    measured.sort(key=lambda trial: (trial.record.median_s, trial.number))
    by_code: dict[str, StoredTrial] = {}
    for trial in measured:
        by_code.setdefault(trial.record.code, trial)
    return tuple(by_code.values())[:limit]


def remeasure_top_trials(
    bench: AbstractBench, top_trials: tuple[StoredTrial, ...], effort: Effort = FINAL_EFFORT
) -> Remeasurement:
    """Times the trials of ``top_trials`` again, interleaved; the first of them twice, for the noise floor.

    ``top_trials`` has at least one trial, the fastest first. Trials that no longer work are left out of the
    result.
    """
    bound = tuple(bound_record(trial) for trial in top_trials)
    found = bench.remeasure((*bound, bound[0]), effort)
    *measurements, again = found.times
    times = tuple(
        (trial, measurement)
        for trial, measurement in zip(top_trials, measurements, strict=True)
        if measurement is not None
    )
    first = measurements[0]
    noise = None if first is None or again is None else noise_of(first, again)
    return Remeasurement(times, noise, found.baseline, found.reason)


def quietest_anchor_s(trials: tuple[StoredTrial, ...]) -> float | None:
    """Returns the least seconds per call of the reference kernel during any trial; None: never timed."""
    outcomes = (trial.record.outcome for trial in trials)
    hosts = (outcome.host for outcome in outcomes if isinstance(outcome, Measurement))
    return min((host.anchor_s for host in hosts if host is not None), default=None)


def bound_record(trial: StoredTrial) -> BoundRecord:
    """Returns a stored trial's record together with its script: what a bench needs to time it again."""
    record = trial.record
    return BoundRecord(record, Script(trial.script_text, record.script_sha256))


def noise_of(first: Measurement, again: Measurement) -> float:
    """Returns the noise floor: the difference of two timings of the same code, relative to the lesser median.

    One pair of medians may agree by chance, so the result is at least half the relative width of the 95 %
    interval of each median.
    """
    smaller = min(first.median_s, again.median_s)
    difference = abs(first.median_s - again.median_s) / smaller
    return max(difference, *(half_width(measurement) for measurement in (first, again)))
