"""Merges one results database into another, and copies a database to a file while it is in use.

``Merge`` goes through the other database's campaigns and runs, adds what this one lacks, and decides by
``_precedence`` and ``_take_better_times`` where both have a trial. ``backup`` copies pages of SQLite, or rows
of PostgreSQL.
"""

import contextlib
import datetime
import math
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar, final

from sqlalchemy import inspect, select
from sqlalchemy.orm import Session, selectinload

from tuner.core.errors import Refusal, Stage, UsageError
from tuner.core.plausibility import most_flop_per_s, why_impossible, why_no_verdict
from tuner.core.records import Verdict
from tuner.db.address import FileAddress, parse_address, require_path
from tuner.db.database import Database, copy_pages, plain_errors
from tuner.db.models import FIRST, Base, CampaignRow, MeasurementRow, RunRow, ScriptRow, TrialRow
from tuner.db.queries import rank, run_select
from tuner.db.rows import (
    artifact_row,
    interned,
    machine_of,
    measurement_of,
    problem_of,
    script_sha256,
    stored_programs,
)
from tuner.db.writes import select_round

# Copies one database's runs and trials into another: ids change, uuids of runs do not.

Row = TypeVar("Row", bound=Base)
PROGRESS = (
    *("status", "process", "seconds", "noise", "search_s", "idle_s", "baseline_name", "baseline_threads"),
    *("roofline", "trials", "budget_s"),  # a run may be extended
)
OUTCOME = (
    *("finished", "status", "stage", "reason", "max_error", "elements", "notes", "stage_s"),
    *("script_sha256", "artifact_sha256", "stale", "compile_s"),
)
PROPOSAL = ("number", "row", "strategy", "knobs", "proposed", "campaign_number", "unprojected")
OUTSIDE_ROUNDS = 0  # round of a baseline that was timed alone; rounds begin with 1
CAMPAIGN_PROGRESS = ("status", "process", "seconds", "search_s", "trials", "budget_s", "program_result")


