"""A stored result measured again: what audit, gate, check of a script and ``tuner judge`` share.

A candidate's script is made anew (``bind_again``) and evaluated in child processes (``runner_of``,
``evaluated``); ``timing_sessions`` then time its code interleaved with references: earlier code, or the
baseline library and the reference kernel.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import Failure
from tuner.core.interfaces import FINAL_EFFORT, BoundRecord, Effort, FinalTimes, Script
from tuner.core.problem import Problem
from tuner.core.records import Measurement, Record
from tuner.core.round_quality import RoundQuality, round_quality
from tuner.core.runs import Baseline, ChosenStrategy, Run
from tuner.core.trials import StoredTrial
from tuner.runtime.workers.runner import RunnerOrder
from tuner.targets.backends import Backends
from tuner.targets.target import Bind, RunnerSettings
from tuner.tuning.remeasurement import noise_of
from tuner.tuning.request import require_memory

if TYPE_CHECKING:
    from tuner.core.interfaces import AbstractRunner


Recall = Callable[[str, str], Record | None]  # (script_sha256, artifact_sha256), one "" -> known record
KNOWN_CODE = 0  # in place of a trial's ID in ``Record.reused_from``: the code of the stored result itself
VERIFYING = Effort(budget_s=0.0, min_samples=1, max_samples=1, has_extremes=True)  # the time is not used
SESSION_EFFORT = Effort(
    budget_s=0.1, min_samples=11, max_samples=60, has_extremes=True
)  # of each code, see ``timing_sessions``


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


def bind_again(backends: Backends, case: "EvaluationCase", strategy: ChosenStrategy, recorded: str) -> Bind:
    """Returns the function that makes a candidate's script with today's strategies.

    ``recorded``: the stored script, which is taken as it is where ``compiles_recorded_script``; "": none.
    """
    if recorded and compiles_recorded_script(strategy):
        return lambda _candidate: Script.of(recorded)
    target = backends.target(case.target)
    return target.bind((strategy,), case.problem, case.threads, target.machine(case.target))


def known_code(record: Record) -> Recall:
    """Returns a function (script_sha256, artifact_sha256) -> ``record`` if its code has that hash, else None.

    The script's hash is ignored: what is asked is whether the script still compiles to the same code.
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


def evaluated(
    runner: "AbstractRunner", candidate: Candidate, effort: Effort = FINAL_EFFORT, number: int = 0
) -> BoundRecord:
    """Compiles, verifies and times a candidate on a runner; returns its record with script and artifact.

    ``number``: of the trial, by which inputs are drawn. A failure is the outcome of the record, not an
    exception.
    """
    runner.start(number, candidate, effort)
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


@dataclass(frozen=True)
class TimingSession:
    """The times of one session: codes, baseline and reference kernel are timed interleaved."""

    times: tuple[Measurement, ...]  # of each code; the first two are of the same code
    baseline: Baseline | None
    quality: RoundQuality


def timing_sessions(
    runner: "AbstractRunner", codes: tuple[BoundRecord, ...], spare_cores: int
) -> Iterator[TimingSession | FinalTimes]:
    """Yields timing sessions without end; each loads all ``codes`` anew.

    The first two codes are the same: the difference of both times is the noise. A session in which a code has
    no time is yielded as its FinalTimes. ``spare_cores``: cores without a timed thread.
    """
    quietest_s = math.inf  # of the reference kernel
    while True:
        timed = runner.remeasure(codes, SESSION_EFFORT)
        times = tuple(time for time in timed.measured if time is not None)
        if len(times) < len(codes):
            yield timed
            continue
        host = times[0].host
        if host is not None:
            quietest_s = min(quietest_s, host.reference_s)
        quality = round_quality(
            noise_of(times[0], times[1]),
            None if timed.baseline is None else timed.baseline.measurement,
            host,
            quietest_reference_s=None if host is None else quietest_s,
            spare_cores=spare_cores,
        )
        yield TimingSession(times, timed.baseline, quality)


def failed_text(failure: Failure) -> str:
    """Returns the stage and the reason of a failure as a clause."""
    return f"fails at stage {failure.stage.value}: {failure.reason}"


def why_no_time(record: Record) -> str:
    """Returns why an evaluated candidate has no time, as a clause."""
    if isinstance(record.outcome, Failure):
        return failed_text(record.outcome)
    return "is verified, and nothing is timed here"
