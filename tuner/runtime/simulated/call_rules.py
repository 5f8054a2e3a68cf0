"""What a host program must keep to between its begin and its end: fork, join, finish, free."""

from dataclasses import dataclass, field

from tuner.runtime.simulated.defects import DefectLog, HostDefect
from tuner.runtime.simulated.happens_before import Moment
from tuner.runtime.simulated.lazy_streams import Work
from tuner.runtime.simulated.memory import Region


@dataclass(eq=False)
class Call:
    """One call of a host program that goes on."""

    begin: Moment | None  # on the caller's stream; None: the call is synchronous, the host orders it
    before: tuple[Region, ...]  # device memory that was there
    works: list[Work] = field(default_factory=list)


class CallRules:
    """Judges the work of a call."""

    def __init__(self, log: DefectLog) -> None:
        self._log = log
        self._call: Call | None = None

    def begin(self, begin: Moment | None, live: tuple[Region, ...]) -> None:
        """Starts a call."""
        self._call = Call(begin, live)

    def note(self, work: Work) -> None:
        """Takes in work of the call; it must not be able to run before the begin."""
        if self._call is None:
            return
        begin = self._call.begin
        is_first = all(each.moment.lane != work.moment.lane for each in self._call.works)
        if begin is not None and is_first and not begin.is_before(work.moment):
            what = f"{work.step.what} may run before the call's stream has come to the call"
            self._log.add(HostDefect.MISSING_FORK, what)
        self._call.works.append(work)

    def abandon(self) -> tuple[Work, ...]:
        """Ends the call without a judgement; returns its work."""
        call, self._call = self._call, None
        return tuple(call.works) if call else ()

    def end(self, end: Moment, live: tuple[Region, ...]) -> tuple[Work, ...]:
        """Ends the call at a moment of its stream or of the host; returns the work not ordered before it."""
        if self._call is None:
            return ()
        call, self._call = self._call, None
        late = tuple(work for work in call.works if not work.moment.is_before(end))
        last = {work.moment.lane: work for work in late}
        for work in last.values():
            if call.begin is None:
                self._log.add(HostDefect.UNFINISHED, f"{work.step.what} may run after the call has returned")
            else:
                what = f"{work.step.what} may run after what follows the call on its stream"
                self._log.add(HostDefect.MISSING_JOIN, what)
        for region in live:
            if region not in call.before and not region.is_kept:
                self._log.add(HostDefect.LEAK, f"{region.name} ({region.bytes.size} bytes) is never freed")
        return late
