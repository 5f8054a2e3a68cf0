"""The time that ranks a trial, stored in a column, so that an index finds the best of a million trials."""

from sqlalchemy import ColumnElement

from tuner.core.possible_outcome import LEAST_S
from tuner.core.record import Measurement
from tuner.db.models import FINAL, MeasurementRow, TrialRow


def is_ranked() -> ColumnElement[bool]:
    """Returns the SQL condition that a trial has a time by which it is ranked.

    A time of 0 s, which older databases may hold, does not count.
    """
    return TrialRow.ranked_s >= LEAST_S


def ranked_s(kind: str, measurement: Measurement | MeasurementRow) -> float | None:
    """Returns the median seconds by which a measurement ranks; None for an early-stopped first time.

    ``kind`` is FIRST, or FINAL for a time of the final re-measurement.
    """
    return measurement.median_s if kind == FINAL or measurement.is_complete else None


def rank(trial: TrialRow, measurements: list[MeasurementRow], answering: int) -> None:
    """Sets ``trial.ranked_s``: the seconds by which a trial is ranked, of its final time, else of its first.

    ``answering`` is the number of the run's selected timing round: final times of other rounds do not count.
    The value is None for a stale trial, and where there is only an early-stopped time or none.
    """
    counting = (each for each in measurements if each.kind != FINAL or each.round == answering)
    ranks = {each.kind: ranked_s(each.kind, each) for each in counting}
    final = ranks.pop(FINAL, None)
    best = next(iter(ranks.values()), None) if final is None else final
    trial.ranked_s = None if trial.stale is not None else best
