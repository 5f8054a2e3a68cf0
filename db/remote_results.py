"""Remote measurement in the database: the trials that still wait for a GPU, and the import of results."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, final

import sqlalchemy as sa
from sqlalchemy import ColumnElement, and_, exists, or_, select
from sqlalchemy.orm import Session, aliased, selectinload

from tuner.core.candidate import CUDA, SIMULATOR, TargetName
from tuner.core.compiled_code import KernelCode, code_sha256
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.problem import Problem
from tuner.core.records import Record, Verdict
from tuner.core.remote_results import (
    TEXT,
    FinalTime,
    MeasuredTrial,
    MeasuringProvenance,
    Origin,
    PendingTrial,
    RemoteResults,
)
from tuner.core.runs import Imported, RemoteMeasurement, StoredTrial, TrialQuery
from tuner.core.serialization import encode
from tuner.db import rows
from tuner.db.models import ArtifactRow, MachineRow, ProblemRow, RunRow, TrialRow
from tuner.db.queries import run_select, trials_of_query, would_repeat
from tuner.db.refutations import refute
from tuner.db.rows import artifact_row, interned, stored_programs
from tuner.db.writes import add_outcome, add_proposal, put_baseline, put_final

# targets, before the chip
SIMULATED = f"{SIMULATOR}:"
COMPILED = f"{CUDA}:"


def pending_trials(session: Session, query: TrialQuery) -> tuple[PendingTrial, ...]:
    """Returns the compiled GPU trials of a query that no GPU has evaluated yet, one per problem and code.

    First those that the simulator verified, then those only compiled.
    """
    has_program = exists().where(ArtifactRow.sha256 == TrialRow.artifact_sha256)
    is_verified = and_(RunRow.target.startswith(SIMULATED), TrialRow.status == "verified")
    is_compiled = and_(
        RunRow.target.startswith(COMPILED), TrialRow.stage == Stage.LOAD.value, MachineRow.physical_cores == 0
    )
    chosen = trials_of_query(replace(query, limit=None)).where(
        has_program, TrialRow.script_sha256.is_not(None), or_(is_verified, is_compiled), ~_is_evaluated()
    )
    trials = [(row, rows.trial_of(row, first, final)) for row, first, final in session.execute(chosen)]
    trials.sort(key=lambda pair: not _verdict(pair[1]))
    by_code: dict[tuple[int, str], tuple[TrialRow, StoredTrial]] = {}
    for row, trial in trials:
        by_code.setdefault((row.run.problem_id, row.artifact_sha256 or ""), (row, trial))
    kept = list(by_code.values())[: query.limit]
    programs = stored_programs(session, [row.artifact_sha256 for row, _ in kept])
    return tuple(_pending(row, trial, programs[row.artifact_sha256]) for row, trial in kept)


def _is_evaluated() -> ColumnElement[bool]:
    """Returns the SQL condition that a trial's code or script was timed, or failed for good, on its chip."""
    trial = aliased(TrialRow)
    run = aliased(RunRow)
    machine = aliased(MachineRow)
    return exists(
        select(trial.id)
        .join(run, run.id == trial.run_id)
        .join(machine, machine.id == run.machine_id)
        .where(
            run.problem_id == RunRow.problem_id,
            run.target == sa.func.replace(RunRow.target, SIMULATED, COMPILED),
            machine.physical_cores > 0,
            or_(
                trial.artifact_sha256 == TrialRow.artifact_sha256,
                trial.script_sha256 == TrialRow.script_sha256,
            ),
            or_(trial.status == "measured", would_repeat(trial)),
        )
        .correlate(TrialRow, RunRow)
    )


def _pending(row: TrialRow, trial: StoredTrial, program: KernelCode) -> PendingTrial:
    record = trial.record
    return PendingTrial(
        origin=Origin(row.run.uuid, row.number),
        id=row.id,
        target=record.target.text,
        problem=record.problem,
        candidate=record.candidate,
        script_sha256=record.script_sha256,
        artifact_sha256=record.artifact_sha256,
        verdict=_verdict(trial),
        script_text=trial.script_text,
        program=program,
    )


def _verdict(trial: StoredTrial) -> Verdict | None:
    outcome = trial.record.outcome
    return outcome if isinstance(outcome, Verdict) else None


NAMESPACE: Final = uuid.UUID("6d7f3a52-8f0e-5c11-9b1e-2f6a74756e65")  # of the uuids of imported runs
# Columns that an imported run copies from the run whose candidates it times.
SETTINGS: Final = (
    *("problem_id", "environment_id", "tuner_version"),
    *("strategies", "warm_files", "first", *rows.OF_SETTINGS),
)


