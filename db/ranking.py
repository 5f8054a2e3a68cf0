"""The time that ranks a trial, stored in a column, so that an index finds the best of a million trials."""

from sqlalchemy import ColumnElement

from tuner.core.possible_outcome import LEAST_S
from tuner.core.record import Measurement
from tuner.db.models import FINAL, MeasurementRow, TrialRow


def is_ranked() -> ColumnElement[bool]:
    """Returns the condition that a trial has a rank; a time of 0 s, in an older database, is no rank."""
    return TrialRow.ranked_s >= LEAST_S


def ranked_s(kind: str, measurement: Measurement | MeasurementRow) -> float | None:
    """Returns the median by which a measurement ranks; None for a first timing that was stopped early."""
    return measurement.median_s if kind == FINAL or measurement.is_complete else None


def rank(trial: TrialRow, measurements: list[MeasurementRow], answering: int) -> None:
    """Sets a trial's ranking time from its measurements; None for a trial that is marked stale.

    ``answering`` is the selected round of its run: of the final times only that round's counts.
    """
    counting = (each for each in measurements if each.kind != FINAL or each.round == answering)
    ranks = {each.kind: ranked_s(each.kind, each) for each in counting}
    final = ranks.pop(FINAL, None)
    best = next(iter(ranks.values()), None) if final is None else final
    trial.ranked_s = None if trial.stale is not None else best
