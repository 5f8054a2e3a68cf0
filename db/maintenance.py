"""Maintenance of a database: a backup while it is in use, and the deletion of trials that no result needs."""

import datetime
import os
import sqlite3
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import select
from sqlalchemy.engine import Connection
from sqlalchemy.orm import aliased

from tuner.core.errors import UsageError
from tuner.core.runs import Pruned
from tuner.db.address import FileAddress, parse_address, require_path
from tuner.db.database import Database
from tuner.db.engine import copy_pages, plain_errors
from tuner.db.merge import Merge
from tuner.db.models import FINAL, ArtifactRow, MeasurementRow, ResourcesRow, RunRow, ScriptRow, TrialRow
from tuner.db.queries import in_parts, is_ranked

PAGES = 2000  # copied in one step: other processes may write between two steps
SIDE_FILES = ("", "-wal", "-shm", "-journal")


def backup(database: Database, url: str, file: Path) -> None:
    """Writes a copy of an open results database to a new SQLite file, whole or not at all.

    A copy of a PostgreSQL server has empty tables of a fleet. Raises UsageError if ``file`` exists or fails.
    """
    require_path(str(file))
    if file.exists():
        raise UsageError(f"{file}: exists already")
    if not file.absolute().parent.is_dir():
        raise UsageError(f"{file}: no such directory")
    address = parse_address(url)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        if isinstance(address, FileAddress):
            _copy_file(database, temporary, file)
        else:
            _copy_rows(database, temporary)
        with temporary.open("rb") as copy:
            os.fsync(copy.fileno())
        try:
            os.link(temporary, file)  # fails where the file exists
        except OSError as error:
            raise UsageError(f"{file}: cannot be written: {error.strerror}") from error
    finally:
        for suffix in SIDE_FILES:
            Path(f"{temporary}{suffix}").unlink(missing_ok=True)


def _copy_file(database: Database, temporary: Path, file: Path) -> None:
    try:
        with plain_errors(database.shown), database.connected() as connection:
            copy_pages(connection, temporary, PAGES)
    except sqlite3.Error as error:  # of the copy: no place to write to, a full disk
        raise UsageError(f"{file}: cannot be written: {error}") from error


def _copy_rows(database: Database, file: Path) -> None:
    copy = Database.open(str(file))
    try:
        with database.reading() as theirs, copy.writing() as ours:
            Merge(ours, theirs).do()
    finally:
        copy.close()  # the last connection writes the log into the file


def prune(database: Database, before: datetime.datetime | None) -> Pruned:
    """Deletes trials of finished runs that no result needs; returns how many rows were deleted.

    Trials are deleted of runs with status "done" that began before ``before`` (None: all). Re-measured and
    verified trials, the fastest of each run, and those whose outcome a kept one reuses are kept. Each run is
    a transaction, the latest first: later runs reuse outcomes of earlier ones.
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
