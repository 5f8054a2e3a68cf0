"""What every trial writes, as SQL statements: ORM objects for each row would take several times as long."""

import datetime
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tuner.core.candidate import Candidate
from tuner.core.record import Measurement, Record
from tuner.db.json_columns import stored_candidate
from tuner.db.models import FIRST, Base
from tuner.db.ranking import ranked_s
from tuner.db.rows import measurement_columns, outcome_columns

Owner = dict[str, int | str]  # columns: the trial or run of a measurement, its kind and round

RUN, TRIAL, SCRIPT, MEASUREMENT = (
    Base.metadata.tables[name] for name in ("run", "trial", "script", "measurement")
)
# SQLAlchemy has this clause per dialect only; SQLite and PostgreSQL spell it alike
ADD_SCRIPT = sa.text(
    "INSERT INTO script (sha256, text) VALUES (:sha256, :text) ON CONFLICT DO NOTHING"
).bindparams(sa.bindparam("text", type_=SCRIPT.c.text.type))


def latest_moment(connection: Connection, run_id: int) -> datetime.datetime | None:
    """Returns when a run's latest trial was proposed, or when the run began; None for an unknown run."""
    last = (
        sa.select(TRIAL.c.proposed).where(TRIAL.c.run_id == run_id).order_by(TRIAL.c.number.desc()).limit(1)
    )
    found = connection.execute(sa.select(RUN.c.created, last.scalar_subquery()).where(RUN.c.id == run_id))
    return max((moment for row in found for moment in row if moment is not None), default=None)


def add_proposal(
    connection: Connection, run_id: int, number: int, row: int, candidate: Candidate, now: datetime.datetime
) -> int:
    """Stores a proposed candidate as a new trial without an outcome; returns the trial's id.

    ``row`` is the index of the candidate in the run's feasible set. Raises IntegrityError of SQLAlchemy for a
    ``number`` that the run has already.
    """
    columns = {
        "run_id": run_id,
        "number": number,
        "row": row,
        "proposed": now,
        "strategy": candidate.strategy,
        "knobs": dict(candidate.choices),
    }
    trial_id: int = connection.scalars(sa.insert(TRIAL).returning(TRIAL.c.id), columns).one()
    return trial_id


def proposal(connection: Connection, trial_id: int) -> tuple[int, Candidate, bool] | None:
    """Returns (run id, candidate, whether the outcome is stored) of a trial; None for an unknown trial."""
    columns = (TRIAL.c.run_id, TRIAL.c.strategy, TRIAL.c.knobs, TRIAL.c.status)
    found = connection.execute(sa.select(*columns).where(TRIAL.c.id == trial_id)).one_or_none()
    if found is None:
        return None
    return found.run_id, stored_candidate(found.strategy, found.knobs), found.status is not None


def add_script(connection: Connection, sha256: str, text: str) -> None:
    """Stores the text of a script under its SHA-256 unless it is stored already."""
    connection.execute(ADD_SCRIPT, {"sha256": sha256, "text": text})


def add_outcome(connection: Connection, trial_id: int, record: Record, now: datetime.datetime) -> None:
    """Stores the outcome of a proposed trial, and its time if any; ``now`` is when it was complete.

    The script has to be stored already.
    """
    timed = record.outcome if isinstance(record.outcome, Measurement) else None
    rank = {"ranked_s": None if timed is None else ranked_s(FIRST, timed)}
    connection.execute(sa.update(TRIAL).where(TRIAL.c.id == trial_id), outcome_columns(record, now) | rank)
    if timed is not None:
        _add_measurement(connection, {"trial_id": trial_id, "kind": FIRST}, timed)


def put_measurement(
    connection: Connection, owner: Owner, measurement: Measurement, of_baseline: dict[str, Any] | None = None
) -> None:
    """Stores a measurement in place of an earlier one of the same owner, kind and round.

    ``owner`` maps columns to values: trial_id or run_id, kind, round. ``of_baseline``: the columns that only
    baselines have, is_interleaved and libraries.
    """
    connection.execute(sa.delete(MEASUREMENT).filter_by(**owner))
    _add_measurement(connection, {**owner, **(of_baseline or {"is_interleaved": False})}, measurement)


def _add_measurement(connection: Connection, columns: Mapping[str, Any], measurement: Measurement) -> None:
    connection.execute(sa.insert(MEASUREMENT), {**columns, **measurement_columns(measurement)})


def set_seconds(connection: Connection, run_id: int, seconds: float) -> None:
    """Stores how many seconds a run has taken over all sessions, in place of the earlier number."""
    connection.execute(sa.update(RUN).where(RUN.c.id == run_id), {"seconds": seconds})
