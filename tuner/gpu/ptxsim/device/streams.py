"""Lazy execution of streams, and the rules that each call of a host program must keep.

A synchronisation runs the work that it depends on, in a chosen order, and other work only while a kernel of
that work pauses. Running work as late as possible is the worst case of a real GPU, so that a missing
synchronisation shows as a wrong result.
"""

import contextlib
import random
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tuner.core.device import StreamOrder
from tuner.core.errors import DeviceError
from tuner.gpu.ptxsim.device.happens_before import (
    HOST_QUEUE,
    NO_BYTES,
    ByteRanges,
    DefectLog,
    HostDefect,
    Moment,
    moment_after,
    refused,
)
from tuner.gpu.ptxsim.device.memory import MemoryRegion
from tuner.gpu.ptxsim.engine import Pause


@dataclass(frozen=True, eq=False)
class StreamOperation:
    """An operation of a stream or graph: a copy, fill, kernel, allocation or free, or a mere marker."""

    what: str  # in reports: "copy of 64 bytes"
    # kernels yield so that other work may run, see ``PreparedKernel.pausing_run``; all else runs in one piece
    run: Callable[[Moment], Generator[Pause, None, None] | None] | None = None
    submitted: Callable[[Moment], None] | None = None  # called when the operation is submitted
    reads: ByteRanges = NO_BYTES  # where known before the operation runs
    writes: ByteRanges = NO_BYTES
    uses_host_memory: bool = False  # pageable host memory, which its owner may free after the call


@dataclass(eq=False)
class Work:
    """A submitted operation: its moment, and the pending work that must run before it."""

    number: int  # order of submission
    operation: StreamOperation
    moment: Moment
    after: tuple["Work", ...]
    is_done: bool = False


@dataclass(eq=False)
class _Begun:
    """Work that has begun and not ended: the generator that continues it, and its last pause."""

    work: Work
    pausing_run: Generator[Pause, None, None]
    pause: Pause
    is_same: bool = False  # stuck at the same pause as before: no progress


