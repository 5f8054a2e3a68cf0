"""Imports the results of a measurement on another machine into the database."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, final

from sqlalchemy import select
from sqlalchemy.orm import Session, selectinload

from tuner.core.candidate import CUDA, TargetName
from tuner.core.compiled_code import code_sha256
from tuner.core.errors import Failure, UsageError
from tuner.core.problem import Problem
from tuner.core.queries import Imported
from tuner.core.records import Record
from tuner.core.remote_results import TEXT, FinalTime, MeasuredTrial, MeasuringProvenance, RemoteResults
from tuner.core.runs import RemoteMeasurement
from tuner.core.serialization import encode
from tuner.db import rows
from tuner.db.database import Database
from tuner.db.models import ProblemRow, RunRow, TrialRow
from tuner.db.queries import run_select
from tuner.db.refutations import refute
from tuner.db.rows import artifact_row, interned, stored_programs
from tuner.db.writes import add_outcome, add_proposal, put_baseline, put_final

NAMESPACE: Final = uuid.UUID("6d7f3a52-8f0e-5c11-9b1e-2f6a74756e65")  # of the uuids of imported runs
# Columns that an imported run copies from the run whose candidates it times.
SETTINGS: Final = (
    *("problem_id", "environment_id", "tuner_version"),
    *("strategies", "warm_files", "first", *rows.OF_SETTINGS),
)


def import_results(database: Database, results: RemoteResults) -> Imported:
    """Stores the results of a measurement on another machine, as runs of target cuda.

    Returns how many runs and trials were added, and how many trials were stored before: a repeated import
    adds nothing. Raises UsageError, and stores nothing, for an unknown trial.
    """
    with database.writing() as session:
        return _ResultsImport(session, results.provenance).do(results)


@final
class _ResultsImport:
    """An import of a remote session's results; a repeated import adds nothing.

    The uuids of its runs are derived from the session's uuid.
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
