"""Lazy execution of streams: a synchronisation runs what it depends on and nothing else, in a chosen order.

Late work is what a real GPU may do at worst, so that a missing synchronisation shows as a wrong result.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from tuner.simulator.device.byte_ranges import NO_BYTES, ByteRanges
from tuner.simulator.device.happens_before import HOST_QUEUE, Moment, moment_after

Order = Literal["fifo", "lifo", "random"]
ORDERS: tuple[Order, ...] = ("fifo", "lifo", "random")


@dataclass(frozen=True, eq=False)
class StreamOperation:
    """One operation that a stream or a captured graph is asked for: a copy, a fill, a launch, an event."""

    what: str  # in reports: "copy of 64 bytes"
    run: Callable[[Moment], None] | None = None
    submitted: Callable[[Moment], None] | None = None  # called when the operation is submitted
    reads: ByteRanges = NO_BYTES  # known before it runs
    writes: ByteRanges = NO_BYTES
    uses_host_memory: bool = False  # that is not pinned: gone when its owner frees it


@dataclass(eq=False)
class Work:
    """A submitted operation: its moment in happens-before, and the work it depends on."""

    number: int  # in the order of the calls
    operation: StreamOperation
    moment: Moment
    after: tuple["Work", ...]
    is_done: bool = False


class LazyStreams:
    """The submitted work of all queues (see ``happens_before``), which are numbers."""

    def __init__(self, order: Order, seed: int) -> None:
        """Takes the order among work that is ready: as called, the latest first, or random."""
        self._order = order
        self._rng = random.Random(seed)
        self._count = 0
        self._last: dict[int, Work] = {}  # by queue
        self._pending: dict[int, Work] = {}  # by number
        self.host = Moment(HOST_QUEUE, 0, {})

    @property
    def pending(self) -> tuple[Work, ...]:
        """Returns the work that has not run, in the order of the calls."""
        return tuple(self._pending.values())

    def last(self, queue: int) -> Work | None:
        """Returns the work that was submitted last to a queue."""
        return self._last.get(queue)

    def submit(self, queue: int, operation: StreamOperation, after: Iterable[Work] = ()) -> Work:
        """Submits an operation that depends on its queue, on ``after`` and on what the host waited for."""
        earlier = [*after]
        if queue in self._last:
            earlier.append(self._last[queue])
        moment = moment_after(queue, (self.host, *(work.moment for work in earlier)))
        work = Work(self._count, operation, moment, tuple(each for each in earlier if not each.is_done))
        self._count += 1
        self._last[queue] = self._pending[work.number] = work
        if operation.submitted is not None:
            operation.submitted(moment)
        return work

    def host_moment(self) -> Moment:
        """Advances the host's queue by one moment, and returns it."""
        self.host = moment_after(HOST_QUEUE, (self.host,))
        return self.host

    def wait_for(self, work: Work) -> None:
        """Runs work and all that it depends on; later work is ordered after it through the host."""
        self._run(_needed(work))
        self.host = moment_after(HOST_QUEUE, (self.host, work.moment))

    def wait_for_all(self) -> None:
        """Runs all submitted work."""
        for work in tuple(self._last.values()):
            self.wait_for(work)

    def drop(self, work: Work) -> None:
        """Cancels work: it counts as done and never runs."""
        work.is_done = True
        self._pending.pop(work.number, None)

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
    """Returns what a target transitively depends on and has not run, itself included, by number."""
    found: dict[int, Work] = {}
    open_ = [target]
    while open_:
        work = open_.pop()
        if not work.is_done and work.number not in found:
            found[work.number] = work
            open_.extend(work.after)
    return found
