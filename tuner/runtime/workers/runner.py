"""Runners of candidates: in this process, or in child processes, several that compile, one that times.

A ``Ticket`` is one candidate on its way: script, artifact, record. ``TrialRunner`` leads tickets through an
``AbstractTrialWork``, the port for what compiles and evaluates: this process (``LocalWork``), the child
processes of ``RunnerProcesses`` (``ChildWork``), or the nodes of a fleet.
"""

import time
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import final

import numpy as np

from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.interfaces import (
    AbstractCompiler,
    AbstractEvaluator,
    AbstractRunner,
    Artifact,
    BoundRecord,
    Effort,
    FinalTimes,
    Script,
)
from tuner.core.problem import Problem
from tuner.core.records import Measurement, Record, Verdict
from tuner.runtime.workers.child_process import sleep_until_news
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.measurement_worker import LockContext, MeasurementWorker, nothing_to_quiet
from tuner.runtime.workers.pool import CompilePool
from tuner.runtime.workers.processes import TICK_S
from tuner.runtime.workers.protocol import Reply, ServiceSpec
from tuner.runtime.workers.services import (
    Group,
    RemeasurementRounds,
    evaluate,
    time_together,
    work_seed,
)


@dataclass(frozen=True)
class RunnerOrder:
    """Parts that a runner's candidates share: problem, target, functions to bind and to reuse outcomes."""

    problem: Problem
    target: TargetName
    bind: Callable[[Candidate], Script]  # raises CandidateError of Stage.BIND
    recall: Callable[[str, str], Record | None]  # (script_sha256, artifact_sha256), one of them "" -> record


class Ticket:
    """The progress of one candidate in a runner: its script, its artifact, and its record once complete."""

    def __init__(self, order: RunnerOrder, candidate: Candidate) -> None:
        self._order = order
        self._candidate = candidate
        self._stage_s: tuple[tuple[str, float], ...] = ()
        self.script = Script("", "")
        self.artifact: Artifact | None = None
        self.record: Record | None = None
        start = time.perf_counter()
        try:
            self.script = order.bind(candidate)
            self._stage_s += (("bind", time.perf_counter() - start),)
        except CandidateError as error:
            self._fail(error.failure, time.perf_counter() - start)
        self.recall_script()

    @property
    def finished(self) -> BoundRecord:
        """Returns the candidate's record with script and artifact. ``record`` must be set."""
        assert self.record is not None
        return BoundRecord(self.record, self.script, self.artifact)

    def recall_script(self) -> None:
        """Completes ``record`` with the outcome of an equal script, if one is known by now."""
        if self.record is None:
            self._reuse(self._order.recall(self.script.sha256, ""))

    def take_compiled(self, reply: Reply) -> None:
        """Stores the result of compiling, an Artifact or a Failure.

        Completes ``record`` after a failure, for code that may not be loaded, and for code with a known
        outcome.
        """
        outcome: Artifact | Failure = reply.value
        if isinstance(outcome, Failure):
            self._fail(outcome, reply.seconds)
            return
        self.artifact = outcome
        self._stage_s += outcome.stage_s
        if outcome.refusal is not None:
            self.record = self._record(outcome.refusal)
            return
        self._reuse(self._order.recall("", outcome.sha256))

    def take_evaluation(self, reply: Reply) -> None:
        """Completes ``record`` with the Measurement, Verdict or Failure that a child process returned."""
        if isinstance(reply.value, Failure):
            self._fail(reply.value, reply.seconds)
            return
        self._stage_s += reply.stage_s
        self.record = self._record(reply.value, reply.verdict)

    def _fail(self, failure: Failure, seconds: float) -> None:
        self._stage_s += ((failure.stage.value, seconds),)
        self.record = self._record(failure)

    def _reuse(self, known: Record | None) -> None:
        if known is None:
            return
        record = self._record(known.outcome, known.verdict)
        self.record = replace(
            record,
            artifact_sha256=record.artifact_sha256 or known.artifact_sha256,
            reused_from=known.reused_from,
            resources=record.resources or known.resources,
        )

    def _record(self, outcome: Measurement | Verdict | Failure, verdict: Verdict | None = None) -> Record:
        code = None
        if self.artifact is not None and self.artifact.code.is_for_device:
            code = self.artifact.code  # of the host it is compiled again
        return Record(
            problem=self._order.problem,
            candidate=self._candidate,
            target=self._order.target,
            outcome=outcome,
            script_sha256=self.script.sha256,
            artifact_sha256="" if self.artifact is None else self.artifact.sha256,
            stage_s=self._stage_s,
            verdict=verdict,
            resources=() if code is None else code.resources,
            kernel_code=code,
        )


