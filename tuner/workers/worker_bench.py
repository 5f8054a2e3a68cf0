"""The bench made of child processes: several compile, one judges, timing is alone."""

import contextlib
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuner.core.bench import AbstractBench, BoundRecord, FinalTimes
from tuner.core.candidate import Candidate
from tuner.core.errors import RAN, Failure, Stage
from tuner.core.target import Artifact, Effort
from tuner.workers.child_process import sleep_until_news
from tuner.workers.compile_pool import CompilePool
from tuner.workers.group_timing import Group, time_finals
from tuner.workers.in_flight import BenchOrder, Ticket
from tuner.workers.limits import Limits
from tuner.workers.protocol import Event, Reply, ServiceSpec
from tuner.workers.timing_lock import TimingLock
from tuner.workers.worker import TICK_S, Worker


@dataclass
class _Job:
    ticket: Ticket
    number: int | None = None  # the pool's; None: not given to it


class WorkerBench(AbstractBench):
    """Compiles candidates in parallel, judges them one by one in the order they were started.

    Use it in one thread, and close it: the children end with the thread that built it.
    """

    def __init__(
        self,
        order: BenchOrder,
        compile_spec: ServiceSpec,
        judge_spec: ServiceSpec,
        workers: int,
        limits: Limits,
        rng: np.random.Generator,
        turn: TimingLock | None = None,  # of timing beside other tuners
    ) -> None:
        self._order = order
        self._turn = turn
        self._limits = limits
        self._rng = rng
        self._jobs: deque[_Job] = deque()
        self._pool = CompilePool(compile_spec, workers, limits)
        self._judge = Worker(judge_spec, limits.memory_bytes)
        self._judge.start()

    def start(self, candidate: Candidate) -> None:
        """Binds the candidate and queues its script, unless that is known or under way."""
        job = _Job(Ticket(self._order, candidate))
        is_repeated = any(other.ticket.script == job.ticket.script for other in self._jobs)
        if job.ticket.record is None and not is_repeated:
            job.number = self._pool.add(self._order.problem, job.ticket.script)
        self._jobs.append(job)

    def finish(self, effort: Effort) -> BoundRecord:
        """Judges the oldest candidate while the others compile; they stand still while it is timed."""
        job = self._jobs.popleft()
        ticket = job.ticket
        if job.number is None:
            ticket.recall_script()  # the one of equal script is finished and stored by now
        if ticket.record is None:
            compiled = self._compiled(job.number or self._pool.add(self._order.problem, ticket.script))
            ticket.take_compiled(compiled.value, compiled.seconds)
        if ticket.record is None:
            within_s = self._limits.judge_within_s(self._order.problem, effort, effort.stop_above_s)
            judged = self._ask_judge("judge", ticket.artifact, effort, within_s)
            ticket.take_judged(judged.value, judged.seconds)
        return ticket.finished

    def finals(self, finalists: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        """Times the finalists interleaved, once the scripts that come without code are compiled again."""
        numbers = [
            None if each.artifact is not None else self._pool.add(self._order.problem, each.script)
            for each in finalists
        ]
        artifacts = tuple(
            each.artifact if number is None else self._recompiled(number)
            for each, number in zip(finalists, numbers, strict=True)
        )
        medians_s = [each.record.median_s for each in finalists if each.record.median_s is not None]
        slowest_s = max(medians_s, default=None)

        def together(group: Group) -> FinalTimes | Failure:
            within_s = self._limits.judge_within_s(self._order.problem, effort, slowest_s, group.size)
            found: FinalTimes | Failure = self._ask_judge("finals", group, effort, within_s).value
            return found

        return time_finals(artifacts, together)

    def close(self) -> None:
        """Kills every child, whatever it is doing."""
        self._pool.close()
        self._judge.kill()
        self._jobs.clear()

    def _compiled(self, number: int) -> Reply:
        while (reply := self._pool.take(number)) is None:
            self._judge.poll()  # it may be starting
            self._sleep()
            self._pool.advance()
        return reply

    def _recompiled(self, number: int) -> Artifact | None:
        outcome: Artifact | Failure = self._compiled(number).value
        return None if isinstance(outcome, Failure) else outcome

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
        with contextlib.ExitStack() as until_told:
            until_told.callback(self._pool.resume)
            while not isinstance(news := self._judge.poll(), Reply):
                if isinstance(news, Event):
                    self._pool.pause()
                    self._take_turn(until_told)
                    self._judge.go_ahead()
                self._pool.advance()
                self._sleep()
        return news

    def _take_turn(self, until_told: contextlib.ExitStack) -> None:
        """Waits while another tuner times; that does not count as the judge's time."""
        if self._turn is None:
            return
        self._judge.pause()
        try:
            until_told.enter_context(self._turn.held())
        finally:
            self._judge.resume()

    def _sleep(self) -> None:
        judge = [] if self._judge.child is None else [self._judge.child]
        sleep_until_news([*self._pool.children, *judge], TICK_S)
