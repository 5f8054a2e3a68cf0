"""Audit of the best trials: recompiled by today's compiler, verified, timed if their code has changed.

First what audit and gate share: an ``EvaluationCase``, and a runner that evaluates one candidate. Then
``audit``: it recompiles each best trial, keeps its time if the code is the same, else times it and stores a
run.
"""

import contextlib
import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.analysis.selected_result import timed
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import CandidateError, Failure, Stage, TunerError, UsageError, reason_of
from tuner.core.interfaces import FINAL_EFFORT, BoundRecord, Effort, Script
from tuner.core.problem import Problem
from tuner.core.queries import TrialQuery
from tuner.core.records import Measurement, Record
from tuner.core.round_quality import round_quality
from tuner.core.runs import ChosenStrategy, Run
from tuner.core.serialization import seconds_text
from tuner.core.trials import StoredTrial
from tuner.results.best_trials import best_trials_here
from tuner.runtime.workers.runner import RunnerOrder
from tuner.targets.backends import Backends
from tuner.targets.target import RunnerSettings, Target
from tuner.tuning.request import require_memory
from tuner.version import __version__

if TYPE_CHECKING:
    from tuner.core.interfaces import AbstractRunner
    from tuner.db.store import Store


Recall = Callable[[str, str], Record | None]  # (script_sha256, artifact_sha256), one "" -> known record
KNOWN_CODE = 0  # in place of a trial's ID in ``Record.reused_from``: the code of the audited trial itself
VERIFYING = Effort(budget_s=0.0, min_samples=1, max_samples=1, has_extremes=True)  # the time is not used
BEST_TRIALS_OF_A_PROBLEM = 8  # as many as the final re-measurement of a run


class AuditStatus(enum.Enum):
    """The outcome of an audit, which recompiles a best trial with today's compiler."""

    UNCHANGED = "unchanged"  # the same script, the same compiler: the time holds
    SAME_CODE = "same code"  # recompiled to equal code: the time holds
    TIMED_AGAIN = "timed again"  # changed code, correct and not slower than recorded; its time is stored
    SLOWER = "slower"  # changed code, correct and slower than recorded; its time is stored
    FAILED = "failed"  # no longer binds, compiles or runs, or the result is wrong
    NOT_EVALUATED = "not evaluated"  # not run or timed here, or changed code that was slower in a disturbance

    @property
    def holds(self) -> bool:
        """True if the trial is not slower today: the code is the same, or was timed and is not slower."""
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
    backends: Backends, store: "Store", query: TrialQuery, tolerated: float, seed: int = 0
) -> Iterator[Audited]:
    """Audits the best trials of this machine: recompiles and verifies them, and times changed code.

    Yields the outcome of each audited trial. Outcomes of changed code are stored as runs. A recorded time of
    other code becomes stale; then the next best trial is audited, up to 8 per problem. ``tolerated``:
    relative slowdown, 0.05 for 5 %.
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
            audited = _audited(backends, store, trial, tolerated, seed)
            if audited.run is not None:
                done |= {stored.id for stored in store.trials(TrialQuery(run=audited.run))}
            if audited.status.makes_time_stale and store.trial(trial.id).best_s is not None:
                store.mark_stale(trial.id, f"{audited.status.value} in an audit: {audited.reason}")
            yield audited


def _audited(backends: Backends, store: "Store", trial: StoredTrial, tolerated: float, seed: int) -> Audited:
    record = trial.record
    run = store.run(trial.run)
    target = backends.target(record.target)
    compiler = target.compiler(record.target)
    try:
        script = Script.of(trial.script_text)
        strategy = strategy_of(run, trial)
        if not compiles_recorded_script(strategy):
            machine = target.machine(record.target)
            bind = target.bind((strategy,), record.problem, trial.threads, machine)
            script = bind(record.candidate)
    except CandidateError as error:
        return Audited(trial, AuditStatus.FAILED, f"at stage {error.stage.value}: {error.reason}")
    except UsageError as error:
        return Audited(trial, AuditStatus.FAILED, str(error))
    except TunerError as error:  # of this machine, not of the trial: a worker that cannot start
        return Audited(trial, AuditStatus.NOT_EVALUATED, str(error))
    if script.sha256 == record.script_sha256 and compiler.fingerprint == run.compiler.fingerprint:
        unchanged = Audited(trial, AuditStatus.UNCHANGED, "the same script and compiler")
        return _verified_again(backends, store, unchanged, script, seed)
    case = EvaluationCase(record.problem, record.target, trial.threads, seed)
    try:
        with runner_of(backends, case, lambda _candidate: script, known_code(record)) as runner:
            bound = evaluated(runner, record.candidate)
    except TunerError as error:
        return Audited(trial, AuditStatus.NOT_EVALUATED, str(error))
    if bound.record.reused_from is not None:
        changes = run.compiler.changes_to(compiler)
        if script.sha256 != record.script_sha256:
            changes += ("the script",)
        same = Audited(trial, AuditStatus.SAME_CODE, f"although changed: {', '.join(changes)}")
        return _verified_again(backends, store, same, script, seed)
    return _with_outcome(backends, store, trial, bound, target, tolerated)


def _verified_again(
    backends: Backends, store: "Store", audited: Audited, script: Script, seed: int
) -> Audited:
    """Verifies code that has not changed; a trial that is found wrong becomes a failed one."""
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
    reason = f"fails at stage {failure.stage.value}: {failure.reason}"
    return Audited(trial, AuditStatus.FAILED, reason)


def _with_outcome(
    backends: Backends,
    store: "Store",
    trial: StoredTrial,
    bound: BoundRecord,
    target: Target,
    tolerated: float,
) -> Audited:
    outcome = bound.record.outcome
    status = target.status()
    fails_to_compile = status.can_compile and isinstance(outcome, Failure) and outcome.stage is Stage.COMPILE
    if not status.is_available and not fails_to_compile:
        return Audited(trial, AuditStatus.NOT_EVALUATED, f"other code; {status.reason}")
    run = _stored(backends, store, trial, bound, target)
    if isinstance(outcome, Failure):
        reason = f"fails at stage {outcome.stage.value}: {outcome.reason}"
        return Audited(trial, AuditStatus.FAILED, reason, run=run)
    if not isinstance(outcome, Measurement):
        reason = "other code, verified; nothing is timed here"
        return Audited(trial, AuditStatus.NOT_EVALUATED, reason, run=run)
    recorded = timed(trial)
    is_slower = outcome.interval_s[0] > recorded.interval_s[1] * (1 + tolerated)
    quality = round_quality(
        0.0,  # noise is not considered: only the machine's state decides
        None,
        outcome.host,
        quietest_reference_s=None if recorded.host is None else recorded.host.reference_s,
        spare_cores=trial.machine.physical_cores - trial.threads,
    )
    if is_slower and not quality.reliability.is_reliable:
        reason = f"other code, cannot tell: {quality.reliability.reason}"
        return Audited(trial, AuditStatus.NOT_EVALUATED, reason, run=run)
    compared = AuditStatus.SLOWER if is_slower else AuditStatus.TIMED_AGAIN
    reason = f"other code, recorded {seconds_text(recorded.median_s)} in another session"
    return Audited(trial, compared, reason, outcome.median_s, run)


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


def strategy_of(run: Run, trial: StoredTrial) -> ChosenStrategy:
    """Returns the strategy of a trial as its run chose it; a user's strategy has the path of its script."""
    name = trial.record.candidate.strategy
    return next(
        (strategy for strategy in run.settings.strategies if strategy.name == name), ChosenStrategy(name)
    )


