"""Audit of the best trials: recompiled by today's compiler, verified, timed if their code has changed.

``audit`` recompiles each best trial and keeps its time if the code is the same. Else it times the code as
``tuner check SCRIPT`` does, relative to the references of the recorded round, and stores a run.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.analysis.ratios import Comparable
from tuner.analysis.selected_result import timed
from tuner.analysis.slowdown import SlowdownLimits
from tuner.core.errors import CandidateError, Failure, Stage, TunerError, UsageError, reason_of
from tuner.core.interfaces import BoundRecord, Script
from tuner.core.queries import TrialQuery
from tuner.core.records import Measurement
from tuner.core.serialization import seconds_text
from tuner.core.trials import StoredTrial
from tuner.results.best_trials import best_trials_here
from tuner.results.exported_trial import provenance_of
from tuner.results.regression.reevaluation import (
    EvaluationCase,
    bind_again,
    defect_of,
    evaluated,
    failed_text,
    known_code,
    runner_of,
    strategy_of,
)
from tuner.results.regression.script_check import CheckFinding, ScriptCheck, case_of, check_of
from tuner.targets.backends import Backends
from tuner.targets.target import Target
from tuner.version import __version__

if TYPE_CHECKING:
    from tuner.db.store import Store


BEST_TRIALS_OF_A_PROBLEM = 8  # as many as the final re-measurement of a run


class AuditStatus(enum.Enum):
    """The outcome of an audit, which recompiles a best trial with today's compiler."""

    UNCHANGED = "unchanged"  # the same script, the same compiler: the time holds
    SAME_CODE = "same code"  # recompiled to equal code: the time holds
    # changed code, correct, its time stored; not slower than recorded, or recorded without a reliable time
    TIMED_AGAIN = "timed again"
    SLOWER = "slower"  # changed code, correct and slower than recorded; its time is stored
    FAILED = "failed"  # no longer binds, compiles or runs, or the result is wrong
    # not run or timed here, or changed code of which a slowdown is neither shown nor ruled out
    NOT_EVALUATED = "not evaluated"

    @property
    def holds(self) -> bool:
        """True if the code is the same, or was timed again and took the place of the recorded time."""
        return self in (AuditStatus.UNCHANGED, AuditStatus.SAME_CODE, AuditStatus.TIMED_AGAIN)

    @property
    def makes_time_stale(self) -> bool:
        """True if today's code fails, or is other code and was timed: the recorded time is stale."""
        return self in (AuditStatus.TIMED_AGAIN, AuditStatus.SLOWER, AuditStatus.FAILED)


@dataclass(frozen=True)
class Audited:
    """A best trial, and the outcome of its audit by today's compiler."""

    trial: StoredTrial
    status: AuditStatus
    reason: str  # one line, to print
    now_s: float | None = None  # seconds per call of today's code; None: not compared
    run: int | None = None  # the run that stores today's outcome


def audit(
    backends: Backends, store: "Store", query: TrialQuery, limits: SlowdownLimits, seed: int = 0
) -> Iterator[Audited]:
    """Audits the best trials of this machine: recompiles and verifies them, and times changed code.

    Yields the outcome of each audited trial. Outcomes of changed code are stored as runs. A recorded time of
    other code becomes stale; then the next best trial is audited, up to 8 per problem. ``limits``: which
    slowdown counts as slower; ``seed``: of the random inputs.
    """
    done: set[int] = set()
    for _ in range(BEST_TRIALS_OF_A_PROBLEM):
        next_best_trials = [
            trial for trial in best_trials_here(store, backends, query) if trial.id not in done
        ]
        if not next_best_trials:
            return
        for trial in next_best_trials:
            done.add(trial.id)
            audited = _audited(backends, store, trial, limits, seed)
            if audited.run is not None:
                done |= {stored.id for stored in store.trials(TrialQuery(run=audited.run))}
            if audited.status.makes_time_stale and store.trial(trial.id).best_s is not None:
                store.mark_stale(trial.id, f"{audited.status.value} in an audit: {audited.reason}")
            yield audited


