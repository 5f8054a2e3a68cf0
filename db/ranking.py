"""What a trial is ranked by: one number beside it, so that the best of a million is found by an index."""

from sqlalchemy import ColumnElement

from tuner.core.possible_outcome import LEAST_S
from tuner.core.record import Measurement
from tuner.db.models import FINAL, MeasurementRow, TrialRow


def is_ranked() -> ColumnElement[bool]:
    """Returns the condition that a trial has a rank; a time of 0 s in an older database gives none."""
    return TrialRow.ranked_s >= LEAST_S


def ranked_s(kind: str, measurement: Measurement | MeasurementRow) -> float | None:
    """Returns the time that a measurement ranks by; a first timing that was cut short proves nothing."""
    return measurement.median_s if kind == FINAL or measurement.is_complete else None


def rank(trial: TrialRow, measurements: list[MeasurementRow], answering: int) -> None:
    """Sets a trial's rank from all its measurements; one whose time no longer holds has none.

    Of its timings among finalists the one of the round that answers counts.
    """
    counting = (each for each in measurements if each.kind != FINAL or each.round == answering)
    ranks = {each.kind: ranked_s(each.kind, each) for each in counting}
    final = ranks.pop(FINAL, None)
    best = next(iter(ranks.values()), None) if final is None else final
    trial.ranked_s = None if trial.stale is not None else best
