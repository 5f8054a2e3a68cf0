"""The results database of the tuner: takes and returns values; one short transaction per call.

``Store`` is the face of this package: its methods open a transaction of ``database``, and leave the SQL to
``queries``, ``writes`` and ``rows``.
"""

import datetime
import uuid
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast, final

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from tuner.core.candidate import Candidate
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import Failure, UsageError
from tuner.core.machine import Machine
from tuner.core.programs import ProgramResult
from tuner.core.queries import (
    BestGroup,
    Counts,
    DatabaseInfo,
    Pruned,
    ReuseKey,
    RunBound,
    RunQuery,
    TrialQuery,
)
from tuner.core.records import CompileSeconds, Record
from tuner.core.requests import Campaign, CampaignMember, CampaignProposal, CampaignSettings
from tuner.core.roofline import Roofline
from tuner.core.round_quality import StoredRound, TimedRound
from tuner.core.runs import Baseline, Compiler, Run, RunSettings
from tuner.core.serialization import encode
from tuner.core.trials import Proposal, StoredTrial
from tuner.db import queries, refutations, rows, writes
from tuner.db.address import is_missing
from tuner.db.columns import candidate_from_json, json_value
from tuner.db.database import Database, stored_revision
from tuner.db.maintenance import Merge, backup
from tuner.db.models import CampaignRow, ProblemRow, RunRow, TrialRow
from tuner.db.pruning import prune
from tuner.db.rows import artifact_row, interned, stored_programs
from tuner.db.run_process import RUNNING, this_process

if TYPE_CHECKING:
    from tuner.db.queries import AnySelect

Row = TypeVar("Row", RunRow, TrialRow, CampaignRow)


READ_AT_ONCE = 500  # trials that are in memory as rows


