"""The final re-measurement of a run: which trials are timed again, interleaved, and what their times say."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.analysis.selected_result import half_width
from tuner.core.errors import Failure
from tuner.core.interfaces import FINAL_EFFORT, AbstractRunner, BoundRecord, Effort, Script
from tuner.core.records import HostConditions, Measurement
from tuner.core.runs import Baseline
from tuner.core.trials import StoredTrial
from tuner.tuning.budget import TOP_TRIALS


@dataclass(frozen=True)
class Remeasurement:
    """The times of a final re-measurement of a run's top trials, its noise floor, and its baseline time."""

    times: tuple[tuple[StoredTrial, Measurement], ...]  # of the trials that still work, in the given order
    noise: float | None  # relative; None where the fastest lacks one of its two times
    baseline: Baseline | None = None  # None: was not timed interleaved with the trials
    reason: str = ""  # why a time is missing; "": all were timed
    wrong: tuple[tuple[StoredTrial, Failure], ...] = ()  # whose code is wrong; then no trial has a time

    @property
    def by_trial(self) -> dict[int, Measurement]:
        """Returns the time of each trial by its id."""
        return {trial.id: measurement for trial, measurement in self.times}

    @property
    def host(self) -> HostConditions | None:
        """Returns the host's conditions while trials were timed; None: no times, a GPU, or a replay."""
        if self.times:
            return self.times[0][1].host
        return None


def choose_top_trials(trials: tuple[StoredTrial, ...], limit: int = TOP_TRIALS) -> tuple[StoredTrial, ...]:
    """Returns up to ``limit`` measured trials, the fastest first; one for each distinct code."""
    measured = [trial for trial in trials if trial.record.median_s is not None]
    measured.sort(key=lambda trial: (trial.record.median_s, trial.number))
    by_code: dict[str, StoredTrial] = {}
    for trial in measured:
        by_code.setdefault(trial.record.code, trial)
    return tuple(by_code.values())[:limit]


def remeasure_top_trials(
    runner: AbstractRunner,
    top_trials: tuple[StoredTrial, ...],
    effort: Effort = FINAL_EFFORT,
    bound_of: Callable[[StoredTrial], BoundRecord] | None = None,
) -> Remeasurement:
    """Times ``top_trials`` interleaved, the first (the fastest) twice; leaves out trials that fail now.

    If the code of a trial is found wrong, no trial has a time. ``bound_of``: returns a trial's record, for a
    caller that keeps artifacts; None: ``bound_record``, and each script is compiled again.
    """
    bound = tuple(map(bound_of or bound_record, top_trials))
    final_times = runner.remeasure((*bound, bound[0]), effort)
    wrong = {
        trial.id: (trial, outcome)
        for trial, outcome in zip((*top_trials, top_trials[0]), final_times.times, strict=True)
        if isinstance(outcome, Failure) and outcome.shows_a_defect
    }
    if wrong:
        return Remeasurement((), None, reason=final_times.reason, wrong=tuple(wrong.values()))
    *measurements, again = final_times.measured
    times = tuple(
        (trial, measurement)
        for trial, measurement in zip(top_trials, measurements, strict=True)
        if measurement is not None
    )
    first = measurements[0]
    noise = None if first is None or again is None else noise_of(first, again)
    return Remeasurement(times, noise, final_times.baseline, final_times.reason)


def quietest_reference_s(trials: tuple[StoredTrial, ...]) -> float | None:
    """Returns the least seconds per call of the reference kernel during any trial; None: never timed."""
    outcomes = (trial.record.outcome for trial in trials)
    hosts = (outcome.host for outcome in outcomes if isinstance(outcome, Measurement))
    return min((host.reference_s for host in hosts if host is not None), default=None)


def bound_record(trial: StoredTrial) -> BoundRecord:
    """Returns a stored trial's record with its script, for a runner that times it again."""
    record = trial.record
    return BoundRecord(record, Script(trial.script_text, record.script_sha256))


def noise_of(first: Measurement, again: Measurement) -> float:
    """Returns the noise floor by two timings of the same code: the relative difference of their medians.

    At least the half width of each timing's 95 % interval, relative to its median.
    """
    smaller = min(first.median_s, again.median_s)
    difference = abs(first.median_s - again.median_s) / smaller
    return max(difference, *map(half_width, (first, again)))
