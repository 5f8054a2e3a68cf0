"""Happens-before (Lamport 1978) of a device's work by vector clocks (Fidge, Mattern 1988), and data races.

A queue is a sequence that runs in order: a stream, a branch of a launched graph, or the host. The clock of a
moment holds, for each queue, the time up to which the queue's work is ordered before the moment. Two accesses
race where neither moment is before the other, in whatever order the work was actually run.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tuner.simulator.device.byte_ranges import ByteRanges
from tuner.simulator.device.defects import DefectLog, HostDefect

HOST_QUEUE = -1


@dataclass(frozen=True)
class Moment:
    """A vector timestamp: the position of an operation in the partial order of happens-before."""

    queue: int
    time: int  # position in the queue, from 1
    # queue -> the latest time of that queue ordered before this moment; its own queue included
    clock: Mapping[int, int] = field(repr=False)

    def is_before(self, other: "Moment") -> bool:
        """Returns whether this moment happens before the other moment, or is the same moment."""
        return other.clock.get(self.queue, 0) >= self.time


def moment_after(queue: int, earlier: Iterable[Moment]) -> Moment:
    """Returns the next moment of a queue, which happens after all moments ``earlier``.

    ``earlier`` must include the queue's last moment. The clocks are joined, and the queue's time is one more.
    """
    clock: dict[int, int] = {}
    for moment in earlier:
        for other, time in moment.clock.items():
            clock[other] = max(clock.get(other, 0), time)
    clock[queue] = clock.get(queue, 0) + 1
    return Moment(queue, clock[queue], clock)


@dataclass(frozen=True, eq=False)
class MemoryAccess:
    """The bytes that an operation of the GPU or the host read and wrote, and its moment in happens-before."""

    what: str  # "copy of 64 bytes", "kernel k", "the host"
    moment: Moment
    reads: ByteRanges
    writes: ByteRanges
    # Without bytes that are accessed atomically only; None: all. Atomic accesses do not race with each other.
    plain_reads: ByteRanges | None = None
    plain_writes: ByteRanges | None = None


class AccessHistory:
    """A history of memory accesses; checks each new access for data races with the earlier ones."""

    def __init__(self, log: DefectLog, describe: Callable[[int], str]) -> None:
        """``log`` receives the races; ``describe`` names the memory at an address."""
        self._log = log
        self._describe = describe
        self._accesses: list[MemoryAccess] = []

    def add(self, access: MemoryAccess) -> None:
        """Adds an access; reports a race with each earlier access to the same bytes that nothing orders.

        At least one of the two accesses must be a write of these bytes.
        """
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
        """Removes the access with this ``moment``, since its operation was cancelled."""
        self._accesses = [access for access in self._accesses if access.moment is not moment]

    def forget_before(self, moment: Moment) -> None:
        """Removes the accesses that happen before a moment, and that of the moment itself.

        The caller must ensure that every later access happens after the moment.
        """
        self._accesses = [access for access in self._accesses if not access.moment.is_before(moment)]


def _common(one: MemoryAccess, other: MemoryAccess) -> int | None:
    """Returns an address that both accesses touch and at least one writes; None where there is none."""
    sides = ((one, other), (other, one))
    for mine, theirs in sides:
        writes = mine.writes if mine.plain_writes is None else mine.plain_writes
        reads = mine.reads if mine.plain_reads is None else mine.plain_reads
        for ours, others in ((writes, theirs.writes), (writes, theirs.reads), (reads, theirs.writes)):
            place = ours.first_common(others)
            if place is not None:
                return place
    return None