class AbstractTrialWork(ABC):
    """A port: where the trials of one runner are compiled and evaluated."""

    @abstractmethod
    def begin(self, number: int, script: Script, effort: Effort) -> None:
        """Queues the script of trial ``number`` for compilation, if there is a queue; does not wait."""

    @abstractmethod
    def is_begun(self, number: int) -> bool:
        """Returns whether the script of trial ``number`` is compiled, or queued by ``begin``."""

    @abstractmethod
    def compiled(self, number: int, script: Script) -> Reply:
        """Waits until the script of trial ``number`` is compiled; the reply has an Artifact or a Failure."""

    @abstractmethod
    def evaluated(self, number: int, artifact: Artifact, effort: Effort, seed: int) -> Reply:
        """Waits until code is verified and timed; the reply has a Measurement, a Verdict or a Failure."""

    @abstractmethod
    def forget(self, number: int) -> None:
        """Drops what is kept or queued for trial ``number``, whose record is complete."""

    @abstractmethod
    def recompiled(self, scripts: tuple[Script, ...]) -> Sequence[Artifact | Failure | None]:
        """Compiles the scripts of earlier trials again; waits for all of them."""

    @abstractmethod
    def timed(self, group: Group, effort: Effort, seed: int, slowest_s: float | None) -> FinalTimes | Failure:
        """Times a group of codes interleaved; ``slowest_s``: seconds per call of the slowest, if known."""

    @abstractmethod
    def close(self) -> None:
        """Ends what works for this runner alone."""


@final
class TrialRunner(AbstractRunner):
    """The runner of trials: in the order in which they were started, each with what is known of its code."""

    def __init__(self, order: RunnerOrder, work: AbstractTrialWork, seed: int) -> None:
        self._order = order
        self._work = work
        self._seed = seed
        self._finals = RemeasurementRounds(seed, work.recompiled, work.timed)
        self._started: deque[tuple[int, Ticket, Effort]] = deque()

    @classmethod
    def local(
        cls, order: RunnerOrder, compiler: AbstractCompiler, evaluator: AbstractEvaluator, seed: int
    ) -> "TrialRunner":
        """Returns a runner in this process; a candidate that crashes ends the tuner."""
        return cls(order, LocalWork(order.problem, compiler, evaluator), seed)

    @classmethod
    def in_children(cls, order: RunnerOrder, processes: "RunnerProcesses", seed: int) -> "TrialRunner":
        """Returns a runner in child processes, which end with the thread that made the runner."""
        return cls(order, ChildWork(order.problem, processes), seed)

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        ticket = Ticket(self._order, candidate)
        # nothing is queued where the outcome is known, or an equal script of an unfinished trial is queued
        is_repeated = any(other.script == ticket.script for _, other, _ in self._started)
        if ticket.record is None and not is_repeated:
            self._work.begin(number, ticket.script, effort)
        self._started.append((number, ticket, effort))

    def finish(self) -> BoundRecord:
        number, ticket, effort = self._started[0]
        if not self._work.is_begun(number):
            ticket.recall_script()  # the candidate with an equal script is finished and stored by now
        if ticket.record is None:
            ticket.take_compiled(self._work.compiled(number, ticket.script))
        if ticket.record is None and (artifact := ticket.artifact) is not None:
            seed = work_seed(self._seed, number)
            ticket.take_evaluation(self._work.evaluated(number, artifact, effort, seed))
        self._work.forget(number)
        self._started.popleft()
        return ticket.finished

    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        return self._finals.times(top_trials, effort)

    def close(self) -> None:
        self._work.close()
        self._started.clear()


