"""The compiled trials of a database that still wait for a GPU to evaluate them."""

from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy import ColumnElement, and_, exists, or_, select
from sqlalchemy.orm import Session, aliased

from tuner.core.candidate import CUDA, SIMULATOR
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import Stage
from tuner.core.queries import TrialQuery
from tuner.core.records import Verdict
from tuner.core.remote_results import Origin, PendingTrial
from tuner.core.trials import StoredTrial
from tuner.db import rows
from tuner.db.database import Database
from tuner.db.models import ArtifactRow, MachineRow, RunRow, TrialRow
from tuner.db.queries import trials_of_query, would_repeat
from tuner.db.rows import stored_programs

# targets, before the chip
SIMULATED = f"{SIMULATOR}:"
COMPILED = f"{CUDA}:"
# Without a GPU a run for one only compiles: its machine is the chip, which has no cores; trials end at LOAD.
IS_CHIP_ALONE = MachineRow.physical_cores == 0


def pending_trials(database: Database, query: TrialQuery) -> tuple[PendingTrial, ...]:
    """Returns the compiled trials of a query that no GPU of their chip has evaluated yet.

    First the trials that the simulator verified, then those compiled for CUDA without a GPU; one for each
    problem and code.
    """
    with database.reading() as session:
        return _pending_trials(session, query)


def _pending_trials(session: Session, query: TrialQuery) -> tuple[PendingTrial, ...]:
    has_program = exists().where(ArtifactRow.sha256 == TrialRow.artifact_sha256)
    is_verified = and_(RunRow.target.startswith(SIMULATED), TrialRow.status == "verified")
    is_compiled = and_(RunRow.target.startswith(COMPILED), TrialRow.stage == Stage.LOAD.value, IS_CHIP_ALONE)
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
            machine.physical_cores > 0,  # a real GPU
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