@final
class Merge:
    """A merge of another results database into this one; a repeated merge adds nothing.

    Of two outcomes of a trial the earlier is kept; of two timings the one with the narrower interval; of two
    states of a run the one with more seconds. So databases may be merged in any order. Impossible outcomes of
    the other database become failures; its other impossible times are left out.
    """

    def __init__(self, ours: Session, theirs: Session) -> None:
        self._ours = ours
        self._theirs = theirs
        self._runs_added = 0
        self._trials_added = 0
        self._campaigns: dict[int, int] = {}  # id of a campaign in their database -> id in ours
        self._trials: dict[int, TrialRow] = {}  # id in their database -> row in ours
        # (row in ours, id in theirs of the trial whose outcome it reuses)
        self._reuses: list[tuple[TrialRow, int]] = []

    def do(self) -> tuple[int, int]:
        """Merges the other database into this one; the caller commits. Returns (runs added, trials added)."""
        for their_campaign in self._theirs.scalars(select(CampaignRow).order_by(CampaignRow.id)):
            self._campaigns[their_campaign.id] = self._campaign(their_campaign)
        for their_run in self._theirs.scalars(run_select().order_by(RunRow.id)):
            run = self._ours.scalars(run_select().where(RunRow.uuid == their_run.uuid)).one_or_none()
            if run is None:
                run = self._added_run(their_run)
            elif _progress(their_run, PROGRESS) > _progress(run, PROGRESS):
                self._take_progress(run, their_run)
            self._merge_trials(run, their_run)
        self._ours.flush()  # assigns ids to new rows
        for trial, their_id in self._reuses:
            trial.reused_from_id = self._trials[their_id].id
        return self._runs_added, self._trials_added

    def _campaign(self, theirs: CampaignRow) -> int:
        campaign = self._ours.scalars(
            select(CampaignRow).where(CampaignRow.uuid == theirs.uuid)
        ).one_or_none()
        if campaign is None:
            campaign = _copy(theirs)
            self._ours.add(campaign)
            self._ours.flush()
        elif _progress(theirs, CAMPAIGN_PROGRESS) > _progress(campaign, CAMPAIGN_PROGRESS):
            _assign(campaign, theirs, CAMPAIGN_PROGRESS)
        return campaign.id

    def _added_run(self, their_run: RunRow) -> RunRow:
        self._runs_added += 1
        run = _copy(their_run)
        run.problem = interned(self._ours, _copy(their_run.problem))
        run.machine = interned(self._ours, _copy(their_run.machine))
        run.environment = interned(self._ours, _copy(their_run.environment))
        run.rounds = []
        run.baselines = []
        run.campaign_id = None if their_run.campaign_id is None else self._campaigns[their_run.campaign_id]
        self._take_progress(run, their_run)
        self._ours.add(run)
        self._ours.flush()
        return run

    def _take_progress(self, run: RunRow, their_run: RunRow) -> None:
        _assign(run, their_run, PROGRESS)
        # baselines of rounds come with ``_merge_rounds``
        their_baselines = _possible(their_run.baselines, their_run)
        theirs = next((baseline for baseline in their_baselines if baseline.round == OUTSIDE_ROUNDS), None)
        ours = next((baseline for baseline in run.baselines if baseline.round == OUTSIDE_ROUNDS), None)
        if ours is not None and theirs is None:
            self._ours.delete(ours)
        elif ours is not None and theirs is not None:
            _assign(ours, theirs, _names(theirs))
        elif theirs is not None:
            run.baselines.append(_copy(theirs))

    def _merge_rounds(self, run: RunRow, their_run: RunRow) -> dict[int, int]:
        numbers = {OUTSIDE_ROUNDS: OUTSIDE_ROUNDS}  # number of a round in their run -> its number in ours
        known = {timing_round.started: timing_round.number for timing_round in run.rounds}
        baselines = {baseline.round: baseline for baseline in _possible(their_run.baselines, their_run)}
        for theirs in their_run.rounds:
            if theirs.started not in known:
                copy = _copy(theirs)
                if theirs.number:  # 0: of an older version of the tuner, in both databases
                    copy.number = 1 + max((timing_round.number for timing_round in run.rounds), default=0)
                run.rounds.append(copy)
                known[theirs.started] = copy.number
                if copy.number and theirs.number in baselines:
                    run.baselines.append(_of_round(baselines[theirs.number], copy.number))
            numbers[theirs.number] = known[theirs.started]
        select_round(run)
        return numbers

    def _merge_trials(self, run: RunRow, their_run: RunRow) -> None:
        rounds = self._merge_rounds(run, their_run)
        known = {trial.number: trial for trial in _trials(self._ours, run)}
        for their_trial in _trials(self._theirs, their_run):
            trial = known.get(their_trial.number)
            if trial is None:
                self._trials_added += 1
                trial = TrialRow(run_id=run.id, stage_s=[], measurements=[])
                self._take_trial(trial, their_trial, their_run, rounds)
                self._ours.add(trial)
            elif _precedence(their_trial) < _precedence(trial):
                self._take_trial(trial, their_trial, their_run, rounds)
            # the same outcome: it may have been timed again since
            elif _precedence(their_trial) == _precedence(trial):
                # max and min: choices that do not depend on the direction of the merge
                trial.stale = max(filter(None, (trial.stale, their_trial.stale)), default=None)
                timings = filter(None, (trial.compile_s, their_trial.compile_s))
                trial.compile_s = min(timings, key=str, default=None)
                _take_better_times(trial, _possible(their_trial.measurements, their_run), rounds)
            known[trial.number] = trial
            self._trials[their_trial.id] = trial
        for trial in known.values():
            rank(trial, trial.measurements, run.round)

    def _take_trial(
        self, trial: TrialRow, their_trial: TrialRow, their_run: RunRow, rounds: dict[int, int]
    ) -> None:
        if their_trial.script is not None:
            script = their_trial.script
            if script_sha256(script.text) != script.sha256:
                raise UsageError(f"trial {their_trial.id} of the other database: its script was altered")
            interned(self._ours, ScriptRow(sha256=script.sha256, text=script.text))
        # only a GPU program is stored; CPU code is in no database
        for sha256, program in stored_programs(self._theirs, [their_trial.artifact_sha256]).items():
            interned(self._ours, artifact_row(str(sha256), program))
        _assign(trial, their_trial, (*PROPOSAL, *OUTCOME))
        why = _why_impossible_trial(their_trial, their_run)
        if why is not None:  # an impossible outcome becomes a failure
            trial.status = "failed"
            trial.stage = Stage.MEASURE.value
            trial.reason = why.text
            trial.max_error = trial.elements = trial.notes = None
        trial.reused_from_id = None
        if their_trial.reused_from_id is not None:
            self._reuses.append((trial, their_trial.reused_from_id))
        possible = () if why is not None else _possible(their_trial.measurements, their_run)
        theirs = {_key(measurement, rounds): measurement for measurement in possible}
        for measurement in tuple(trial.measurements):  # in place of an earlier copy
            source = theirs.pop((measurement.kind, measurement.round), None)
            if source is None:
                self._ours.delete(measurement)
                trial.measurements.remove(measurement)  # ``rank`` must not count it
            else:
                _assign(measurement, source, _names(source))
                measurement.round = rounds[source.round]
        trial.measurements += [
            _of_round(measurement, rounds[measurement.round]) for measurement in theirs.values()
        ]


