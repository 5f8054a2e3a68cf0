"""The child processes of a node: compilers and measurement workers, all owned by one thread.

``NodeChildren.submit`` takes work from any thread and gives an ``Order``; the owning thread, woken by a
``WakePipe``, hands the work to a child, and the order gets its ``Done``.
"""

import collections
import contextlib
import datetime
import os
import queue
import select
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Final, final

from tuner.core.errors import Failure, Stage, TunerError
from tuner.core.interfaces import Artifact, Script
from tuner.core.problem import Problem
from tuner.core.roofline import Roofline
from tuner.core.runs import Baseline
from tuner.elsewhere.fleet.tables import Interval
from tuner.elsewhere.fleet.work import BASELINE, COMPILE, EVALUATE, ROOFLINE, FleetWork, unpacked
from tuner.runtime.timing_lock import LockWait, TimingLock, holder_text
from tuner.runtime.workers.child_process import sleep_until_news
from tuner.runtime.workers.measurement_worker import LockContext, MeasurementWorker
from tuner.runtime.workers.pool import CompilePool
from tuner.runtime.workers.processes import TICK_S
from tuner.runtime.workers.protocol import Reply
from tuner.runtime.workers.services import Group, compile_spec, evaluation_spec
from tuner.targets.target import RunnerChildren, Target

KEPT: Final = 4  # measurement workers; each holds the arrays of its problem
GIB: Final = 1 << 30
LARGEST_BYTES: Final = 1 << 16  # that a pipe holds
IDLE_TICK_S: Final = 10.0  # without work nothing is polled: an order wakes the thread at once


@dataclass(frozen=True)
class _Kept:
    worker: MeasurementWorker
    children: RunnerChildren
    memory_bytes: int

    def serves(self, children: RunnerChildren) -> bool:
        is_equal = replace(self.children, compiler=children.compiler, limits=children.limits) == children
        return is_equal and children.limits.memory_bytes <= self.memory_bytes


