"""Deletes the trials of finished runs that no result needs, with their scripts and programs."""

import datetime

import sqlalchemy as sa
from sqlalchemy import select
from sqlalchemy.engine import Connection
from sqlalchemy.orm import aliased

from tuner.core.queries import Pruned
from tuner.db.database import Database
from tuner.db.models import FINAL, ArtifactRow, MeasurementRow, ResourcesRow, RunRow, ScriptRow, TrialRow
from tuner.db.queries import in_parts, is_ranked


def prune(database: Database, before: datetime.datetime | None) -> Pruned:
    """Deletes trials of finished runs that no result needs; returns how many rows were deleted.

    Only of runs with status "done" that began before ``before`` (None: all). Kept are re-measured and
    verified trials, the fastest of each run, and trials whose outcome a kept one reuses. Each run is a
    transaction, the latest first, as later runs reuse outcomes of earlier ones.
    """
    with database.connected() as connection:
        done = select(RunRow.id).where(RunRow.status == "done").order_by(RunRow.id.desc())
        runs = connection.scalars(done if before is None else done.where(RunRow.created < before)).all()
    trials = 0
    for run in runs:
        with database.transaction() as connection:
            trials += _prune_run(connection, run)
    with database.transaction() as connection:
        return Pruned(trials, *_delete_unused(connection))


def _prune_run(connection: Connection, run: int) -> int:
    fastest = (
        select(TrialRow.id)
        .where(TrialRow.run_id == run, is_ranked())
        .order_by(TrialRow.ranked_s, TrialRow.id)
        .limit(1)
        .scalar_subquery()
    )
    of_trial = (MeasurementRow.trial_id == TrialRow.id, MeasurementRow.kind == FINAL)
    is_needed = sa.or_(
        select(MeasurementRow.id).where(*of_trial).exists(),
        TrialRow.id == fastest,
        TrialRow.status == "verified",
    )
    # NULL where the run has no fastest trial or the trial no status: then neither makes it needed
    is_doomed = sa.not_(sa.func.coalesce(is_needed, sa.false()))
    doomed = set(connection.scalars(select(TrialRow.id).where(TrialRow.run_id == run, is_doomed)))
    while reused := _reused(connection, doomed):
        doomed -= reused
    parts = tuple(in_parts(sorted(doomed)))
    for ids in parts:  # of all parts before any trial: trials of two parts may reuse one another
        connection.execute(sa.delete(MeasurementRow).where(MeasurementRow.trial_id.in_(ids)))
        reusing = TrialRow.reused_from_id
        connection.execute(sa.update(TrialRow).where(TrialRow.id.in_(ids)).values({reusing: None}))
    for ids in parts:
        connection.execute(sa.delete(TrialRow).where(TrialRow.id.in_(ids)))
    return len(doomed)


def _reused(connection: Connection, doomed: set[int]) -> set[int]:
    sources: set[int] = set()
    for ids in in_parts(sorted(doomed)):
        reusing = select(TrialRow.id, TrialRow.reused_from_id).where(TrialRow.reused_from_id.in_(ids))
        pairs = connection.execute(reusing)
        sources |= {int(source) for trial, source in pairs if source and trial not in doomed}
    return sources


def _delete_unused(connection: Connection) -> tuple[int, int]:
    if connection.dialect.name == "postgresql":
        # another process that stores a script waits: its trial is stored after the script
        connection.execute(sa.text("LOCK TABLE script, artifact, resources IN SHARE ROW EXCLUSIVE MODE"))
    trial = aliased(TrialRow)
    names_script = select(trial.id).where(trial.script_sha256 == ScriptRow.sha256).exists()
    names_code = select(trial.id).where(trial.artifact_sha256 == ArtifactRow.sha256).exists()
    unused = select(ArtifactRow.sha256).where(~names_code)
    connection.execute(sa.delete(ResourcesRow).where(ResourcesRow.artifact_sha256.in_(unused)))
    programs = connection.execute(sa.delete(ArtifactRow).where(~names_code))
    scripts = connection.execute(sa.delete(ScriptRow).where(~names_script))
    return scripts.rowcount, programs.rowcount