@final
class LocalWork(AbstractTrialWork):
    """Trials are compiled and evaluated in this process, one at a time."""

    def __init__(self, problem: Problem, compiler: AbstractCompiler, evaluator: AbstractEvaluator) -> None:
        self._problem = problem
        self._compiler = compiler
        self._evaluator = evaluator

    def begin(self, number: int, script: Script, effort: Effort) -> None:
        pass  # there is no queue

    def is_begun(self, number: int) -> bool:
        return False

    def compiled(self, number: int, script: Script) -> Reply:
        return _attempt(Stage.COMPILE, partial(self._compiler.compile, self._problem, script))

    def evaluated(self, number: int, artifact: Artifact, effort: Effort, seed: int) -> Reply:
        rng = np.random.default_rng(seed)
        return _attempt(Stage.RUN, partial(evaluate, self._evaluator, self._problem, artifact, effort, rng))

    def forget(self, number: int) -> None:
        pass

    def recompiled(self, scripts: tuple[Script, ...]) -> Sequence[Artifact | Failure | None]:
        return [self.compiled(0, script).value for script in scripts]

    def timed(self, group: Group, effort: Effort, seed: int, slowest_s: float | None) -> FinalTimes | Failure:
        arguments = (self._evaluator, self._problem, group, effort, np.random.default_rng(seed))
        outcome: FinalTimes | Failure = _attempt(Stage.RUN, partial(time_together, *arguments)).value
        return outcome

    def close(self) -> None:
        pass


def _attempt(stage: Stage, work: Callable[[], object]) -> Reply:
    start = time.perf_counter()
    value: object
    try:
        value = work()
    except CandidateError as error:
        value = error.failure
    except Exception as error:  # noqa: BLE001 - as in a child: one odd candidate is only a Failure
        value = Failure(stage, traceback.format_exception_only(error)[0].splitlines()[0])
    return replace(Reply.of(value), seconds=time.perf_counter() - start)


class RunnerProcesses:
    """The child processes of one runner, or of several runners of different problems, and their limits."""

    def __init__(
        self,
        compile_spec: ServiceSpec,
        evaluation_spec: ServiceSpec,
        workers: int,
        limits: Limits,
        exclusive: LockContext = nothing_to_quiet,  # held while timing: excludes other tuners
    ) -> None:
        self.limits = limits
        self.pool = CompilePool(compile_spec, workers, limits)
        self.evaluate = MeasurementWorker(
            evaluation_spec,
            limits.memory_bytes,
            meanwhile=self._meanwhile,
            quiet=self.pool.paused,
            exclusive=exclusive,
        )

    def compiled(self, number: int) -> Reply:
        """Waits until script ``number`` of the compile pool is compiled; returns the reply."""
        while (reply := self.pool.take(number)) is None:
            self.evaluate.poll()  # the child may be starting
            self._sleep()
            self.pool.advance()
        return reply

    def close(self) -> None:
        """Kills all child processes."""
        self.pool.close()
        self.evaluate.kill()

    def _meanwhile(self) -> None:
        self.pool.advance()
        self._sleep()

    def _sleep(self) -> None:
        sleep_until_news([*self.pool.children, *self.evaluate.children], TICK_S)


@final
class ChildWork(AbstractTrialWork):
    """Trials are compiled in several child processes, which stop while one that evaluates is timing."""

    def __init__(self, problem: Problem, processes: RunnerProcesses) -> None:
        self._problem = problem
        self._processes = processes
        self._queued: dict[int, int] = {}  # number of a trial -> its number in the compile pool

    def begin(self, number: int, script: Script, effort: Effort) -> None:
        self._queued[number] = self._processes.pool.add(self._problem, script)

    def is_begun(self, number: int) -> bool:
        return number in self._queued

    def compiled(self, number: int, script: Script) -> Reply:
        queued = self._queued.get(number)
        if queued is None:
            queued = self._processes.pool.add(self._problem, script)
        return self._processes.compiled(queued)

    def evaluated(self, number: int, artifact: Artifact, effort: Effort, seed: int) -> Reply:
        within_s = self._processes.limits.evaluation_limit_s(self._problem, effort, effort.stop_above_s)
        return self._processes.evaluate.ask("evaluate", self._problem, artifact, effort, seed, within_s)

    def forget(self, number: int) -> None:
        self._queued.pop(number, None)

    def recompiled(self, scripts: tuple[Script, ...]) -> Sequence[Artifact | Failure | None]:
        numbers = [self._processes.pool.add(self._problem, script) for script in scripts]
        return [self._processes.compiled(number).value for number in numbers]

    def timed(self, group: Group, effort: Effort, seed: int, slowest_s: float | None) -> FinalTimes | Failure:
        within_s = self._processes.limits.remeasurement_limit_s(self._problem, effort, slowest_s, group.size)
        outcome: FinalTimes | Failure = self._processes.evaluate.ask(
            "remeasure", self._problem, group, effort, seed, within_s
        ).value
        return outcome

    def close(self) -> None:
        self._processes.close()