class LazyStreams:
    """The work submitted to a device's queues, which runs as late as possible: when the host waits for it.

    Work runs alone, but kernels that run long or wait in a loop for other work run interleaved with all work
    that is not ordered after them. A queue is an integer: a stream, a branch of a launched graph, or the host
    (see ``happens_before``).
    """

    def __init__(self, order: StreamOrder, seed: int) -> None:
        """``order`` of ready work: "fifo" by submission, "lifo" the reverse, "random" by ``seed``."""
        self._order = order
        self._rng = random.Random(seed)
        self._count = 0
        self._last: dict[int, Work] = {}  # by queue
        self._pending: dict[int, Work] = {}  # by number
        self._begun: dict[int, _Begun] = {}  # by number
        self.host = Moment(HOST_QUEUE, 0, {})

    @property
    def pending(self) -> tuple[Work, ...]:
        return tuple(self._pending.values())

    def last(self, queue: int) -> Work | None:
        return self._last.get(queue)

    def submit(self, queue: int, operation: StreamOperation, after: Iterable[Work] = ()) -> Work:
        """Submits an operation after the queue's last work, ``after``, and all that the host waited for."""
        earlier = [*after]
        if queue in self._last:
            earlier.append(self._last[queue])
        moment = moment_after(queue, (self.host, *(work.moment for work in earlier)))
        work = Work(self._count, operation, moment, tuple(_not_done(earlier)))
        self._count += 1
        self._last[queue] = self._pending[work.number] = work
        if operation.submitted is not None:
            operation.submitted(moment)
        return work

    def host_moment(self) -> Moment:
        """Returns a new moment of the host, ordered after all work that the host has waited for."""
        self.host = moment_after(HOST_QUEUE, (self.host,))
        return self.host

    def wait_for(self, work: Work) -> None:
        """Runs ``work`` and all pending work that it depends on, as when the host waits for it.

        Other work also runs once a kernel of this work pauses. Raises DeviceError for a fault of a kernel,
        and if kernels wait in loops that no work ends.
        """
        needed: dict[int, Work] = {}  # by number
        open_ = list(_not_done((work,)))
        while open_:
            pending = open_.pop()
            if pending.number not in needed:
                needed[pending.number] = pending
                open_.extend(_not_done(pending.after))
        while any(not pending.is_done for pending in needed.values()):
            ready = self._ready(needed.values())
            if not ready and self._begun:
                ready = self._ready(self._pending.values())
            if ready:
                self._begin(ready)
            else:
                self._take_turns()
        self.host = moment_after(HOST_QUEUE, (self.host, work.moment))

    def wait_for_all(self) -> None:
        for work in tuple(self._last.values()):
            self.wait_for(work)

    def drop(self, work: Work) -> None:
        """Cancels ``work``; later work that depended on it depends on its predecessors instead."""
        work.is_done = True
        self._pending.pop(work.number, None)
        for other in self._pending.values():
            if work in other.after:
                other.after = tuple(_not_done(other.after))

    def _ready(self, works: Iterable[Work]) -> list[Work]:
        return [
            work
            for work in works
            if not work.is_done
            and work.number not in self._begun
            and all(earlier.is_done for earlier in work.after)
        ]

    def _begin(self, ready: list[Work]) -> None:
        if self._order == "random":
            work = self._rng.choice(ready)
        else:
            choose = min if self._order == "fifo" else max
            work = choose(ready, key=lambda work: work.number)
        if work.operation.run is None:
            pausing_run = None
        else:
            pausing_run = self._checked(work, work.operation.run, work.moment)
        pause = None if pausing_run is None else self._checked(work, next, pausing_run, None)
        if pausing_run is None or pause is None:
            self._end(work)
        else:
            self._begun[work.number] = _Begun(work, pausing_run, pause)

    def _take_turns(self) -> None:
        for number, begun in sorted(self._begun.items()):
            pause = self._checked(begun.work, next, begun.pausing_run, None)
            if pause is None:
                self._end(begun.work)
            else:
                is_same = pause.is_stuck and begun.pause == pause
                self._begun[number] = _Begun(begun.work, begun.pausing_run, pause, is_same)
        if self._begun and all(begun.is_same for begun in self._begun.values()):
            reason = f"endless: nothing writes what is waited for: {self._cancelled()}"
            raise refused("LAUNCH_TIMEOUT", reason)

    def _checked(self, work: Work, call: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function that runs ``work``; if it raises, ends the work.

        A DeviceError also cancels all other work that has begun, and its message then says where this work
        was.
        """
        try:
            return call(*arguments)
        except BaseException as error:
            self._end(work)
            if not isinstance(error, DeviceError) or not self._begun:
                raise
            reason = f"{error}; at the same time {self._cancelled()}"
            raise DeviceError(reason, error.error_name) from error.__cause__

    def _cancelled(self) -> str:
        texts = []
        for begun in tuple(self._begun.values()):
            begun.pausing_run.close()
            self._end(begun.work)
            texts.append(f"{begun.work.operation.what}: {begun.pause.where}")
        return "; ".join(texts)

    def _end(self, work: Work) -> None:
        work.is_done = True
        work.after = ()
        self._pending.pop(work.number, None)
        self._begun.pop(work.number, None)


def _not_done(works: Iterable[Work]) -> Iterator[Work]:
    """Yields the works that are not done.

    For a cancelled work, the works that it depends on and that are not done.
    """
    seen: set[int] = set()
    open_ = list(works)
    while open_:
        work = open_.pop()
        if work.number not in seen:
            seen.add(work.number)
            if work.is_done:
                open_.extend(work.after)  # of work that ran this is ()
            else:
                yield work


@dataclass(eq=False)
class Call:
    """A call of a host program that has begun and not ended, with the GPU work submitted meanwhile."""

    begin: Moment | None  # on the caller's stream; None: a synchronous call, ordered by the host
    before: tuple[MemoryRegion, ...]  # memory allocated before the call
    works: list[Work] = field(default_factory=list)


class CallRules:
    """Checks that a call's GPU work is ordered after its begin and before its end, and leaks no memory."""

    def __init__(self, log: DefectLog) -> None:
        self._log = log
        self._call: Call | None = None

    def begin(self, begin: Moment | None, live: tuple[MemoryRegion, ...]) -> None:
        """Begins a call at a moment of its stream; None: a synchronous call.

        ``live``: memory allocated before, which the call need not free.
        """
        self._call = Call(begin, live)

    def note(self, work: Work) -> None:
        """Adds work to the current call; does nothing outside of calls.

        Reports the first work of a queue if it is not ordered after the call's begin.
        """
        if self._call is None:
            return
        begin = self._call.begin
        is_first = all(known.moment.queue != work.moment.queue for known in self._call.works)
        if begin is not None and is_first and not begin.is_before(work.moment):
            what = f"{work.operation.what} may run before the call's stream has come to the call"
            self._log.add(HostDefect.MISSING_FORK, what)
        self._call.works.append(work)

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Context manager: work that is submitted inside does not belong to the current call."""
        call = self._call
        self._call = None
        try:
            yield
        finally:
            self._call = call

    def abandon(self) -> tuple[Work, ...]:
        call = self._call
        self._call = None
        if call:
            return tuple(call.works)
        return ()

    def end(self, end: Moment, live: tuple[MemoryRegion, ...]) -> tuple[Work, ...]:
        """Ends the current call; returns its work that is not ordered before ``end``; () without a call.

        Reports the last such work of each queue, and each region of ``live`` that the call allocated, did not
        free and does not keep on purpose.
        """
        if self._call is None:
            return ()
        call = self._call
        self._call = None
        late = tuple(work for work in call.works if not work.moment.is_before(end))
        last = {work.moment.queue: work for work in late}
        for work in last.values():
            if call.begin is None:
                self._log.add(
                    HostDefect.UNFINISHED, f"{work.operation.what} may run after the call has returned"
                )
            else:
                what = f"{work.operation.what} may run after what follows the call on its stream"
                self._log.add(HostDefect.MISSING_JOIN, what)
        for region in live:
            if region not in call.before and not region.is_kept:
                self._log.add(HostDefect.LEAK, f"{region.name} ({region.bytes.size} bytes) is never freed")
        return late
