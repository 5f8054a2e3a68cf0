"""The final re-measurement of a run: which trials are timed again, interleaved, and whether the times count.

A machine that becomes busy after the search makes every time of the final re-measurement longer, and puts the
trials into any order. Then what was timed without a disturbance says more, though at other moments.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tuner.analysis.selected_result import half_width, select_result
from tuner.core.errors import Failure
from tuner.core.interfaces import FINAL_EFFORT, AbstractRunner, BoundRecord, Effort, Script
from tuner.core.records import HostConditions, Measurement
from tuner.core.reliability import unreliable
from tuner.core.round_quality import NOISE_LIMIT, RoundQuality, reliability_alone
from tuner.core.runs import Baseline
from tuner.core.trials import StoredTrial
from tuner.tuning.budget import TOP_TRIALS

KEPT = "the final re-measurement was disturbed, undisturbed times from before count"


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
    by_code: dict[str, StoredTrial] = {}
    for trial in sorted(trials, key=lambda trial: (trial.record.median_s or math.inf, trial.number)):
        if trial.record.median_s is not None:
            by_code.setdefault(trial.record.code, trial)
    return tuple(by_code.values())[:limit]


def bound_record(trial: StoredTrial) -> BoundRecord:
    """Returns a stored trial's record with its script, for a runner that times it again."""
    record = trial.record
    return BoundRecord(record, Script(trial.script_text, record.script_sha256))


def remeasure_top_trials(
    runner: AbstractRunner,
    top_trials: tuple[StoredTrial, ...],
    effort: Effort = FINAL_EFFORT,
    bound_of: Callable[[StoredTrial], BoundRecord] = bound_record,
) -> Remeasurement:
    """Times ``top_trials`` interleaved, the first (the fastest) twice; leaves out trials that fail now.

    If the code of a trial is found wrong, no trial has a time. ``bound_of``: returns a trial's record, for a
    caller that keeps artifacts; by ``bound_record`` each script is compiled again.
    """
    bound = tuple(map(bound_of, top_trials))
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
    times = (trial.record.outcome for trial in trials if isinstance(trial.record.outcome, Measurement))
    return min((time.host.reference_s for time in times if time.host is not None), default=None)


def noise_of(first: Measurement, again: Measurement) -> float:
    """Returns the noise floor by two timings of the same code: the relative difference of their medians.

    At least the half width of each timing's 95 % interval, relative to its median.
    """
    smaller = min(first.median_s, again.median_s)
    difference = abs(first.median_s - again.median_s) / smaller
    return max(difference, *map(half_width, (first, again)))


def quality_that_counts(
    quality: RoundQuality,
    times: tuple[tuple[StoredTrial, Measurement], ...],
    trials: tuple[StoredTrial, ...],
    *,
    quietest_reference_s: float | None,  # least time of the run's reference kernel; None: not known
    spare_cores: int,  # without a timed thread
) -> RoundQuality:
    """Returns the quality of a round of ``times``, marked as lost if undisturbed times contradict the round.

    ``trials``: all trials of the run. A reliable round is not contradicted. An unreliable one is if its best
    trial, undisturbed or in the round, took over NOISE_LIMIT (5 %) longer than the fastest undisturbed time
    of a trial.
    """
    if quality.reliability.is_reliable:
        return quality
    undisturbed_s = dict(_undisturbed(trials, quietest_reference_s, spare_cores))
    named = select_result(tuple(replace(trial, final=time) for trial, time in times), quality.noise)
    if named is None or not undisturbed_s:
        return quality
    limit_s = min(undisturbed_s.values()) * (1 + NOISE_LIMIT)
    if max(named.measurement.median_s, undisturbed_s.get(named.best.id, 0.0)) <= limit_s:
        return quality
    reason = f"{KEPT}: {quality.reliability.reason}"
    return replace(quality, reliability=unreliable(reason), is_lost=True)


def is_kept(quality: RoundQuality | None) -> bool:
    """Returns whether a round was set aside because earlier, undisturbed times count; False for None."""
    return quality is not None and quality.is_lost and quality.reliability.reason.startswith(KEPT)


def is_disturbed(quality: RoundQuality | None) -> bool:
    """Returns whether a round has unreliable times: another round may have better ones. False for None."""
    has_times = quality is not None and (is_kept(quality) or not quality.is_lost)
    return has_times and quality is not None and not quality.reliability.is_reliable


def _undisturbed(
    trials: tuple[StoredTrial, ...], quietest_s: float | None, spare_cores: int
) -> Iterator[tuple[int, float]]:
    """Yields (id, seconds per call) of trials that a reliable round timed, or the search undisturbed."""
    for trial in trials:
        first = trial.record.outcome
        if trial.stale or not isinstance(first, Measurement):
            continue
        if trial.final is not None and trial.reliability.is_reliable:
            yield trial.id, trial.final.median_s
        elif first.is_complete and first.host is not None:
            alone = reliability_alone(first.host, quietest_reference_s=quietest_s, spare_cores=spare_cores)
            if not alone.unreliable:
                yield trial.id, first.median_s
