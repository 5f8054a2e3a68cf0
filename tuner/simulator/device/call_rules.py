"""What a call of a host program must do: fork from its stream, join it again, finish, free its memory."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from tuner.simulator.device.defects import DefectLog, HostDefect
from tuner.simulator.device.happens_before import Moment
from tuner.simulator.device.lazy_streams import Work
from tuner.simulator.device.memory import MemoryRegion


@dataclass(eq=False)
class Call:
    """One call of a host program that has begun and not ended."""

    begin: Moment | None  # on the caller's stream; None: the call is synchronous, the host orders it
    before: tuple[MemoryRegion, ...]  # memory allocated before the call
    works: list[Work] = field(default_factory=list)


class CallRules:
    """Reports work that is not ordered between the begin and end of its call, and leaked memory."""

    def __init__(self, log: DefectLog) -> None:
        self._log = log
        self._call: Call | None = None

    def begin(self, begin: Moment | None, live: tuple[MemoryRegion, ...]) -> None:
        """Begins a call; ``live`` is the memory that is allocated before it."""
        self._call = Call(begin, live)

    def note(self, work: Work) -> None:
        """Adds work to the call; reports work that may run before the call begins (a missing fork)."""
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
        """Leaves work out of the call meanwhile."""
        call, self._call = self._call, None
        try:
            yield
        finally:
            self._call = call

    def abandon(self) -> tuple[Work, ...]:
        """Ends a call that failed, without a report; returns its work."""
        call, self._call = self._call, None
        return tuple(call.works) if call else ()

    def end(self, end: Moment, live: tuple[MemoryRegion, ...]) -> tuple[Work, ...]:
        """Ends the call at a moment of its stream or of the host; reports and returns work not before it."""
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
