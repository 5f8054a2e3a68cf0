"""Deletes trials of finished runs, except the trials that decide the run's result."""

import datetime

import sqlalchemy as sa
from sqlalchemy import ColumnElement, select
from sqlalchemy.engine import Connection
from sqlalchemy.orm import aliased

from tuner.core.runs import Pruned
from tuner.db.database import Database
from tuner.db.models import FINAL, ArtifactRow, MeasurementRow, ResourcesRow, RunRow, ScriptRow, TrialRow
from tuner.db.queries import in_parts
from tuner.db.ranking import is_ranked


def prune(database: Database, before: datetime.datetime | None) -> Pruned:
    """Deletes trials of finished runs that no result needs; returns how many rows were deleted.

    A run is finished if its status is "done"; only runs that began before ``before`` (a moment with a time
    zone; None: all) lose trials. Kept are re-measured trials, the fastest trial of each run, verified trials,
    and every trial whose outcome a kept trial reuses. Scripts and programs that no trial uses are deleted
    as well. One transaction per run, the latest run first: later runs reuse outcomes of earlier runs.
    """
    with database.connected() as connection:
        runs = connection.scalars(_done_before(before)).all()
    trials = 0
    for run in runs:
        with database.transaction() as connection:
            trials += _prune_run(connection, run)
    with database.transaction() as connection:
        return Pruned(trials, *_delete_unused(connection))


def _done_before(before: datetime.datetime | None) -> "sa.Select[int]":
    done = select(RunRow.id).where(RunRow.status == "done").order_by(RunRow.id.desc())
    return done if before is None else done.where(RunRow.created < before)


def _prune_run(connection: Connection, run: int) -> int:
    """Deletes trials of a run; returns how many."""
    doomed = set(connection.scalars(select(TrialRow.id).where(TrialRow.run_id == run, _is_not_needed(run))))
    while reused := _reused(connection, doomed):
        doomed -= reused
    parts = tuple(in_parts(sorted(doomed)))
    for ids in parts:
        connection.execute(sa.delete(MeasurementRow).where(MeasurementRow.trial_id.in_(ids)))
    for ids in parts:  # trials that reuse one another are deleted together
        reusing = TrialRow.reused_from_id
        connection.execute(sa.update(TrialRow).where(TrialRow.id.in_(ids)).values({reusing: None}))
    for ids in parts:
        connection.execute(sa.delete(TrialRow).where(TrialRow.id.in_(ids)))
    return len(doomed)


def _is_not_needed(run: int) -> ColumnElement[bool]:
    fastest = (
        select(TrialRow.id)
        .where(TrialRow.run_id == run, is_ranked())
        .order_by(TrialRow.ranked_s, TrialRow.id)
        .limit(1)
        .scalar_subquery()
    )
    final = select(MeasurementRow.id).where(
        MeasurementRow.trial_id == TrialRow.id, MeasurementRow.kind == FINAL
    )
    is_needed = sa.or_(
        final.exists(), TrialRow.id == sa.func.coalesce(fastest, -1), TrialRow.status == "verified"
    )
    return sa.not_(sa.func.coalesce(is_needed, sa.false()))


def _reused(connection: Connection, doomed: set[int]) -> set[int]:
    """Returns the ids among ``doomed`` whose outcome a kept trial reuses."""
    found: set[int] = set()
    for ids in in_parts(sorted(doomed)):
        asked = select(TrialRow.id, TrialRow.reused_from_id).where(TrialRow.reused_from_id.in_(ids))
        found |= {
            int(source) for reusing, source in connection.execute(asked) if source and reusing not in doomed
        }
    return found


def _delete_unused(connection: Connection) -> tuple[int, int]:
    """Deletes scripts and programs that no trial refers to; returns how many of each."""
    if (
        connection.dialect.name == "postgresql"
    ):  # another process that stores a script waits: its trial is stored after the script
        connection.execute(sa.text("LOCK TABLE script, artifact, resources IN SHARE ROW EXCLUSIVE MODE"))
    trial = aliased(TrialRow)
    names_script = select(trial.id).where(trial.script_sha256 == ScriptRow.sha256).exists()
    names_code = select(trial.id).where(trial.artifact_sha256 == ArtifactRow.sha256).exists()
    unused = select(ArtifactRow.sha256).where(~names_code)
    connection.execute(sa.delete(ResourcesRow).where(ResourcesRow.artifact_sha256.in_(unused)))
    programs = connection.execute(sa.delete(ArtifactRow).where(~names_code))
    scripts = connection.execute(sa.delete(ScriptRow).where(~names_script))
    return scripts.rowcount, programs.rowcount
