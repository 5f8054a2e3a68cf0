"""The bench made of child processes: several compile, one judges, timing is alone."""

from collections import deque
from dataclasses import dataclass

from tuner.core.bench import AbstractBench, BoundRecord, FinalTimes
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure
from tuner.core.target import Artifact, Effort, Script
from tuner.workers.available_time import TICK_S
from tuner.workers.child_process import sleep_until_news
from tuner.workers.compile_pool import CompilePool
from tuner.workers.evaluation import work_seed
from tuner.workers.group_timing import Group, RemeasurementRounds
from tuner.workers.in_flight import BenchOrder, Ticket
from tuner.workers.limits import Limits
from tuner.workers.measurement_worker import LockContext, MeasurementWorker, quiet_already
from tuner.workers.protocol import Reply, ServiceSpec


@dataclass
class _Job:
    number: int  # of the trial
    ticket: Ticket
    effort: Effort
    place: int | None = None  # in the pool; None: not given to it


class WorkerBench(AbstractBench):
    """Compiles candidates in parallel, judges them one by one in the order they were started.

    Use it in one thread, and close it: the children end with the thread that built it.
    """

    def __init__(
        self,
        order: BenchOrder,
        compile_spec: ServiceSpec,
        evaluation_spec: ServiceSpec,
        workers: int,
        limits: Limits,
        seed: int,
        turn: LockContext = quiet_already,  # of timing beside other tuners
    ) -> None:
        self._order = order
        self._limits = limits
        self._seed = seed
        self._finals = RemeasurementRounds(seed, self._recompiled, self._timed)
        self._jobs: deque[_Job] = deque()
        self._pool = CompilePool(compile_spec, workers, limits)
        self._evaluate = MeasurementWorker(
            evaluation_spec,
            limits.memory_bytes,
            meanwhile=self._meanwhile,
            quiet=self._pool.paused,
            turn=turn,
        )

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        """Binds the candidate and queues its script, unless that is known or under way."""
        job = _Job(number, Ticket(self._order, candidate), effort)
        is_repeated = any(other.ticket.script == job.ticket.script for other in self._jobs)
        if job.ticket.record is None and not is_repeated:
            job.place = self._pool.add(self._order.problem, job.ticket.script)
        self._jobs.append(job)

    def finish(self) -> BoundRecord:
        """Judges the oldest candidate while the others compile; they stand still while it is timed."""
        job = self._jobs.popleft()
        ticket = job.ticket
        if job.place is None:
            ticket.recall_script()  # the one of equal script is finished and stored by now
        if ticket.record is None:
            compiled = self._compiled(job.place or self._pool.add(self._order.problem, ticket.script))
            ticket.take_compiled(compiled.value, compiled.seconds)
        if ticket.record is None:
            problem, effort = self._order.problem, job.effort
            within_s = self._limits.evaluation_limit_s(problem, effort, effort.stop_above_s)
            seed = work_seed(self._seed, job.number)
            evaluated = self._evaluate.ask("evaluate", problem, ticket.artifact, effort, seed, within_s)
            ticket.take_evaluation(evaluated.value, evaluated.seconds)
        return ticket.finished

    def finals(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        """Times the finalists interleaved, once the scripts that come without code are compiled again."""
        return self._finals.times(top_trials, effort)

    def close(self) -> None:
        """Kills every child, whatever it is doing."""
        self._pool.close()
        self._evaluate.kill()
        self._jobs.clear()

    def _compiled(self, place: int) -> Reply:
        while (reply := self._pool.take(place)) is None:
            self._evaluate.poll()  # it may be starting
            self._sleep()
            self._pool.advance()
        return reply

    def _recompiled(self, scripts: tuple[Script, ...]) -> list[Artifact | Failure]:
        places = [self._pool.add(self._order.problem, script) for script in scripts]
        return [self._compiled(place).value for place in places]

    def _timed(
        self, group: Group, effort: Effort, seed: int, slowest_s: float | None
    ) -> FinalTimes | Failure:
        problem = self._order.problem
        within_s = self._limits.remeasurement_limit_s(problem, effort, slowest_s, group.size)
        found: FinalTimes | Failure = self._evaluate.ask(
            "finals", problem, group, effort, seed, within_s
        ).value
        return found

    def _meanwhile(self) -> None:
        self._pool.advance()
        self._sleep()

    def _sleep(self) -> None:
        sleep_until_news([*self._pool.children, *self._evaluate.children], TICK_S)