def _audited(
    backends: Backends, store: "Store", trial: StoredTrial, limits: SlowdownLimits, seed: int
) -> Audited:
    record = trial.record
    run = store.run(trial.run)
    target = backends.target(record.target)
    compiler = target.compiler(record.target)
    case = EvaluationCase(record.problem, record.target, trial.threads, seed)
    try:
        script = bind_again(backends, case, strategy_of(run, trial), trial.script_text)(record.candidate)
    except CandidateError as error:
        return Audited(trial, AuditStatus.FAILED, f"at stage {error.stage.value}: {error.reason}")
    except UsageError as error:
        return Audited(trial, AuditStatus.FAILED, str(error))
    except TunerError as error:  # of this machine, not of the trial: a worker that cannot start
        return Audited(trial, AuditStatus.NOT_EVALUATED, str(error))
    if script.sha256 == record.script_sha256 and compiler.fingerprint == run.compiler.fingerprint:
        unchanged = Audited(trial, AuditStatus.UNCHANGED, "the same script and compiler")
        return _verified_again(backends, store, unchanged, script, seed)
    provenance = provenance_of(store, trial)
    check = None
    try:
        recorded_case = case_of(backends, provenance, seed)
        with runner_of(backends, recorded_case, lambda _candidate: script, known_code(record)) as runner:
            bound = evaluated(runner, record.candidate)
            if bound.record.reused_from is None and isinstance(bound.record.outcome, Measurement):
                check = check_of(backends, runner, bound, provenance, limits)
    except TunerError as error:
        return Audited(trial, AuditStatus.NOT_EVALUATED, str(error))
    if bound.record.reused_from is not None:
        changes = run.compiler.changes_to(compiler)
        if script.sha256 != record.script_sha256:
            changes += ("the script",)
        same = Audited(trial, AuditStatus.SAME_CODE, f"although changed: {', '.join(changes)}")
        return _verified_again(backends, store, same, script, seed)
    return _with_outcome(backends, store, trial, bound, target, check)


def _verified_again(
    backends: Backends, store: "Store", audited: Audited, script: Script, seed: int
) -> Audited:
    """Verifies code that has not changed; returns ``audited`` if it is right, or cannot run here.

    Else FAILED, and the stored trial becomes a failed one; NOT_EVALUATED if the code could not be verified.
    """
    trial = audited.trial
    record = audited.trial.record
    if not backends.target(record.target).status().is_available:
        return audited
    case = EvaluationCase(record.problem, record.target, trial.threads, seed)
    try:
        failure = defect_of(backends, case, script, record.candidate)
    except TunerError as error:
        return Audited(trial, AuditStatus.NOT_EVALUATED, str(error))
    if failure is None:
        return audited
    store.refute(trial.id, replace(failure, reason=reason_of(f"in a later check: {failure.reason}")))
    return Audited(trial, AuditStatus.FAILED, failed_text(failure))


def _with_outcome(
    backends: Backends,
    store: "Store",
    trial: StoredTrial,
    bound: BoundRecord,
    target: Target,
    check: ScriptCheck | None,  # None: it has no time
) -> Audited:
    outcome = bound.record.outcome
    status = target.status()
    fails_to_compile = status.can_compile and isinstance(outcome, Failure) and outcome.stage is Stage.COMPILE
    if not status.is_available and not fails_to_compile:
        return Audited(trial, AuditStatus.NOT_EVALUATED, f"other code; {status.reason}")
    run = _stored(backends, store, trial, bound, target)
    if isinstance(outcome, Failure):
        return Audited(trial, AuditStatus.FAILED, failed_text(outcome), run=run)
    if not isinstance(outcome, Measurement) or check is None:
        reason = "other code, verified; nothing is timed here"
        return Audited(trial, AuditStatus.NOT_EVALUATED, reason, run=run)
    if check.finding is CheckFinding.FAILED:
        return Audited(trial, AuditStatus.FAILED, check.reason, run=run)
    reason = f"other code, recorded {seconds_text(timed(trial).median_s)}, {_compared_text(check)}"
    if check.finding is CheckFinding.SLOWER:
        return Audited(trial, AuditStatus.SLOWER, reason, check.median_s, run)
    if check.finding is CheckFinding.NOT_SLOWER or trial.reliability.unreliable:
        return Audited(trial, AuditStatus.TIMED_AGAIN, reason, check.median_s, run)
    return Audited(trial, AuditStatus.NOT_EVALUATED, reason, check.median_s, run)


def _compared_text(check: ScriptCheck) -> str:
    if check.finding not in (CheckFinding.SLOWER, CheckFinding.NOT_SLOWER):
        return f"cannot tell: {check.reason}"
    compared = check.compared
    longer = f", {compared.longer_text}" if isinstance(compared, Comparable) else ""
    return f"{check.finding.value} {check.reason}{longer}"


def _stored(
    backends: Backends, store: "Store", trial: StoredTrial, bound: BoundRecord, target: Target
) -> int:
    """Stores today's outcome as a run of one trial, of today's compiler; returns the run's ID."""
    record = bound.record
    settings = store.run(trial.run).settings
    settings = replace(
        settings, trials=1, budget_s=None, workers=1, first=None, prior="", warm_start=False, warm_files=()
    )
    run = store.begin_run(
        settings,
        target.machine(record.target),
        target.compiler(record.target),
        __version__,
        backends.load_average(),
    )
    stored = store.propose(run, 0, trial.row, record.candidate)
    store.record(stored, record, bound.script.text)
    store.finish_run(run, "done", sum(seconds for _, seconds in record.stage_s))
    return run