@final
class ResultsImport:
    """An import of a remote session's results.

    A repeated import adds nothing: uuids are derived from the session's.
    """

    def __init__(self, session: Session, provenance: MeasuringProvenance) -> None:
        self._session = session
        self._provenance = provenance
        self._runs: dict[str, RunRow] = {}  # by the uuid of the source run
        self._counts = Imported(0, 0, 0)

    def do(self, results: RemoteResults) -> Imported:
        for trial in results.trials:
            self._take(trial)
        for final_time in results.final_times:
            self._take_final(final_time)
        for floor in results.noises:
            for run in self._runs_of(floor.problem):
                run.noise = floor.noise
        for baseline_time in results.baselines:  # of several times of a problem the last one is kept
            for run in self._runs_of(baseline_time.problem):
                put_baseline(self._session, run, baseline_time.baseline)
        return self._counts

    def _take(self, trial: MeasuredTrial) -> None:
        source = self._source(trial)
        key = trial.origin.run
        if key not in self._runs:
            name = str(uuid.uuid5(NAMESPACE, f"{self._provenance.session} {key}"))
            stored = self._session.scalar(run_select().where(RunRow.uuid == name))
            self._runs[key] = stored or self._added_run(name, trial, source.run)
        run = self._runs[key]
        known = select(TrialRow.id).where(TrialRow.run_id == run.id, TrialRow.number == trial.origin.number)
        if self._session.scalar(known) is not None:
            self._counts = replace(self._counts, known=self._counts.known + 1)
            return
        connection = self._session.connection()
        trial_id = add_proposal(
            connection, run.id, trial.origin.number, source.row, trial.candidate, trial.finished
        )
        add_outcome(connection, trial_id, self._record(trial, TargetName.parse(run.target)), trial.finished)
        self._counts = replace(self._counts, trials=self._counts.trials + 1)

    def _source(self, trial: MeasuredTrial) -> TrialRow:
        of_run = (
            select(TrialRow)
            .join(TrialRow.run)
            .where(RunRow.uuid == trial.origin.run, TrialRow.number == trial.origin.number)
        )
        exported = self._session.scalar(of_run.options(selectinload(TrialRow.run)))
        if exported is not None:
            problem = self._session.get_one(ProblemRow, exported.run.problem_id)
            is_same = (
                exported.script_sha256 == trial.script_sha256
                and problem.key == trial.problem.key
                and rows.candidate_of(exported) == trial.candidate
            )
            if is_same:
                return exported
            raise UsageError(f"{_name(trial)}: found another candidate under this number, allowed the same")
        same_code = (
            select(TrialRow)
            .join(TrialRow.run)
            .join(RunRow.problem)
            .where(
                ProblemRow.key == trial.problem.key,
                TrialRow.script_sha256 == trial.script_sha256,
                TrialRow.artifact_sha256 == trial.artifact_sha256,
            )
            .order_by(TrialRow.id)
            .limit(1)
        )
        exported = self._session.scalar(same_code.options(selectinload(TrialRow.run)))
        if exported is None:
            raise UsageError(
                f"{_name(trial)}: found a trial that is not in this database, nor its script "
                f"{trial.script_sha256[:12]}; allowed results of what was exported from here"
            )
        return exported

    def _added_run(self, name: str, trial: MeasuredTrial, source: RunRow) -> RunRow:
        provenance = self._provenance
        run = RunRow(
            uuid=name, created=provenance.started, status="done", target=TargetName(CUDA, trial.chip).text
        )
        for column in SETTINGS:
            setattr(run, column, getattr(source, column))
        run.machine = interned(self._session, rows.machine_row(provenance.machine))
        run.elsewhere = encode(
            RemoteMeasurement(
                provenance.session, provenance.bundle, provenance.tuner, provenance.driver, trial.origin.run
            )
        )
        self._session.add(run)
        self._session.flush()
        self._counts = replace(self._counts, runs=self._counts.runs + 1)
        return self._session.scalars(run_select().where(RunRow.id == run.id)).one()

    def _record(self, trial: MeasuredTrial, target: TargetName) -> Record:
        artifact_sha256 = trial.artifact_sha256
        stored = stored_programs(self._session, [artifact_sha256]).get(artifact_sha256)
        if trial.code == TEXT and stored is not None and stored.binary:  # the driver refused the binary
            bare = replace(stored, binary=b"", resources=())
            artifact_sha256 = interned(self._session, artifact_row(code_sha256(bare), bare)).sha256
        return Record(
            problem=trial.problem,
            candidate=trial.candidate,
            target=target,
            outcome=trial.outcome,
            script_sha256=trial.script_sha256,
            artifact_sha256=artifact_sha256,
            stage_s=trial.stage_s,
            verdict=trial.verdict,
        )

    def _take_final(self, final_time: FinalTime) -> None:
        origin = final_time.origin
        trial = None
        if origin.run in self._runs:
            of_run = {"run_id": self._runs[origin.run].id, "number": origin.number}
            trial = self._session.scalar(select(TrialRow).filter_by(**of_run))
        if trial is None:
            raise UsageError(f"trial {origin.number}: timed again, found no first time of it")
        if isinstance(final_time.measurement, Failure):
            refute(self._session.connection(), trial.id, final_time.measurement)
        elif trial.status == "measured":  # not found wrong since
            put_final(self._session, trial.id, final_time.measurement)

    def _runs_of(self, problem: Problem) -> Iterator[RunRow]:
        for run in self._runs.values():
            if self._session.get_one(ProblemRow, run.problem_id).key == problem.key:
                yield run


def _name(trial: MeasuredTrial) -> str:
    return f"trial {trial.id} (run {trial.origin.run}, number {trial.origin.number})"
