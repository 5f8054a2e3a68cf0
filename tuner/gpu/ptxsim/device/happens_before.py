"""Happens-before of a device's work by vector clocks, data races, and the log of a host program's defects.

Happens-before is Lamport's (1978), vector clocks are Fidge's and Mattern's (1988). A queue is a sequence that
runs in order: a stream, a branch of a launched graph, or the host. The clock of a moment holds, for each
queue, the time up to which the queue's work is ordered before the moment. Two accesses race where neither
moment is before the other, in whatever order the work was actually run.
"""

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tuner.core.errors import DeviceError

Addresses: TypeAlias = npt.NDArray[np.int64]
HOST_QUEUE = -1


@dataclass(frozen=True, eq=False)
class ByteRanges:
    """A set of byte addresses: half-open intervals, which may overlap; ``firsts`` and ``ends`` ascend."""

    firsts: Addresses
    ends: Addresses

    @classmethod
    def one(cls, address: int, size_bytes: int) -> "ByteRanges":
        if size_bytes <= 0:
            return NO_BYTES
        return cls(np.array([address], np.int64), np.array([address + size_bytes], np.int64))

    @classmethod
    def of(cls, pairs: Iterable[Addresses]) -> "ByteRanges":
        """Returns the union of half-open intervals (first, end): arrays of shape (intervals, 2)."""
        kept = list(filter(len, pairs))
        if not kept:
            return NO_BYTES
        table = np.concatenate(kept)
        table = table[np.argsort(table[:, 0], kind="stable")]
        # Each end becomes the greatest so far; the added bytes are in an earlier interval: an equal union.
        return cls(table[:, 0].copy(), np.maximum.accumulate(table[:, 1]))

    def first_common(self, other: "ByteRanges") -> int | None:
        """Returns an address that is in both sets, None if they are disjoint."""
        if not len(self.firsts) or not len(other.firsts):
            return None
        if self.ends[-1] <= other.firsts[0] or other.ends[-1] <= self.firsts[0]:
            return None
        # for each interval of self: the first interval of other that ends after its start
        candidate = np.searchsorted(other.ends, self.firsts, side="right")
        is_there = candidate < len(other.firsts)
        starts = other.firsts[np.minimum(candidate, len(other.firsts) - 1)]
        hits = np.flatnonzero(is_there & (starts < self.ends))
        if not len(hits):
            return None
        return int(max(self.firsts[hits[0]], starts[hits[0]]))


NO_BYTES = ByteRanges(np.empty(0, np.int64), np.empty(0, np.int64))


class HostDefect(enum.Enum):
    """A kind of defect in a host program's use of a GPU: a race, a leak, a use after free and others."""

    RACE = "race"  # two unordered accesses to the same bytes, at least one a write
    MISSING_FORK = "missing fork"  # work that may run before the call begins
    MISSING_JOIN = "missing join"  # work that may run after what follows the call on its stream
    UNFINISHED = "unfinished"  # work that may run after the call has returned
    USE_AFTER_FREE = "use after free"
    DOUBLE_FREE = "double free"
    LEAK = "leak"
    UNWRITTEN = "never written"  # a read of memory that was never written
    OUT_OF_BOUNDS = "out of bounds"
    NEVER_RECORDED = "event never recorded"  # a wait for the event orders nothing
    KERNEL = "kernel"  # a race or an undefined read inside of a kernel


@dataclass(frozen=True)
class HostReport:
    """A defect of a host program: kind, description, and the number of times that it was found."""

    kind: HostDefect
    text: str  # the operation and the memory, in plain text
    count: int

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.kind.value}: {self.text}{times}"


class DefectLog:
    """The defects found in a host program; one that is found again is counted, not stored again."""

    def __init__(self) -> None:
        self._found: dict[tuple[HostDefect, str], int] = {}

    def add(self, kind: HostDefect, text: str) -> None:
        self._found[kind, text] = self._found.get((kind, text), 0) + 1

    def reports(self) -> tuple[HostReport, ...]:
        return tuple(HostReport(kind, text, count) for (kind, text), count in self._found.items())


