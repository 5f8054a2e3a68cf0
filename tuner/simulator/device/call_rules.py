"""Rules for a call of a host program: fork from its stream, join it again, finish, free its memory."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from tuner.simulator.device.defects import DefectLog, HostDefect
from tuner.simulator.device.happens_before import Moment
from tuner.simulator.device.lazy_streams import Work
from tuner.simulator.device.memory import MemoryRegion


@dataclass(eq=False)
class Call:
    """A call of a host program that has begun and has not ended, with the GPU work submitted meanwhile."""

    begin: Moment | None  # on the caller's stream; None: a synchronous call, ordered by the host
    before: tuple[MemoryRegion, ...]  # memory allocated before the call
    works: list[Work] = field(default_factory=list)


class CallRules:
    """Checks the GPU work of each call of a host program; reports to a log.

    Work must be ordered after the begin and before the end of its call, and the call must free the memory
    that it allocates. At most one call is current at a time.
    """

    def __init__(self, log: DefectLog) -> None:
        self._log = log
        self._call: Call | None = None

    def begin(self, begin: Moment | None, live: tuple[MemoryRegion, ...]) -> None:
        """Begins a call at moment ``begin``; None: a synchronous call, whose begin orders nothing.

        ``live`` is the memory that is allocated before the call: the call need not free it.
        """
        self._call = Call(begin, live)

    def note(self, work: Work) -> None:
        """Adds work to the current call; reports a missing fork where it may run before the call begins.

        Only the first work of each queue is checked, since a queue runs in order. Without a current call,
        does nothing.
        """
        if self._call is None:
            return
        begin = self._call.begin
        is_first = all(each.moment.queue != work.moment.queue for each in self._call.works)
        if begin is not None and is_first and not begin.is_before(work.moment):
            what = f"{work.operation.what} may run before the call's stream has come to the call"
            self._log.add(HostDefect.MISSING_FORK, what)
        self._call.works.append(work)

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Returns a context manager: work that is submitted inside does not belong to the current call."""
        call, self._call = self._call, None
        try:
            yield
        finally:
            self._call = call

    def abandon(self) -> tuple[Work, ...]:
        """Ends a call that failed, without reports; returns all work of the call, () without a call."""
        call, self._call = self._call, None
        return tuple(call.works) if call else ()

    def end(self, end: Moment, live: tuple[MemoryRegion, ...]) -> tuple[Work, ...]:
        """Ends the current call; returns its work that is not ordered before ``end``, () without a call.

        Reports the last such work of each queue, and each region of ``live``, the memory allocated at the
        end, that the call allocated and did not free, unless the region is kept on purpose.
        """
        if self._call is None:
            return ()
        call, self._call = self._call, None
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
