"""Compiled trials that no GPU has verified and timed yet."""

from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy import ColumnElement, and_, exists, or_, select
from sqlalchemy.orm import Session, aliased

from tuner.core.errors import REPEATABLE, Stage
from tuner.core.kernel_program import KernelProgram
from tuner.core.pending_trial import Origin, PendingTrial
from tuner.core.record import Verdict
from tuner.core.runs import StoredTrial, TrialQuery
from tuner.core.target_name import CUDA, SIMULATOR
from tuner.db import rows
from tuner.db.models import ArtifactRow, MachineRow, RunRow, TrialRow
from tuner.db.programs import stored_programs
from tuner.db.queries import trials_of_query

SIMULATED, COMPILED = f"{SIMULATOR}:", f"{CUDA}:"  # targets, before the chip


def pending_trials(session: Session, query: TrialQuery) -> tuple[PendingTrial, ...]:
    """Returns the compiled trials of a query that no GPU of their chip has timed or found wrong.

    These are trials that the simulator verified, which come first, and trials compiled on a machine without a
    GPU. Of trials of one problem with equal code only the first is returned; ``query.limit`` counts returned
    trials. Raises UsageError for an unknown status or sort.
    """
    chosen = trials_of_query(replace(query, limit=None)).where(
        _has_code(), _is_right_or_unknown(), ~_is_evaluated()
    )
    found = [(row, rows.trial_of(row, first, final)) for row, first, final in session.execute(chosen)]
    found.sort(key=lambda pair: not _verdict(pair[1]))
    by_code: dict[tuple[int, str], tuple[TrialRow, StoredTrial]] = {}
    for row, trial in found:
        by_code.setdefault((row.run.problem_id, row.artifact_sha256 or ""), (row, trial))
    kept = list(by_code.values())[: query.limit]
    programs = stored_programs(session, [row.artifact_sha256 for row, _ in kept])
    return tuple(_pending(row, trial, programs[row.artifact_sha256]) for row, trial in kept)


def _has_code() -> ColumnElement[bool]:
    is_kept = exists().where(ArtifactRow.sha256 == TrialRow.artifact_sha256)
    return and_(is_kept, TrialRow.script_sha256.is_not(None))


def _is_right_or_unknown() -> ColumnElement[bool]:
    """Selects trials that the simulator verified, and trials compiled for CUDA on a machine without a GPU."""
    return or_(
        and_(RunRow.target.startswith(SIMULATED), TrialRow.status == "verified"),
        and_(
            RunRow.target.startswith(COMPILED),
            TrialRow.stage == Stage.LOAD.value,
            MachineRow.physical_cores == 0,
        ),
    )


def _is_evaluated() -> ColumnElement[bool]:
    """Selects trials whose code or script was timed, or failed repeatably, on a GPU of the chip."""
    trial, run, machine = aliased(TrialRow), aliased(RunRow), aliased(MachineRow)
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
            or_(trial.status == "measured", trial.stage.in_([stage.value for stage in REPEATABLE])),
        )
        .correlate(TrialRow, RunRow)
    )


def _pending(row: TrialRow, trial: StoredTrial, program: KernelProgram) -> PendingTrial:
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