def refused(name: str, reason: str) -> DeviceError:
    """Returns the DeviceError for an error of a CUDA driver; ``name``: its CUresult without CUDA_ERROR_."""
    return DeviceError(f"CUDA_ERROR_{name}: {reason}", f"CUDA_ERROR_{name}")


@dataclass(frozen=True)
class Moment:
    """A vector timestamp: an operation's position in the partial order of happens-before."""

    queue: int
    time: int  # position in the queue, from 1
    # queue -> the latest time of that queue ordered before this moment; its own queue included
    clock: Mapping[int, int] = field(repr=False)

    def is_before(self, other: "Moment") -> bool:
        return other.clock.get(self.queue, 0) >= self.time


def moment_after(queue: int, earlier: Iterable[Moment]) -> Moment:
    """Returns a queue's next moment, ordered after all moments of ``earlier``.

    ``earlier`` must contain the queue's last moment.
    """
    clock: dict[int, int] = {}
    for moment in earlier:
        for other, time in moment.clock.items():
            clock[other] = max(clock.get(other, 0), time)
    clock[queue] = clock.get(queue, 0) + 1
    return Moment(queue, clock[queue], clock)


@dataclass(frozen=True, eq=False)
class MemoryAccess:
    """The bytes that an operation of the GPU or the host reads and writes, and its moment."""

    what: str  # "copy of 64 bytes", "kernel k", "the host"
    moment: Moment
    reads: ByteRanges
    writes: ByteRanges
    # Without bytes that are accessed atomically only; None: all. Atomic accesses do not race with each other.
    plain_reads: ByteRanges | None = None
    plain_writes: ByteRanges | None = None


class AccessHistory:
    """Checks each new memory access for data races with earlier ones."""

    def __init__(self, log: DefectLog, describe: Callable[[int], str]) -> None:
        """``log`` gets the races; ``describe`` returns a text for an address, such as "byte 16 of d0"."""
        self._log = log
        self._describe = describe
        self._accesses: list[MemoryAccess] = []

    def add(self, access: MemoryAccess) -> None:
        """Adds an access, and logs a race with each earlier access that is not ordered with it.

        Two accesses race if they touch a common byte, at least one of them writes it, and not both are
        atomic.
        """
        for earlier in self._accesses:
            if earlier.moment.is_before(access.moment) or access.moment.is_before(earlier.moment):
                continue
            address = _common(earlier, access)
            if address is not None:
                # one text for both orders: counted as one
                first, second = sorted((earlier.what, access.what))
                text = f"nothing orders {first} and {second}, both at {self._describe(address)}"
                self._log.add(HostDefect.RACE, text)
        self._accesses.append(access)

    def forget(self, moment: Moment) -> None:
        self._accesses = [access for access in self._accesses if access.moment is not moment]

    def forget_before(self, moment: Moment) -> None:
        """Removes accesses before ``moment``; call it only if all later accesses happen after this moment."""
        self._accesses = [access for access in self._accesses if not access.moment.is_before(moment)]


def _common(one: MemoryAccess, other: MemoryAccess) -> int | None:
    """Returns an address that both accesses touch and at least one writes, not both atomically; else None."""
    # Plain (not atomic) bytes of one access are compared with all of the other: two atomics do not race.
    for plain, whole in ((one, other), (other, one)):
        writes = plain.writes if plain.plain_writes is None else plain.plain_writes
        reads = plain.reads if plain.plain_reads is None else plain.plain_reads
        for plain_bytes, all_bytes in ((writes, whole.writes), (writes, whole.reads), (reads, whole.writes)):
            address = plain_bytes.first_common(all_bytes)
            if address is not None:
                return address
    return None
