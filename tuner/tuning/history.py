"""Past trials by what users say of them, on the command line and in the Python API alike."""

import datetime
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from tuner.core.errors import UsageError
from tuner.core.moments import parse_moment, with_zone
from tuner.core.problem import SUM_DTYPES
from tuner.core.runs import StoredTrial, TrialQuery

if TYPE_CHECKING:
    from tuner.db.store import Store


def asked_query(**conditions: Any) -> TrialQuery:
    """Reads conditions that are named as a TrialQuery's fields. Raises UsageError."""
    allowed = tuple(field.name for field in fields(TrialQuery))
    for name in conditions:
        if name not in allowed:
            raise UsageError(f"history: found {name!r}, allowed {', '.join(allowed)}")
    if conditions.get("output") in SUM_DTYPES:
        conditions["output"] = ""  # as a Problem says it
    match conditions.get("since"):
        case str(text):
            conditions["since"] = parse_moment(text)
        case datetime.datetime() as moment:
            conditions["since"] = with_zone(moment)
    return TrialQuery(**conditions)


def past_trials(store: "Store", query: TrialQuery) -> tuple[StoredTrial, ...]:
    """Returns the trials asked for whose outcome arrived."""
    return tuple(trial for trial in store.trials(query) if trial.record is not None)