def _trials(session: Session, run: RunRow) -> Iterator[TrialRow]:
    chosen = select(TrialRow).where(TrialRow.run_id == run.id).order_by(TrialRow.id)
    yield from session.scalars(
        chosen.options(selectinload(TrialRow.script), selectinload(TrialRow.measurements))
    )


def _progress(row: RunRow | CampaignRow, columns: tuple[str, ...]) -> tuple[float, str]:
    return row.seconds or 0.0, repr([getattr(row, name) for name in columns])  # the columns break ties


def _precedence(trial: TrialRow) -> tuple[bool, datetime.datetime, bool, str]:
    """Returns the sort key of two copies of a trial, of which the one with the smaller key is kept."""
    # of a trial that was found wrong since, one copy may still have its times
    is_right = trial.status != "failed"
    moment = trial.finished or trial.proposed
    return trial.status is None, moment, is_right, f"{trial.strategy} {trial.knobs}"


def _why_impossible_trial(trial: TrialRow, run: RunRow) -> Refusal | None:
    if trial.elements is not None:
        verdict = Verdict(trial.max_error or 0.0, trial.elements)
        why = why_no_verdict(verdict, problem_of(run.problem))
        if why is not None:
            return why
    first = next((measurement for measurement in trial.measurements if measurement.kind == FIRST), None)
    return None if first is None else _why_impossible_time(first, run)


def _why_impossible_time(row: MeasurementRow, run: RunRow) -> Refusal | None:
    problem = problem_of(run.problem)
    limit_flop_per_s = most_flop_per_s(problem, machine_of(run.machine), run.threads)
    try:
        return why_impossible(measurement_of(row), problem, limit_flop_per_s)
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # columns of another type
        return Refusal(f"found a measurement that cannot be read ({type(error).__name__})")


def _possible(measurements: list[MeasurementRow], run: RunRow) -> tuple[MeasurementRow, ...]:
    return tuple(measurement for measurement in measurements if not _why_impossible_time(measurement, run))


def _take_better_times(trial: TrialRow, theirs: tuple[MeasurementRow, ...], rounds: dict[int, int]) -> None:
    ours = {(measurement.kind, measurement.round): measurement for measurement in trial.measurements}
    for measurement in theirs:
        same = ours.get(_key(measurement, rounds))
        if same is None:
            trial.measurements.append(_of_round(measurement, rounds[measurement.round]))
        elif _width(measurement) < _width(same):
            _assign(same, measurement, _names(measurement))
            same.round = rounds[measurement.round]


def _key(measurement: MeasurementRow, rounds: dict[int, int]) -> tuple[str, int]:
    return measurement.kind, rounds[measurement.round]  # our number of its round


def _width(measurement: MeasurementRow) -> tuple[float, float]:
    if not measurement.median_s > 0:  # in an older database
        return math.inf, 0.0
    return (measurement.high_s - measurement.low_s) / measurement.median_s, measurement.median_s


def _of_round(measurement: MeasurementRow, number: int) -> MeasurementRow:
    copy = _copy(measurement)
    copy.round = number
    return copy


def _copy(row: Row) -> Row:
    copy = type(row)()
    _assign(copy, row, _names(row))
    return copy


def _assign(row: Base, source: Base, names: tuple[str, ...]) -> None:
    for name in names:
        setattr(row, name, getattr(source, name))


def _names(row: Base) -> tuple[str, ...]:
    names: Any = inspect(type(row)).column_attrs.keys()  # of attributes: a column may have another name
    # ids differ between databases
    return tuple(name for name in names if name != "id" and not name.endswith("_id"))


PAGES = 2000  # copied in one step: other processes may write between two steps
SIDE_FILES = ("", "-wal", "-shm", "-journal")


def backup(database: Database, url: str, file: Path) -> None:
    """Writes a copy of an open results database to a new SQLite file, completely or not at all.

    ``url``: the path or URL by which ``database`` was opened.
    In the copy of a PostgreSQL database the tables of a fleet are empty. Raises UsageError if ``file`` exists
    or cannot be written.
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
        with contextlib.suppress(OSError):  # on a file system that is read only there is nothing to delete
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