@final
class Store:
    """An open results database. A call that returns has committed what it stored: no kill can lose it.

    For an id that the database does not have, ``proposals``, ``campaign_proposals`` and methods with a query
    return nothing; others raise UsageError unless they say otherwise. All raise UsageError when the file or
    server fails: full disk, lock, damage, lost connection. ``database``: for queries of other modules.
    """

    def __init__(self, database: Database, url: str) -> None:
        self.database = database
        self._url = url

    @classmethod
    def open(cls, url: str) -> Self:
        """Opens the results database at a path or URL; creates a missing file, upgrades an older schema."""
        return cls(Database.open(url), url)

    @classmethod
    def open_existing(cls, url: str) -> Self:
        """Opens the results database at a path or URL; upgrades an older schema, creates no file."""
        return cls(Database.open_existing(url), url)

    @classmethod
    def open_or_empty(cls, url: str) -> Self:
        """Opens the results database at a path or URL.

        If its file is missing, returns an empty database in memory.
        """
        return cls(Database.empty(url), url) if is_missing(url) else cls.open_existing(url)

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin_run(
        self,
        settings: RunSettings,
        machine: Machine,
        compiler: Compiler,
        tuner_version: str,
        load_average: float | None,
    ) -> int:
        """Stores a new run with status "running"; returns its id.

        ``load_average``: of the machine at the run's start; None: not known.
        """
        with self.database.writing() as session:
            run = _begun_run(session, settings, machine, compiler, tuner_version, load_average)
            session.flush()
            return run.id

    def begin_campaign(
        self,
        settings: CampaignSettings,
        members: tuple[CampaignMember, ...],
        machine: Machine,
        compiler: Compiler,
        tuner_version: str,
        load_average: float | None,
    ) -> int:
        """Stores a new campaign and its runs, with status "running"; returns the id of the campaign.

        ``load_average``: of the machine at its start; None: not known.
        """
        with self.database.writing() as session:
            campaign = writes.campaign_row(settings, _now())
            session.add(campaign)
            session.flush()
            for place, member in enumerate(members):
                run = _begun_run(session, member.settings, machine, compiler, tuner_version, load_average)
                run.campaign_id = campaign.id
                run.member_number = place
                run.member_name = member.name
                run.member_count = member.count
            return campaign.id

    def campaign(self, campaign_id: int) -> Campaign:
        with self.database.reading() as session:
            return writes.stored_campaign(session, _known(session, CampaignRow, campaign_id))

    def campaigns(self) -> tuple[Campaign, ...]:
        with self.database.reading() as session:
            campaigns = session.scalars(sa.select(CampaignRow).order_by(CampaignRow.id.desc())).all()
            return tuple(writes.stored_campaign(session, row) for row in campaigns)

    def campaigns_of_runs(self) -> dict[int, int]:
        """Returns run id -> campaign id; runs without a campaign are left out."""
        with self.database.reading() as session:
            pairs = sa.select(RunRow.id, RunRow.campaign_id).where(RunRow.campaign_id.is_not(None))
            return dict(cast("Sequence[tuple[int, int]]", session.execute(pairs).all()))

    def campaign_proposals(self, campaign_id: int) -> tuple[CampaignProposal, ...]:
        """Returns all candidates that a campaign has proposed, by number, with their outcomes."""
        with self.database.reading() as session:
            runs = session.scalars(sa.select(RunRow.id).where(RunRow.campaign_id == campaign_id)).all()
            selects = (queries.trials_of_query(TrialQuery(run=run)) for run in runs)
            trials = {trial.id: trial for select in selects for trial in _trials(session, select)}
            return writes.campaign_proposals(session, campaign_id, trials)

    def set_campaign_status(self, campaign_id: int, status: str) -> None:
        """Stores the status of a campaign and of its runs: "running", "done" or "interrupted"."""
        _require_status(status)
        with self.database.writing() as session:
            campaign = _known(session, CampaignRow, campaign_id)
            campaign.status = status
            if status == RUNNING:
                campaign.process = encode(this_process())
            of_runs = {"status": status, "process": campaign.process}
            session.execute(sa.update(RunRow).where(RunRow.campaign_id == campaign_id).values(of_runs))

    def set_campaign_seconds(self, campaign_id: int, seconds: float, search_s: float) -> None:
        """Stores the seconds of all sessions of a campaign, and the part that counts for its budget.

        An id that the database does not have is ignored.
        """
        with self.database.transaction() as connection:
            writes.set_campaign_seconds(connection, campaign_id, seconds, search_s)

    def set_program_result(self, campaign_id: int, result: ProgramResult) -> None:
        with self.database.writing() as session:
            _known(session, CampaignRow, campaign_id).program_result = encode(result)

    def program_result(self, campaign_id: int) -> ProgramResult | None:
        """Returns how the program of a campaign was timed after its tuning.

        None if it was not timed, or if the campaign did not tune a program.
        """
        with self.database.reading() as session:
            return json_value(ProgramResult, _known(session, CampaignRow, campaign_id).program_result)

    def extend_campaign(self, campaign_id: int, trials: int | None, budget_s: float | None) -> None:
        """Replaces the limits of a campaign: number of trials, and seconds; None means no limit."""
        with self.database.writing() as session:
            campaign = _known(session, CampaignRow, campaign_id)
            campaign.trials = trials
            campaign.budget_s = budget_s

    def resume_run(self, run_id: int) -> None:
        """Sets the status of a run to "running", with this process as the one that works on it."""
        with self.database.writing() as session:
            run = _known(session, RunRow, run_id)
            run.status = RUNNING
            run.process = encode(this_process())

    def set_compiler(self, run_id: int, compiler: Compiler) -> None:
        """Stores that ``compiler`` makes the code of all trials of a run.

        Other runs by this compiler may then reuse the outcomes of these trials.
        """
        with self.database.writing() as session:
            run = _known(session, RunRow, run_id)
            run.environment = interned(session, rows.environment_row(compiler))

    def extend_run(self, run_id: int, trials: int | None, budget_s: float | None) -> None:
        """Replaces the limits of a run: number of trials, and seconds; None means no limit."""
        with self.database.writing() as session:
            run = _known(session, RunRow, run_id)
            run.trials = trials
            run.budget_s = budget_s

    def finish_run(self, run_id: int, status: str, seconds: float) -> None:
        """Stores the status with which a session of a run ended, and adds ``seconds`` to the run's seconds.

        ``seconds``: of this session, without those that were stored already. Raises ValueError unless the
        status is "done", "running" or "interrupted".
        """
        _require_status(status)
        with self.database.writing() as session:
            run = _known(session, RunRow, run_id)
            run.status = status
            run.seconds = (run.seconds or 0.0) + seconds

    def add_search(self, run_id: int, search_s: float, idle_s: float) -> None:
        """Adds the times of a session to ``Run.search_s`` and ``Run.idle_s``, in seconds of wall time."""
        with self.database.writing() as session:
            run = _known(session, RunRow, run_id)
            run.search_s = (run.search_s or 0.0) + search_s
            run.idle_s = (run.idle_s or 0.0) + idle_s

    def set_baseline(self, run_id: int, baseline: Baseline) -> None:
        """Stores the baseline's time for a run without timing rounds; replaces an earlier time."""
        with self.database.writing() as session:
            writes.put_baseline(session, _known(session, RunRow, run_id), baseline)

    def set_roofline(self, run_id: int, roofline: Roofline) -> None:
        """Stores a run's roofline (peak arithmetic rate and bandwidth), in place of an earlier one."""
        with self.database.writing() as session:
            _known(session, RunRow, run_id).roofline = encode(roofline)

    def known_roofline(self, run_id: int) -> Roofline | None:
        """Returns a stored roofline for a run's machine, target, threads and multiplied dtype.

        A run is quiet if its noise is known and its times are not unreliable. The roofline is that of the
        latest quiet run; if there is none and this run is not quiet either, that of the latest run. None if
        there is no such run, or if the stored numbers are impossible.
        """
        with self.database.reading() as session:
            return rows.roofline_of(session.scalar(queries.rooflines_like(run_id)))

    def propose(
        self,
        run_id: int,
        number: int,
        row: int,
        candidate: Candidate,
        run_seconds: float | None = None,
        in_campaign: tuple[int, Candidate] | None = None,
    ) -> int:
        """Stores a candidate that a run proposes, before it is evaluated; returns the id of the new trial.

        ``row``: the candidate's index in the feasible set. ``run_seconds``: of the run so far (None: not
        stored). ``in_campaign``: (number in the campaign, configuration before projection). Raises UsageError
        if the run has a trial ``number`` already: another process works on the run.
        """
        with self.database.transaction() as connection:
            latest = writes.latest_moment(connection, run_id) if _is_id(run_id) else None
            if latest is None:
                raise _unknown(connection, RunRow, run_id)
            try:
                moment = max(_now(), latest)  # the clock may have been set back: trials stay in order
                trial_id = writes.add_proposal(connection, run_id, number, row, candidate, moment)
            except IntegrityError as error:
                raise UsageError(
                    f"trial {number} was proposed already: another process works on run {run_id}"
                ) from error
            if in_campaign is not None:
                writes.put_in_campaign(connection, trial_id, *in_campaign, candidate)
            if run_seconds is not None:  # a kill before the first outcome loses no time of the budget
                writes.set_seconds(connection, run_id, run_seconds)
            return trial_id

    def record(
        self, trial_id: int, record: Record, script_text: str, run_seconds: float | None = None
    ) -> None:
        """Stores the outcome of a proposed trial, with its script and its compiled GPU program.

        ``script_text``: "" if the candidate was not bound. ``run_seconds``: of the run so far (None: not
        changed). Raises UsageError if an outcome is stored already, ValueError for a record of another
        candidate or script.
        """
        is_bound = bool(record.script_sha256 or script_text)
        sha256 = rows.script_sha256(script_text) if is_bound else ""
        if record.script_sha256 != sha256:
            raise ValueError(
                f"script: found hash {record.script_sha256!r}, allowed that of its text, {sha256!r}"
            )
        with self.database.transaction() as connection:
            proposed = writes.proposal(connection, trial_id) if _is_id(trial_id) else None
            if proposed is None:
                raise _unknown(connection, TrialRow, trial_id)
            run_id, candidate, has_outcome = proposed
            if has_outcome:
                raise UsageError(f"trial {trial_id} has an outcome already: another process works on its run")
            if candidate != record.candidate:
                raise ValueError(
                    f"trial {trial_id}: found an outcome of {record.candidate.text}, allowed {candidate.text}"
                )
            if record.script_sha256:
                writes.add_script(connection, record.script_sha256, script_text)
            if record.kernel_code is not None:
                with Session(connection) as session, session.begin():  # within the connection's transaction
                    interned(session, artifact_row(record.artifact_sha256, record.kernel_code))
            writes.add_outcome(connection, trial_id, record, _now())
            if run_seconds is not None:  # a kill loses no more of a budget than one trial
                writes.set_seconds(connection, run_id, run_seconds)

    def refute(self, trial_id: int, failure: Failure) -> tuple[int, ...]:
        """Makes a timed trial whose code is wrong, and trials of equal code, failed trials without a time.

        Returns the ids of these trials, of this run and of others. Raises UsageError if there is no trial
        with the id ``trial_id``.
        """
        with self.database.transaction() as connection:
            if not _is_id(trial_id) or writes.proposal(connection, trial_id) is None:
                raise _unknown(connection, TrialRow, trial_id)
            return refutations.refute(connection, trial_id, failure)

    def add_round(self, run_id: int, timed: TimedRound) -> None:
        """Stores a timing round of a run; from then on the times of its least disturbed round count."""
        with self.database.writing() as session:
            _known(session, RunRow, run_id)
            for trial_id, _ in timed.times:
                _known(session, TrialRow, trial_id)
            run = session.scalars(queries.run_select().where(RunRow.id == run_id)).one()
            writes.add_round(session, run, timed, _now())

    def rounds(self, run_id: int) -> tuple[StoredRound, ...]:
        """Returns the timing rounds (final re-measurements) of a run, by number."""
        with self.database.reading() as session:
            _known(session, RunRow, run_id)
            run = session.scalars(queries.run_select().where(RunRow.id == run_id)).one()
            return tuple(writes.stored_round(timing_round, run.round) for timing_round in run.rounds)

    def run(self, run_id: int) -> Run:
        with self.database.reading() as session:
            _known(session, RunRow, run_id)
            return rows.run_of(session.scalars(queries.run_select().where(RunRow.id == run_id)).one())

    def runs(self, limit: int | None = None) -> tuple[Run, ...]:
        """Returns the ``limit`` latest runs (None: all), the latest first.

        Raises UsageError for a limit below 1.
        """
        return self.matching_runs(RunQuery(limit=limit))

    def matching_runs(self, query: RunQuery) -> tuple[Run, ...]:
        """Returns the runs that match a query, the latest first.

        Raises UsageError for an unknown status and for a limit below 1.
        """
        with self.database.reading() as session:
            runs = map(rows.run_of, session.scalars(queries.queried_runs(query)))
            return tuple(islice((run for run in runs if query.status in (None, run.status)), query.limit))

    def unknown_problems(self) -> tuple[tuple[str, int], ...]:
        """Returns (key, number of runs) of the problems that another version stored and this one lacks."""
        with self.database.reading() as session:
            return tuple((key, runs) for key, runs in session.execute(queries.unknown_problems()))

    def trial(self, trial_id: int) -> StoredTrial:
        """Returns the trial with an id.

        Raises UsageError for an unknown id, and if the trial has no outcome.
        """
        with self.database.reading() as session:
            row = _known(session, TrialRow, trial_id)
            if row.status is None:
                line = f"trial {trial_id}: was proposed, its outcome never arrived"
                raise UsageError(line, f"tuner tune --resume {row.run_id}")
            return _trials(session, queries.trial_select().where(TrialRow.id == trial_id))[0]

    def code(self, trial_id: int) -> KernelCode | None:
        """Returns the stored code of a trial for a device; None for a trial on a CPU, or without code."""
        with self.database.reading() as session:
            sha256 = _known(session, TrialRow, trial_id).artifact_sha256
            return stored_programs(session, [sha256]).get(sha256)

    def trials(self, query: TrialQuery) -> tuple[StoredTrial, ...]:
        """Returns the trials with an outcome that match a query, sorted and limited as the query says.

        Raises UsageError for an unknown status or sort and a limit below 1, ValueError for ``query.best``.
        """
        with self.database.reading() as session:
            return _trials(session, queries.trials_of_query(query))

    def each_trial(self, query: TrialQuery) -> Iterator[StoredTrial]:
        """Yields the trials of a query, sorted and limited; only some hundred are in memory at once.

        The database is read until the last trial is taken: do not write to the database meanwhile.
        """
        with self.database.reading() as session:
            yield from _each_trial(session, queries.trials_of_query(query))

    def count_of_trials(self, query: TrialQuery) -> int:
        """Returns how many trials with an outcome match a query, without its limit, ``best`` and order."""
        with self.database.reading() as session:
            return session.scalars(queries.count_of_query(query)).one()

    def proposals(self, run_id: int) -> tuple[Proposal, ...]:
        """Returns all candidates that a run has proposed, by trial number, each with its outcome if any."""
        with self.database.reading() as session:
            trials = {
                trial.id: trial for trial in _trials(session, queries.trials_of_query(TrialQuery(run=run_id)))
            }
            return tuple(
                Proposal(id_, number, row, candidate_from_json(strategy, knobs), trials.get(id_))
                for id_, number, row, strategy, knobs in session.execute(queries.proposal_select(run_id))
            )

    def named_trials(self, ids: Collection[int], query: TrialQuery) -> tuple[StoredTrial, ...]:
        """Returns the trials with the given ids and an outcome, sorted and limited as the query says."""
        with self.database.reading() as session:
            return _trials(session, queries.named(ids, query))

    def fastest_trials(
        self, groups: Collection[BestGroup], strategies: Collection[str], limit: int
    ) -> tuple[StoredTrial, ...]:
        """Returns the ``limit`` fastest timed trials of each strategy in each group, the fastest first.

        () without groups. One statement reads them all, whatever the number of groups and strategies.
        """
        if not groups:
            return ()
        with self.database.reading() as session:
            return _trials(session, queries.fastest(groups, strategies, limit))

    def run_bounds(self, query: TrialQuery) -> tuple[RunBound, ...]:
        """Returns, for each run with ranked trials, a lower bound of its result's seconds: their least time.

        If trials of the run were re-measured, only these count; stale and early-stopped ones never do. Raises
        UsageError for an unknown status.
        """
        with self.database.reading() as session:
            return tuple(
                RunBound(run, BestGroup(*group), is_unreliable, least_s)
                for run, *group, is_unreliable, least_s in session.execute(queries.bounds(query))
            )

    def counts(self, run_id: int) -> Counts:
        """Returns the numbers of a run's trials: proposed, by outcome, and with a reused outcome."""
        with self.database.reading() as session:
            _known(session, RunRow, run_id)
            return Counts(*session.execute(queries.count_select(run_id)).one())

    def recall(
        self, key: ReuseKey, script_sha256: str | None = None, artifact_sha256: str | None = None
    ) -> StoredTrial | None:
        """Returns the latest trial of the same code and key whose outcome can be reused.

        None if there is none. A hash that is None is not compared; None is returned without any hash.
        Reusable are complete plausible measurements, verifications, and REPEATABLE failures, unless stale or
        reused themselves.
        """
        if not script_sha256 and not artifact_sha256:
            return None
        with self.database.connected() as connection:
            if connection.scalar(queries.same_code(script_sha256, artifact_sha256)) is None:
                return None  # the usual case: the query with all its joins takes many times as long
        with self.database.reading() as session:
            return next(iter(_trials(session, queries.recalled(key, script_sha256, artifact_sha256))), None)

    def info(self) -> DatabaseInfo:
        """Returns address, schema revision, number of runs and trials, and problems of the database."""
        with self.database.reading() as session:
            return DatabaseInfo(
                url=self.database.shown,
                revision=stored_revision(session.connection()) or "",
                runs=session.scalar(sa.select(sa.func.count(RunRow.id))) or 0,
                trials=session.scalar(sa.select(sa.func.count(TrialRow.id))) or 0,
                problems=tuple(session.scalars(sa.select(ProblemRow.key).order_by(ProblemRow.key))),
            )

    def mark_stale(self, trial_id: int, reason: str) -> None:
        """Marks a trial, and the trials that reuse its time, as stale: they are not ranked any more.

        ``reason``: why the time no longer holds.
        """
        with self.database.writing() as session:
            _known(session, TrialRow, trial_id)
            its = sa.or_(TrialRow.id == trial_id, TrialRow.reused_from_id == trial_id)
            session.execute(sa.update(TrialRow).where(its).values(stale=reason, ranked_s=None))

    def set_compile_seconds(self, trial_id: int, seconds: CompileSeconds) -> None:
        """Stores how many seconds each compiler pass of a trial took, in place of earlier times."""
        with self.database.writing() as session:
            _known(session, TrialRow, trial_id).compile_s = encode(seconds)

    def prune(self, before: datetime.datetime | None = None) -> Pruned:
        return prune(self.database, before)

    def backup(self, file: Path) -> None:
        """Writes a copy of the database to a new SQLite file, completely or not at all.

        Raises UsageError if the file exists or cannot be written.
        """
        backup(self.database, self._url, file)

    def merge(self, other_url: str) -> tuple[int, int]:
        """Adds the runs and trials of the database at the path or URL ``other_url``.

        Returns (runs added, trials added). Raises UsageError if the other database cannot be opened, or if
        one of its scripts was altered.
        """
        other = Database.open_existing(other_url)
        try:
            with other.reading() as theirs, self.database.writing() as ours:
                return Merge(ours, theirs).do()
        finally:
            other.close()