def compiles_recorded_script(strategy: ChosenStrategy) -> bool:
    """Returns whether the stored script is compiled in place of a user's file.

    True if that file is gone, or if its knobs were opened again.
    """
    return strategy.path is not None and (strategy.reopens or not strategy.path.exists())


def known_code(record: Record) -> Recall:
    """Returns a function (script_sha256, artifact_sha256) -> ``record`` if its code has that hash, else None.

    The script's hash is ignored: the audit asks whether the script still compiles to the same code.
    """

    def recall(_script_sha256: str, artifact_sha256: str) -> Record | None:
        is_same = bool(artifact_sha256) and artifact_sha256 == record.artifact_sha256
        return replace(record, reused_from=KNOWN_CODE) if is_same else None

    return recall


@dataclass(frozen=True)
class EvaluationCase:
    """The problem, target, threads, seed, baseline and limits with which a candidate is evaluated."""

    problem: Problem
    target: TargetName
    threads: int
    seed: int = 0  # of the random inputs
    baseline: str = ""  # choice of the library that is timed with it; "": the default of the target
    timeout_s: float | None = None  # to compile a candidate, and to load and run it; None: the target's
    memory_bytes: int | None = None  # of a child process; None: the target's


@contextlib.contextmanager
def runner_of(
    backends: Backends,
    case: EvaluationCase,
    bind: Callable[[Candidate], Script],
    recall: Recall = lambda _script, _artifact: None,
) -> "Iterator[AbstractRunner]":
    """Context manager: gives a runner with one compile worker for ``case``, and closes it at the end.

    ``bind`` makes the script of a candidate; ``recall`` returns a known outcome of a script or code, else
    None. Raises UsageError if the problem needs more memory than there is.
    """
    require_memory(case.problem, backends.machine())
    order = RunnerOrder(case.problem, case.target, bind, recall)
    outcomes = backends.target(case.target).with_baseline(case.baseline)
    settings = RunnerSettings(case.threads, 1, case.seed)
    settings = replace(settings, timeout_s=case.timeout_s, memory_bytes=case.memory_bytes)
    runner = outcomes.runner(order, settings)
    try:
        yield runner
    finally:
        runner.close()


def evaluated(runner: "AbstractRunner", candidate: Candidate, effort: Effort = FINAL_EFFORT) -> BoundRecord:
    """Compiles, verifies and times a candidate on a runner; returns its record with script and artifact.

    A failure is the outcome of the record, not an exception.
    """
    runner.start(0, candidate, effort)
    return runner.finish()


def defect_of(
    backends: Backends, case: EvaluationCase, script: Script, candidate: Candidate
) -> Failure | None:
    """Compiles a script and verifies its code, on extreme inputs too.

    Returns the failure that shows a defect. None if the code is right, or if it failed for another reason,
    such as a timeout.
    """
    with runner_of(backends, case, lambda _candidate: script) as runner:
        outcome = evaluated(runner, candidate, VERIFYING).record.outcome
    if isinstance(outcome, Failure) and outcome.shows_a_defect:
        return outcome
    return None
