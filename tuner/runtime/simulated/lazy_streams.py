"""Streams that run as late as possible: only what a synchronisation needs, in an order that tests choose."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from tuner.runtime.simulated.byte_ranges import NO_BYTES, ByteRanges
from tuner.runtime.simulated.happens_before import HOST_LANE, Moment, moment_after

Order = Literal["fifo", "lifo", "random"]
ORDERS: tuple[Order, ...] = ("fifo", "lifo", "random")


@dataclass(frozen=True, eq=False)
class Step:
    """Something a stream is asked to do; a graph holds it without a moment."""

    what: str  # in reports: "copy of 64 bytes"
    run: Callable[[Moment], None] | None = None
    submitted: Callable[[Moment], None] | None = None  # called when it gets its place in the order
    reads: ByteRanges = NO_BYTES  # known before it runs
    writes: ByteRanges = NO_BYTES
    uses_host_memory: bool = False  # that is not pinned: gone when its owner frees it


@dataclass(eq=False)
class Work:
    """A step with its place in the order."""

    number: int  # in the order of the calls
    step: Step
    moment: Moment
    after: tuple["Work", ...]
    is_done: bool = False


class LazyStreams:
    """The work of all lanes. Lanes are numbers; the host is one of them."""

    def __init__(self, order: Order, seed: int) -> None:
        """Takes the order among work that is ready: as called, the latest first, or random."""
        self._order = order
        self._rng = random.Random(seed)
        self._count = 0
        self._last: dict[int, Work] = {}  # by lane
        self._pending: dict[int, Work] = {}  # by number
        self.host = Moment(HOST_LANE, 0, {})

    @property
    def pending(self) -> tuple[Work, ...]:
        """Returns the work that was not needed yet, in the order of the calls."""
        return tuple(self._pending.values())

    def last(self, lane: int) -> Work | None:
        """Returns what a lane was asked for last."""
        return self._last.get(lane)

    def submit(self, lane: int, step: Step, after: Iterable[Work] = ()) -> Work:
        """Puts a step behind all of its lane, behind other work and behind what the host knows to be done."""
        earlier = [*after]
        if lane in self._last:
            earlier.append(self._last[lane])
        moment = moment_after(lane, (self.host, *(work.moment for work in earlier)))
        work = Work(self._count, step, moment, tuple(each for each in earlier if not each.is_done))
        self._count += 1
        self._last[lane] = self._pending[work.number] = work
        if step.submitted is not None:
            step.submitted(moment)
        return work

    def host_moment(self) -> Moment:
        """Returns a new moment of the host."""
        self.host = moment_after(HOST_LANE, (self.host,))
        return self.host

    def wait_for(self, work: Work) -> None:
        """Runs what the work needs, then itself; the host then knows that it is done."""
        self._run(_needed(work))
        self.host = moment_after(HOST_LANE, (self.host, work.moment))

    def wait_for_all(self) -> None:
        """Runs everything."""
        for work in tuple(self._last.values()):
            self.wait_for(work)

    def drop(self, work: Work) -> None:
        """Takes work back without running it."""
        work.is_done = True
        self._pending.pop(work.number, None)

    def _run(self, needed: dict[int, Work]) -> None:
        while needed:
            ready = [work for work in needed.values() if all(each.is_done for each in work.after)]
            work = self._choose(ready)
            del needed[work.number], self._pending[work.number]
            work.is_done, work.after = True, ()
            if work.step.run is not None:
                work.step.run(work.moment)

    def _choose(self, ready: list[Work]) -> Work:
        if self._order == "random":
            return self._rng.choice(ready)
        choose = min if self._order == "fifo" else max
        return choose(ready, key=lambda work: work.number)


def _needed(target: Work) -> dict[int, Work]:
    """Returns the work that is not done and must be before the target is, itself included, by number."""
    found: dict[int, Work] = {}
    open_ = [target]
    while open_:
        work = open_.pop()
        if not work.is_done and work.number not in found:
            found[work.number] = work
            open_.extend(work.after)
    return found