def _begun_run(
    session: Session,
    settings: RunSettings,
    machine: Machine,
    compiler: Compiler,
    tuner_version: str,
    load_average: float | None,
) -> RunRow:
    run = RunRow(
        uuid=str(uuid.uuid4()),
        created=_now(),
        status=RUNNING,
        process=encode(this_process()),
        tuner_version=tuner_version,
        load_average=load_average,
        **rows.settings_columns(settings),
    )
    run.problem = interned(session, rows.problem_row(settings.problem))
    run.machine = interned(session, rows.machine_row(machine))
    run.environment = interned(session, rows.environment_row(compiler))
    session.add(run)
    return run


def _require_status(status: str) -> None:
    if status not in queries.RUN_STATUSES:
        raise ValueError(f"status: found {status!r}, allowed {', '.join(queries.RUN_STATUSES)}")


def _known(session: Session, table: type[Row], row_id: int) -> Row:
    row = session.get(table, row_id) if _is_id(row_id) else None
    if row is None:
        raise _unknown(session.connection(), table, row_id)
    return row


def _is_id(row_id: int) -> bool:
    return abs(row_id) < 2**63  # a driver raises for what no database holds


def _unknown(connection: Connection, table: type[Row], row_id: int) -> UsageError:
    low, high = connection.execute(sa.select(sa.func.min(table.id), sa.func.max(table.id))).one()
    noun = "campaign" if table is CampaignRow else table.__tablename__
    allowed = f"none: the database has no {noun}" if low is None else f"{low} to {high}"
    hint = "tuner tune --shapes FILE stores one" if low is None and table is CampaignRow else ""
    return UsageError(f"{noun}: found {row_id}, allowed {allowed}", hint)


def _trials(session: Session, chosen: "AnySelect") -> tuple[StoredTrial, ...]:
    return tuple(_each_trial(session, chosen))


def _each_trial(session: Session, chosen: "AnySelect") -> Iterator[StoredTrial]:
    # the quietest moment of each run shows which times were disturbed
    quietest_s: dict[int, float | None] = {}
    selected = session.execute(chosen, execution_options={"yield_per": READ_AT_ONCE})
    for part in selected.partitions():
        alone = {row.run_id for row, first, final in part if first is not None and final is None}
        new = alone - quietest_s.keys()
        if new:
            quietest_s |= dict.fromkeys(new)
            quietest_s |= dict(map(tuple, session.execute(queries.quietest_reference_s(new))))
        for row, first, last in part:
            yield rows.trial_of(row, first, last, quietest_s.get(row.run_id))


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