@final
class MeasurementWorkers:
    """The measurement workers of a node, one per problem and number of threads, at most KEPT.

    One works at a time. For a further problem, the process that was idle for longest is reused, or replaced
    if its settings or memory limit do not fit: campaigns alternate between more than KEPT problems.
    """

    def __init__(
        self, meanwhile: Callable[[], None], quiet: LockContext, exclusive: Callable[[str], LockContext]
    ) -> None:
        self._meanwhile = meanwhile
        self._quiet = quiet
        self._exclusive = exclusive
        self._kept: collections.OrderedDict[tuple[Problem, int], _Kept] = collections.OrderedDict()

    def of(self, work: FleetWork, children: Callable[[], RunnerChildren]) -> MeasurementWorker:
        """Returns the worker for the work's problem.

        If there is none, reuses another problem's or starts one, as ``children()`` describes.
        """
        key = (work.problem, work.threads)
        if key not in self._kept:
            wanted = children()
            kept = None
            if len(self._kept) == KEPT:  # the one that was idle for longest
                _, kept = self._kept.popitem(last=False)
                if not kept.serves(wanted):
                    kept.worker.kill()
                    kept = None
            self._kept[key] = kept or self._started(wanted)
        self._kept.move_to_end(key)
        return self._kept[key].worker

    def kill(self, work: FleetWork) -> None:
        with contextlib.suppress(KeyError):
            self._kept.pop((work.problem, work.threads)).worker.kill()

    def kill_all(self) -> None:
        while self._kept:
            self._kept.popitem()[1].worker.kill()

    def _started(self, children: RunnerChildren) -> _Kept:
        memory_bytes = -(-children.limits.memory_bytes // GIB) * GIB  # so that similar problems fit as well
        worker = MeasurementWorker(
            evaluation_spec(children.evaluator, children.environment),
            memory_bytes,
            meanwhile=self._meanwhile,
            quiet=self._quiet,
            exclusive=self._exclusive(children.device),
        )
        return _Kept(worker, children, memory_bytes)


@final
class WakePipe:
    """A pipe by which any thread can wake the one thread that polls the pipes of child processes."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def ring(self) -> None:
        """Wakes the polling thread; may be called from any thread."""
        with contextlib.suppress(BlockingIOError):  # the pipe is full: the thread will wake
            os.write(self._writing, b"!")

    def clear(self) -> None:
        """Discards earlier wake-ups. Call it before looking for new messages, else a wake-up may be lost."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._reading, LARGEST_BYTES)

    def register(self, poll: select.poll) -> None:
        poll.register(self._reading, select.POLLIN)

    def close(self) -> None:
        os.close(self._reading)
        os.close(self._writing)


@dataclass(frozen=True)
class Done:
    """The result of a piece of work before it is stored, as a child process has sent it.

    ``timed``: when the device was timed, None if it was not.
    """

    reply: Reply
    timed: Interval | None = None


@dataclass(eq=False)
class Order:
    """A piece of work for the thread that owns the child processes; its future ``done`` gets the result."""

    work: FleetWork
    blobs: tuple[bytes, ...]  # of the work's hashes
    done: "Future[Done]" = field(default_factory=Future)
    is_dropped: bool = False
    timed: Interval | None = None


class DroppedError(Exception):
    """A piece of work was withdrawn, or the node is closing, while a child process was working on it."""


@final
class NodeChildren:
    """The child processes of a node, in a thread: several that compile, and one at a time that measures."""

    def __init__(self, target: Target, slots: int) -> None:
        self._target = target
        self._children: Callable[..., RunnerChildren] = target.children
        self._slots = slots
        self._orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self._to_measure: collections.deque[Order] = collections.deque()
        self._compiling: dict[int, Order] = {}  # by the script's number in the pool
        self._pool: CompilePool | None = None
        self._workers = MeasurementWorkers(self._meanwhile, self._quiet, self._exclusive)
        self._measuring: Order | None = None
        self._wake = WakePipe()
        self._is_closing = False
        self._broken = ""  # why the thread ended early
        self._thread = threading.Thread(target=self._live, name="children", daemon=True)
        self._thread.start()

    def submit(self, work: FleetWork, blobs: tuple[bytes, ...]) -> Order:
        """Hands over work with the scripts or artifacts that it needs; returns its order without waiting."""
        order = Order(work, blobs)
        self._orders.put(order)
        self._wake.ring()
        if self._broken:  # set before the thread read its orders for the last time
            self._refuse_orders()
        return order

    def drop(self, order: Order) -> None:
        """Withdraws an order: work that a child has begun is killed, and the future may never get a result.

        A baseline or roofline is finished nevertheless.
        """
        order.is_dropped = True
        self._wake.ring()

    def close(self) -> None:
        self._is_closing = True
        self._wake.ring()
        self._thread.join()
        self._wake.close()

    def _live(self) -> None:
        try:
            while not self._is_closing:
                self._meanwhile()
                if self._to_measure:
                    self._measure(self._to_measure.popleft())
        except Exception as error:  # noqa: BLE001 - as in a child process: every waiting order must fail
            self._broken = f"children: {type(error).__name__}: {error}"
            self._to_measure.extend(self._compiling.values())
            self._refuse_orders()
        finally:
            if self._pool is not None:
                self._pool.close()
            self._workers.kill_all()

    def _refuse_orders(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._to_measure.append(self._orders.get_nowait())
        while self._to_measure:
            order = self._to_measure.popleft()
            order.done.set_exception(TunerError(self._broken))

    def _meanwhile(self) -> None:
        """Takes orders and advances compilations; then sleeps until a message comes, if nothing is measured.

        Raises DroppedError if the order that is being measured was withdrawn, or if the node is closing.
        """
        self._wake.clear()
        measuring = self._measuring
        if measuring is not None and (measuring.is_dropped or self._is_closing):
            raise DroppedError
        if self._is_closing:
            return
        self._take_orders()
        try:
            self._advance()
        except TunerError as error:  # no child process can start: not caused by a candidate
            for order in self._compiling.values():
                order.done.set_exception(error)
            self._compiling.clear()
            if self._pool is not None:
                self._pool.close()
            self._pool = None
        waiting = [] if self._pool is None else self._pool.children
        if not self._to_measure or measuring is not None:
            evaluate = [] if measuring is None else self._worker_of(measuring.work).children
            is_busy = bool(self._compiling) or measuring is not None
            sleep_until_news([*waiting, *evaluate, self._wake], TICK_S if is_busy else IDLE_TICK_S)

    def _take_orders(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                order = self._orders.get_nowait()
                if order.work.stage != COMPILE:
                    self._to_measure.append(order)
                    continue
                try:
                    (text,) = order.blobs
                    if self._pool is None:
                        children = self._children_of(order.work)
                        spec = compile_spec(children.compiler)
                        self._pool = CompilePool(spec, max(1, self._slots), children.limits)
                    script = Script(text.decode(), order.work.blobs[0])
                    self._compiling[self._pool.add(order.work.problem, script)] = order
                except Exception as error:  # noqa: BLE001 - whatever it is, the waiting order must fail
                    order.done.set_exception(error)

    def _advance(self) -> None:
        if self._pool is None:
            return
        self._pool.advance()
        for number, order in tuple(self._compiling.items()):
            reply = self._pool.take(number)
            if order.is_dropped and reply is None:
                self._pool.drop(number)
            if reply is not None:
                order.done.set_result(Done(reply))
            if order.is_dropped or reply is not None:
                del self._compiling[number]

    def _measure(self, order: Order) -> None:
        if order.is_dropped:
            return
        self._measuring = order
        try:
            done = self._measured(order)
        except DroppedError:
            self._workers.kill(order.work)
        except Exception as error:  # noqa: BLE001 - whatever it is, the waiting order must fail
            order.done.set_exception(error)
        else:
            order.done.set_result(done)
        finally:
            self._measuring = None

    def _measured(self, order: Order) -> Done:
        work = order.work
        if work.stage in (BASELINE, ROOFLINE):
            return self._alone(order)
        children = self._children_of(work)
        artifacts = tuple(map(unpacked, order.blobs))
        limits = children.limits
        expected = (work.problem, work.effort, work.slowest_s)
        question: Artifact | Group
        if work.stage == EVALUATE:
            question = artifacts[0]
            within_s = limits.evaluation_limit_s(*expected)
        else:
            question = Group(artifacts, work.has_baseline)
            within_s = limits.remeasurement_limit_s(*expected, question.size)
        reply = self._worker_of(work).ask(
            work.stage, work.problem, question, work.effort, work.seed, within_s
        )
        return Done(reply, order.timed)

    def _alone(self, order: Order) -> Done:
        work = order.work
        value: Baseline | Roofline | Failure
        with self._quiet(), self._interval(order):
            try:
                if work.stage == BASELINE:
                    value = self._target.baseline(work.problem, work.threads, work.seed, LockWait())
                else:
                    value = self._target.roofline(work.problem, work.threads, LockWait())
            except TunerError as error:  # a run continues without this number
                value = Failure(Stage.RUN, str(error))
        assert order.timed is not None
        return Done(Reply(value, (order.timed.ended - order.timed.began).total_seconds()), order.timed)

    def _worker_of(self, work: FleetWork) -> MeasurementWorker:
        return self._workers.of(work, lambda: self._children_of(work))

    def _children_of(self, work: FleetWork) -> RunnerChildren:
        return self._children(work.target, work.problem, work.threads)

    def _quiet(self) -> contextlib.AbstractContextManager[None]:
        if self._pool is None:
            return contextlib.nullcontext()
        return self._pool.paused()

    def _exclusive(self, device: str) -> LockContext:
        @contextlib.contextmanager
        def held() -> Iterator[None]:
            assert self._measuring is not None
            lock = TimingLock(device, holder_text(self._measuring.work.problem))
            with lock.held(), self._interval(self._measuring):
                yield

        return held

    @contextlib.contextmanager
    def _interval(self, order: Order) -> Iterator[None]:
        until_now = began()
        try:
            yield
        finally:
            order.timed = until_now()


def began() -> Callable[[], Interval]:
    """Returns a function that returns the interval from now until its call.

    The begin is by the machine's clock; the length is by the monotonic clock, since the other may be set.
    """
    moment = now()
    moment_s = time.monotonic()

    def until_now() -> Interval:
        return Interval(moment, moment + datetime.timedelta(seconds=time.monotonic() - moment_s))

    return until_now


def now() -> datetime.datetime:
    """Returns the current time in UTC, by this machine's clock."""
    return datetime.datetime.now(datetime.UTC)
