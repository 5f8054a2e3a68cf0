"""Whether the times of a disturbed final re-measurement count, or quieter ones of the same run.

A machine that becomes busy after the search makes every time of the final re-measurement longer, and puts the
trials into any order. Then what was timed without a disturbance says more, though at other moments.
"""

from collections.abc import Iterator
from dataclasses import replace

from tuner.analysis.selected_result import select_result
from tuner.core.records import Measurement
from tuner.core.reliability import unreliable
from tuner.core.round_quality import NOISE_LIMIT, RoundQuality, reliability_alone
from tuner.core.trials import StoredTrial

KEPT = "the final re-measurement was disturbed, undisturbed times from before count"


def quality_that_counts(
    quality: RoundQuality,
    times: tuple[tuple[StoredTrial, Measurement], ...],
    trials: tuple[StoredTrial, ...],
    *,
    quietest_reference_s: float | None,  # least time of the run's reference kernel; None: not known
    spare_cores: int,  # without a timed thread
) -> RoundQuality:
    """Returns the quality of a round of ``times``, marked as lost where undisturbed times contradict it.

    They do where the round is unreliable, and its best trial was shown to be slower than another of
    ``trials``, all of the run, or took longer in the round than the fastest without a disturbance: by more
    than NOISE_LIMIT (5 %).
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
    """Returns whether a round has times, but undisturbed times from before count in their place."""
    return quality is not None and quality.is_lost and quality.reliability.reason.startswith(KEPT)


def is_disturbed(quality: RoundQuality | None) -> bool:
    """Returns whether a round has times, which are unreliable: another round may have better ones."""
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
