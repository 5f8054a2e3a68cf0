"""The bench made of child processes: several compile, one judges, timing is alone."""

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuner.bench import AbstractBench, FinalTimes
from tuner.errors import RAN, Failure, Stage
from tuner.record import Record
from tuner.space import Candidate
from tuner.target import Effort, Script
from tuner.workers.crew import Crew
from tuner.workers.finals import Group, time_finals
from tuner.workers.limits import Limits
from tuner.workers.process import sleep_until_news
from tuner.workers.protocol import Event, Reply, ServiceSpec
from tuner.workers.supervisor import TICK_S, Worker
from tuner.workers.ticket import Order, Ticket


@dataclass
class _Job:
    ticket: Ticket
    number: int | None = None  # the crew's; None: not given to the crew


class WorkerBench(AbstractBench):
    """Compiles candidates in parallel, judges them one by one in the order they were started.

    Use it in one thread, and close it: the children end with the thread that built it.
    """

    def __init__(
        self,
        order: Order,
        compile_spec: ServiceSpec,
        judge_spec: ServiceSpec,
        workers: int,
        limits: Limits,
        rng: np.random.Generator,
    ) -> None:
        self._order = order
        self._limits = limits
        self._rng = rng
        self._jobs: deque[_Job] = deque()
        self._crew = Crew(compile_spec, workers, limits)
        self._judge = Worker(judge_spec, limits.memory_bytes)
        self._judge.start()

    def start(self, candidate: Candidate) -> None:
        """Binds the candidate and queues its script, unless it is known or a twin is under way."""
        job = _Job(Ticket(self._order, candidate))
        twins = any(other.ticket.script == job.ticket.script for other in self._jobs)
        if job.ticket.record is None and not twins:
            job.number = self._crew.add(self._order.problem, job.ticket.script)
        self._jobs.append(job)

    def finish(self, effort: Effort) -> Record:
        """Judges the oldest candidate while the others compile; they stand still while it is timed."""
        job = self._jobs.popleft()
        ticket = job.ticket
        if job.number is None:
            ticket.recall_script()  # its twin is finished and stored by now
        if ticket.record is None:
            compiled = self._compiled(job.number or self._crew.add(self._order.problem, ticket.script))
            ticket.take_compiled(compiled.value, compiled.seconds)
        if ticket.record is None:
            within_s = self._limits.judge_within_s(self._order.problem, effort, effort.stop_above_s)
            judged = self._ask_judge("judge", ticket.artifact, effort, within_s)
            ticket.take_judged(judged.value, judged.seconds)
        assert ticket.record is not None
        return ticket.record

    def finals(self, records: tuple[Record, ...], effort: Effort) -> FinalTimes:
        """Compiles the records' scripts again and times them interleaved."""
        numbers = [self._crew.add(self._order.problem, self._script_of(record)) for record in records]
        outcomes = [self._compiled(number).value for number in numbers]
        artifacts = tuple(None if isinstance(outcome, Failure) else outcome for outcome in outcomes)
        slowest_s = max((record.median_s for record in records if record.median_s is not None), default=None)

        def together(group: Group) -> FinalTimes | Failure:
            within_s = self._limits.judge_within_s(self._order.problem, effort, slowest_s, group.size)
            found: FinalTimes | Failure = self._ask_judge("finals", group, effort, within_s).value
            return found

        return time_finals(artifacts, together)

    def close(self) -> None:
        """Kills every child, whatever it is doing."""
        self._crew.close()
        self._judge.kill()
        self._jobs.clear()

    def _script_of(self, record: Record) -> Script:
        return Script(self._order.script_text(record), record.script_sha256)

    def _compiled(self, number: int) -> Reply:
        while (reply := self._crew.take(number)) is None:
            self._judge.poll()  # it may be starting
            self._sleep()
            self._crew.advance()
        return reply

    def _ask_judge(self, method: str, work: Any, effort: Effort, timeout_s: float) -> Reply:
        """Returns the judge's reply; repeats in a fresh child what an earlier call may be to blame for."""
        seed = int(self._rng.integers(2**63))
        self._judge.submit(
            method, self._order.problem, work, effort, seed, stage=Stage.RUN, timeout_s=timeout_s
        )
        reply = self._judged()
        if reply.is_doubtful:
            return self._ask_judge(method, work, effort, timeout_s)
        if isinstance(reply.value, Failure) and reply.value.stage in RAN:
            self._judge.kill()
        self._judge.start()
        return reply

    def _judged(self) -> Reply:
        try:
            while not isinstance(news := self._judge.poll(), Reply):
                if isinstance(news, Event):
                    self._crew.pause()
                    self._judge.go_ahead()
                self._crew.advance()
                self._sleep()
        finally:
            self._crew.resume()
        return news

    def _sleep(self) -> None:
        judge = [] if self._judge.child is None else [self._judge.child]
        sleep_until_news([*self._crew.children, *judge], TICK_S)
