"""Runners of candidates: in this process, or in child processes, several that compile, one that times.

A ``Ticket`` is one candidate on its way: script, artifact, record. ``LocalRunner`` works in this process;
``WorkerRunner`` takes ``RunnerProcesses``, a pool that compiles and a worker that measures.
"""

import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

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


class LocalRunner(AbstractRunner):
    """A runner in this process, one candidate at a time; a candidate that crashes ends the tuner."""

    def __init__(
        self, order: RunnerOrder, compiler: AbstractCompiler, evaluator: AbstractEvaluator, seed: int
    ) -> None:
        self._order = order
        self._compiler = compiler
        self._evaluator = evaluator
        self._seed = seed
        self._finals = RemeasurementRounds(seed, self._recompiled, self._timed)
        self._started: deque[tuple[int, Ticket, Effort]] = deque()

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        self._started.append((number, Ticket(self._order, candidate), effort))

    def finish(self) -> BoundRecord:
        number, ticket, effort = self._started.popleft()
        ticket.recall_script()
        if ticket.record is None:
            ticket.take_compiled(_attempt(Stage.COMPILE, lambda: self._compile(ticket.script)))
        if ticket.record is None and (artifact := ticket.artifact) is not None:
            problem = self._order.problem
            rng = np.random.default_rng(work_seed(self._seed, number))
            ticket.take_evaluation(
                _attempt(Stage.RUN, lambda: evaluate(self._evaluator, problem, artifact, effort, rng))
            )
        return ticket.finished

    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        return self._finals.times(top_trials, effort)

    def close(self) -> None:
        self._started.clear()

    def _compile(self, script: Script) -> Artifact:
        return self._compiler.compile(self._order.problem, script)

    def _recompiled(self, scripts: tuple[Script, ...]) -> list[Artifact | Failure]:
        return [_attempt(Stage.COMPILE, partial(self._compile, script)).value for script in scripts]

    def _timed(
        self, group: Group, effort: Effort, seed: int, _slowest_s: float | None
    ) -> FinalTimes | Failure:
        arguments = (self._evaluator, self._order.problem, group, effort, np.random.default_rng(seed))
        outcome: FinalTimes | Failure = _attempt(Stage.RUN, partial(time_together, *arguments)).value
        return outcome


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


@dataclass
class _Job:
    number: int  # of the trial
    ticket: Ticket
    effort: Effort
    queued: int | None = None  # number in the compile pool; None: not queued there


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


class WorkerRunner(AbstractRunner):
    """A runner with several compiling child processes, which stop while one that evaluates is timing.

    All child processes end with the thread that made the runner.
    """

    def __init__(self, order: RunnerOrder, processes: RunnerProcesses, seed: int) -> None:
        self._order = order
        self._processes = processes
        self._seed = seed
        self._finals = RemeasurementRounds(seed, self._recompiled, self._timed)
        self._jobs: deque[_Job] = deque()

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        job = _Job(number, Ticket(self._order, candidate), effort)
        is_repeated = any(other.ticket.script == job.ticket.script for other in self._jobs)
        if job.ticket.record is None and not is_repeated:
            job.queued = self._processes.pool.add(self._order.problem, job.ticket.script)
        self._jobs.append(job)

    def finish(self) -> BoundRecord:
        job = self._jobs.popleft()
        ticket = job.ticket
        if job.queued is None:
            ticket.recall_script()  # the candidate with an equal script is finished and stored by now
        if ticket.record is None:
            queued = job.queued or self._processes.pool.add(self._order.problem, ticket.script)
            ticket.take_compiled(self._processes.compiled(queued))
        if ticket.record is None:
            problem = self._order.problem
            effort = job.effort
            within_s = self._processes.limits.evaluation_limit_s(problem, effort, effort.stop_above_s)
            seed = work_seed(self._seed, job.number)
            ticket.take_evaluation(
                self._processes.evaluate.ask("evaluate", problem, ticket.artifact, effort, seed, within_s)
            )
        return ticket.finished

    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        return self._finals.times(top_trials, effort)

    def close(self) -> None:
        self._processes.close()
        self._jobs.clear()

    def _recompiled(self, scripts: tuple[Script, ...]) -> list[Artifact | Failure]:
        numbers = [self._processes.pool.add(self._order.problem, script) for script in scripts]
        return [self._processes.compiled(number).value for number in numbers]

    def _timed(
        self, group: Group, effort: Effort, seed: int, slowest_s: float | None
    ) -> FinalTimes | Failure:
        problem = self._order.problem
        within_s = self._processes.limits.remeasurement_limit_s(problem, effort, slowest_s, group.size)
        outcome: FinalTimes | Failure = self._processes.evaluate.ask(
            "remeasure", problem, group, effort, seed, within_s
        ).value
        return outcome
