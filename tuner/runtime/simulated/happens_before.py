"""Which work is ordered before which, by vector clocks, and the accesses that nothing orders.

A lane is a stream, a branch of a launched graph, or the host. What the clock of a moment holds for a lane is
how far along that lane everything is ordered before the moment. The order in which the work really ran does
not matter: a race is reported whatever it was.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tuner.runtime.simulated.byte_ranges import ByteRanges
from tuner.runtime.simulated.defects import DefectLog, HostDefect

HOST_LANE = -1


@dataclass(frozen=True)
class Moment:
    """A place in the partial order."""

    lane: int
    time: int  # along the lane, from 1
    clock: Mapping[int, int] = field(
        repr=False
    )  # lane -> latest time there that is ordered before, own included

    def is_before(self, other: "Moment") -> bool:
        """Tells whether something orders this before the other; a moment is before itself."""
        return other.clock.get(self.lane, 0) >= self.time


def moment_after(lane: int, earlier: Iterable[Moment]) -> Moment:
    """Returns the next moment of a lane behind others; the last of the lane must be among them."""
    clock: dict[int, int] = {}
    for moment in earlier:
        for other, time in moment.clock.items():
            clock[other] = max(clock.get(other, 0), time)
    clock[lane] = clock.get(lane, 0) + 1
    return Moment(lane, clock[lane], clock)


@dataclass(frozen=True, eq=False)
class Access:
    """What was done to memory, and when."""

    what: str  # "copy of 64 bytes", "kernel k", "the host"
    moment: Moment
    reads: ByteRanges
    writes: ByteRanges


class AccessHistory:
    """The accesses so far that later ones can still race with."""

    def __init__(self, log: DefectLog, describe: Callable[[int], str]) -> None:
        """Takes where races are reported, and what names the memory at an address."""
        self._log = log
        self._describe = describe
        self._accesses: list[Access] = []

    def add(self, access: Access) -> None:
        """Notes an access; reports each earlier one that nothing orders it with."""
        for earlier in self._accesses:
            if earlier.moment.is_before(access.moment) or access.moment.is_before(earlier.moment):
                continue
            place = _common(earlier, access)
            if place is not None:
                first, second = sorted((earlier.what, access.what))
                text = f"nothing orders {first} and {second}, both at {self._describe(place)}"
                self._log.add(HostDefect.RACE, text)
        self._accesses.append(access)

    def forget(self, moment: Moment) -> None:
        """Drops the access of a moment: it was taken back."""
        self._accesses = [access for access in self._accesses if access.moment is not moment]

    def forget_before(self, moment: Moment) -> None:
        """Drops what is ordered before a moment; all later accesses must be ordered behind it."""
        self._accesses = [access for access in self._accesses if not access.moment.is_before(moment)]


def _common(one: Access, other: Access) -> int | None:
    """Returns an address that both touch and one writes."""
    for mine, theirs in ((one.writes, other.writes), (one.writes, other.reads), (one.reads, other.writes)):
        place = mine.first_common(theirs)
        if place is not None:
            return place
    return None
