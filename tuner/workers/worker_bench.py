"""A bench of child processes: several compile, one evaluates, and nothing else runs while it times."""

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
from tuner.workers.measurement_worker import LockContext, MeasurementWorker, nothing_to_quiet
from tuner.workers.protocol import Reply, ServiceSpec


@dataclass
class _Job:
    number: int  # of the trial
    ticket: Ticket
    effort: Effort
    place: int | None = None  # number in the compile pool; None: not queued there


class BenchProcesses:
    """The child processes of one bench, or of several benches of different problems, and their limits."""

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

    def compiled(self, place: int) -> Reply:
        """Waits for the outcome of the script with number ``place`` in the compile pool."""
        while (reply := self.pool.take(place)) is None:
            self.evaluate.poll()  # the child may be starting
            self._sleep()
            self.pool.advance()
        return reply

    def close(self) -> None:
        """Kills every child process."""
        self.pool.close()
        self.evaluate.kill()

    def _meanwhile(self) -> None:
        self.pool.advance()
        self._sleep()

    def _sleep(self) -> None:
        sleep_until_news([*self.pool.children, *self.evaluate.children], TICK_S)


class WorkerBench(AbstractBench):
    """A bench that compiles candidates in several child processes and evaluates them in one more.

    Candidates are evaluated one by one in the order in which they were started. Use a bench in one thread,
    and close it: the children end with the thread that created them. Benches of several problems may share
    child processes; to close one of the benches ends the children of all.
    """

    def __init__(self, order: BenchOrder, processes: BenchProcesses, seed: int) -> None:
        self._order = order
        self._processes = processes
        self._seed = seed
        self._finals = RemeasurementRounds(seed, self._recompiled, self._timed)
        self._jobs: deque[_Job] = deque()

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        """Binds the candidate of trial ``number`` and queues its script for compilation; does not wait.

        Not queued is a script whose outcome is known, or that equals one of an unfinished candidate.
        """
        job = _Job(number, Ticket(self._order, candidate), effort)
        is_repeated = any(other.ticket.script == job.ticket.script for other in self._jobs)
        if job.ticket.record is None and not is_repeated:
            job.place = self._processes.pool.add(self._order.problem, job.ticket.script)
        self._jobs.append(job)

    def finish(self) -> BoundRecord:
        """Waits until the earliest started candidate is compiled and evaluated; returns its record.

        Other candidates are compiled meanwhile; compilation is paused while a candidate is timed.
        """
        job = self._jobs.popleft()
        ticket = job.ticket
        if job.place is None:
            ticket.recall_script()  # the candidate with an equal script is finished and stored by now
        if ticket.record is None:
            compiled = self._processes.compiled(
                job.place or self._processes.pool.add(self._order.problem, ticket.script)
            )
            ticket.take_compiled(compiled.value, compiled.seconds)
        if ticket.record is None:
            problem, effort = self._order.problem, job.effort
            within_s = self._processes.limits.evaluation_limit_s(problem, effort, effort.stop_above_s)
            seed = work_seed(self._seed, job.number)
            evaluated = self._processes.evaluate.ask(
                "evaluate", problem, ticket.artifact, effort, seed, within_s
            )
            ticket.take_evaluation(evaluated.value, evaluated.seconds)
        return ticket.finished

    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        """Times the top-k trials again, interleaved, with the baseline where it works.

        Compiles scripts without an artifact first. One time per trial; None: the trial no longer works.
        """
        return self._finals.times(top_trials, effort)

    def close(self) -> None:
        """Kills every child process of the bench and drops the candidates that are not finished."""
        self._processes.close()
        self._jobs.clear()

    def _recompiled(self, scripts: tuple[Script, ...]) -> list[Artifact | Failure]:
        places = [self._processes.pool.add(self._order.problem, script) for script in scripts]
        return [self._processes.compiled(place).value for place in places]

    def _timed(
        self, group: Group, effort: Effort, seed: int, slowest_s: float | None
    ) -> FinalTimes | Failure:
        problem = self._order.problem
        within_s = self._processes.limits.remeasurement_limit_s(problem, effort, slowest_s, group.size)
        found: FinalTimes | Failure = self._processes.evaluate.ask(
            "remeasure", problem, group, effort, seed, within_s
        ).value
        return found
