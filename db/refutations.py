"""Timed trials whose code was found wrong afterwards: they become failed trials, as does equal code.

A trial is timed in the search and verified on further inputs in the final re-measurement. Where that finds
the code wrong, no reader may see its time any more, nor that of a trial with equal code:

- of equal problem, target, threads, machine and tools, for which outcomes are reused: failed as well, and so
  are those of an equal script under equal sources;
- of the same problem with another target, number of threads, machine or tools: if timed, stale, to be
  evaluated again.
"""

import sqlalchemy as sa
from sqlalchemy import select
from sqlalchemy.engine import Connection

from tuner.core.errors import Failure
from tuner.db.models import Base

TRIAL, RUN, MACHINE, ENVIRONMENT, MEASUREMENT = (
    Base.metadata.tables[name] for name in ("trial", "run", "machine", "environment", "measurement")
)
TIMED_RUN = TRIAL.join(RUN, RUN.c.id == TRIAL.c.run_id)
FACTS = (TRIAL.c.artifact_sha256, TRIAL.c.script_sha256, RUN.c.problem_id, RUN.c.target, RUN.c.threads)
WORKED = ("measured", "verified")


def refute(connection: Connection, trial_id: int, failure: Failure) -> tuple[int, ...]:
    """Makes a timed trial, and the trials with equal code, failed trials without a time.

    Returns all their ids. Timed trials of equal code for other tools, machines, targets or threads become
    stale instead.
    """
    of_machine = TIMED_RUN.join(MACHINE, MACHINE.c.id == RUN.c.machine_id)
    of_all = of_machine.join(ENVIRONMENT, ENVIRONMENT.c.id == RUN.c.environment_id)
    columns = (*FACTS, MACHINE.c.name, ENVIRONMENT.c.fingerprint, ENVIRONMENT.c.tools)
    trial = connection.execute(select(*columns).select_from(of_all).where(TRIAL.c.id == trial_id)).one()
    is_code = TRIAL.c.artifact_sha256 == trial.artifact_sha256  # unknown, NULL: equal to none
    is_script = TRIAL.c.script_sha256 == trial.script_sha256
    is_compiled_alike = ENVIRONMENT.c.fingerprint == trial.fingerprint
    # without tools: of before they were stored
    is_made_alike = sa.or_(is_compiled_alike, (ENVIRONMENT.c.tools == trial.tools) & (trial.tools != ""))
    is_alike = sa.and_(
        RUN.c.problem_id == trial.problem_id,
        RUN.c.target == trial.target,
        RUN.c.threads == trial.threads,
        MACHINE.c.name == trial.name,
        sa.or_(is_code & is_made_alike, is_script & is_compiled_alike),
        TRIAL.c.status.in_(WORKED),
    )
    alike = connection.scalars(select(TRIAL.c.id).select_from(of_all).where(is_alike)).all()
    others = [other for other in alike if other != trial_id]
    _fail(connection, [trial_id], failure, failure.reason)
    _fail(connection, others, failure, f"equal code failed as trial {trial_id}: {failure.reason}")
    is_elsewhere = sa.and_(
        RUN.c.problem_id == trial.problem_id,
        is_code,
        TRIAL.c.status == "measured",
        TRIAL.c.stale.is_(None),
    )
    elsewhere = connection.scalars(select(TRIAL.c.id).select_from(TIMED_RUN).where(is_elsewhere)).all()
    stale = f"equal code was wrong on another machine or by another compiler, as trial {trial_id}"
    connection.execute(sa.update(TRIAL).where(TRIAL.c.id.in_(elsewhere)).values(stale=stale, ranked_s=None))
    return (trial_id, *others)


def _fail(connection: Connection, trials: list[int], failure: Failure, reason: str) -> None:
    outcome = {"status": "failed", "stage": failure.stage.value, "reason": reason}
    nothing = dict.fromkeys(("max_error", "elements", "notes", "ranked_s"))
    connection.execute(sa.update(TRIAL).where(TRIAL.c.id.in_(trials)).values(**outcome, **nothing))
    connection.execute(sa.delete(MEASUREMENT).where(MEASUREMENT.c.trial_id.in_(trials)))
