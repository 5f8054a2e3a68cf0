"""Lazy execution of streams: a synchronisation runs only the work that it depends on, in a chosen order.

Running work as late as possible is the worst case of a real GPU, so that a missing synchronisation shows as a
wrong result.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from tuner.simulator.device.byte_ranges import NO_BYTES, ByteRanges
from tuner.simulator.device.happens_before import HOST_QUEUE, Moment, moment_after

Order = Literal["fifo", "lifo", "random"]
ORDERS: tuple[Order, ...] = ("fifo", "lifo", "random")


@dataclass(frozen=True, eq=False)
class StreamOperation:
    """An operation for a stream or a graph: a copy, fill, kernel, allocation, free or mark without effect.

    It consists of what to do at submission, what to do when it runs, and the bytes that it is known to
    access.
    """

    what: str  # in reports: "copy of 64 bytes"
    run: Callable[[Moment], None] | None = None
    submitted: Callable[[Moment], None] | None = None  # called when the operation is submitted
    reads: ByteRanges = NO_BYTES  # where known before the operation runs
    writes: ByteRanges = NO_BYTES
    uses_host_memory: bool = False  # pageable host memory, which its owner may free after the call


@dataclass(eq=False)
class Work:
    """A submitted operation: its moment in happens-before, and the pending work that must run before it."""

    number: int  # order of submission
    operation: StreamOperation
    moment: Moment
    after: tuple["Work", ...]
    is_done: bool = False


class LazyStreams:
    """The work submitted to the queues of a device; runs as late as possible, when the host waits for it.

    A queue is an integer: a stream, a branch of a launched graph, or the host (see ``happens_before``).
    """

    def __init__(self, order: Order, seed: int) -> None:
        """``order`` among ready work: "fifo" by submission, "lifo" the reverse, "random" by ``seed``."""
        self._order = order
        self._rng = random.Random(seed)
        self._count = 0
        self._last: dict[int, Work] = {}  # by queue
        self._pending: dict[int, Work] = {}  # by number
        self.host = Moment(HOST_QUEUE, 0, {})

    @property
    def pending(self) -> tuple[Work, ...]:
        """Returns the submitted work that has neither run nor been cancelled, in the order of submission."""
        return tuple(self._pending.values())

    def last(self, queue: int) -> Work | None:
        """Returns the last work submitted to a queue, done or not; None where there is none."""
        return self._last.get(queue)

    def submit(self, queue: int, operation: StreamOperation, after: Iterable[Work] = ()) -> Work:
        """Submits an operation to a queue; returns it as work, which does not run yet.

        It is ordered after the queue's last work, after the work ``after``, and after all that the host has
        waited for.
        """
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
        """Returns a new moment of the host, after all work that the host has waited for."""
        self.host = moment_after(HOST_QUEUE, (self.host,))
        return self.host

    def wait_for(self, work: Work) -> None:
        """Runs ``work`` and all pending work that it depends on, as a wait by the host.

        Work that is submitted later is ordered after ``work``.
        """
        self._run(_needed(work))
        self.host = moment_after(HOST_QUEUE, (self.host, work.moment))

    def wait_for_all(self) -> None:
        """Runs all pending work, as a wait by the host for every queue."""
        for work in tuple(self._last.values()):
            self.wait_for(work)

    def drop(self, work: Work) -> None:
        """Cancels work: marks it as done without running it.

        Work that depends on it depends on what it depended on instead.
        """
        work.is_done = True
        self._pending.pop(work.number, None)
        for other in self._pending.values():
            if work in other.after:
                other.after = tuple(_not_done(other.after))

    def _run(self, needed: dict[int, Work]) -> None:
        while needed:
            ready = [work for work in needed.values() if all(each.is_done for each in work.after)]
            work = self._choose(ready)
            del needed[work.number], self._pending[work.number]
            work.is_done, work.after = True, ()
            if work.operation.run is not None:
                work.operation.run(work.moment)

    def _choose(self, ready: list[Work]) -> Work:
        if self._order == "random":
            return self._rng.choice(ready)
        choose = min if self._order == "fifo" else max
        return choose(ready, key=lambda work: work.number)


def _needed(target: Work) -> dict[int, Work]:
    """Returns the pending work, by number, that ``target`` transitively depends on, ``target`` included."""
    found: dict[int, Work] = {}
    open_ = list(_not_done((target,)))
    while open_:
        work = open_.pop()
        if work.number not in found:
            found[work.number] = work
            open_.extend(_not_done(work.after))
    return found


def _not_done(works: Iterable[Work]) -> Iterator[Work]:
    """Yields the works that are not done; in place of a cancelled one, what it depends on and is not done."""
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
