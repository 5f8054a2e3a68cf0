"""The last word on a run: its fastest trials timed again, interleaved, and the noise seen while doing so."""

from dataclasses import dataclass

from tuner.analysis.selected_result import half_width
from tuner.core.bench import AbstractBench, BoundRecord
from tuner.core.host_conditions import HostConditions
from tuner.core.record import Measurement
from tuner.core.runs import Baseline, StoredTrial
from tuner.core.target import Effort, Script

TOP_TRIALS = 8
FINAL_EFFORT = Effort(budget_s=0.3, min_samples=15, max_samples=200)  # of each finalist


@dataclass(frozen=True)
class Remeasurement:
    """What the interleaved timing gave."""

    times: tuple[tuple[StoredTrial, Measurement], ...]  # of those that still work, as they were given
    noise: float | None  # relative; None when the fastest no longer works
    baseline: Baseline | None = None  # where it took turns with them
    reason: str = ""  # why something has no time; "" where all were timed

    @property
    def host(self) -> HostConditions | None:
        """Returns what the machine did meanwhile: the same for all that took turns."""
        return self.times[0][1].host if self.times else None


def choose_top_trials(trials: tuple[StoredTrial, ...], limit: int = TOP_TRIALS) -> tuple[StoredTrial, ...]:
    """Returns the fastest measured trials, fastest first; of several with the same code only one."""
    measured = [trial for trial in trials if trial.record.median_s is not None]
    measured.sort(key=lambda trial: (trial.record.median_s, trial.number))
    by_code: dict[str, StoredTrial] = {}
    for trial in measured:
        by_code.setdefault(trial.record.code, trial)
    return tuple(by_code.values())[:limit]


def remeasure_top_trials(
    bench: AbstractBench, top_trials: tuple[StoredTrial, ...], effort: Effort = FINAL_EFFORT
) -> Remeasurement:
    """Times the finalists interleaved; the fastest takes part twice, which shows the noise floor."""
    bound = tuple(bound_record(trial) for trial in top_trials)
    found = bench.finals((*bound, bound[0]), effort)
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
    """Returns the least time of the anchor kernel beside any trial; None where none was timed beside."""
    outcomes = (trial.record.outcome for trial in trials)
    hosts = (outcome.host for outcome in outcomes if isinstance(outcome, Measurement))
    return min((host.anchor_s for host in hosts if host is not None), default=None)


def bound_record(trial: StoredTrial) -> BoundRecord:
    """Returns what became of a stored trial, with its script."""
    record = trial.record
    return BoundRecord(record, Script(trial.script_text, record.script_sha256))


def noise_of(first: Measurement, again: Measurement) -> float:
    """Returns the relative difference that means nothing, from two timings of the same code (A/A).

    One pair of medians may agree by luck, so it is never less than half the width of their intervals.
    """
    smaller = min(first.median_s, again.median_s)
    difference = abs(first.median_s - again.median_s) / smaller
    return max(difference, *(half_width(measurement) for measurement in (first, again)))
