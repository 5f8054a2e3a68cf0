"""Shows which parts of a function may run on several threads: loops whose iterations touch separate memory.

A part is a loop whose iterations are shared out, or code between loops, which one thread runs alone, or all
threads. All threads run the same function, each with buffers of its own for what the function allocates, and
nothing makes one wait for another. So what a part writes, no other thread may touch:

- iterations of a shared loop access separate slabs: rows or columns that follow the loop's variable;
- a buffer of the function that each iteration writes before it reads may be used again by the next one;
- two parts touch separate places, or separate slabs of equal loops, or are run by the same thread.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from tuner.mlir.bindings import Op, Value
from tuner.mlir.cpu.index_ranges import LoopBounds, range_of
from tuner.mlir.cpu.memory_accesses import PlacedAccess, is_local


class ThreadShare(Enum):
    """Which threads run a part."""

    SHARED = "each thread some iterations"
    ALONE = "the first thread"
    ALL = "each thread everything"


@dataclass(frozen=True, eq=False)
class Part:
    """A loop, or operations between loops, with what they access."""

    share: ThreadShare
    ops: tuple[Op, ...]
    accesses: tuple[PlacedAccess, ...]
    bounds: LoopBounds | None = None  # of a shared loop

    @property
    def variable(self) -> Value:
        """Returns the variable of a shared loop."""
        return self.ops[0].regions[0].blocks[0].arguments[0]

    def of(self, buffer: Value) -> tuple[PlacedAccess, ...]:
        """Returns the accesses of a buffer."""
        return tuple(each for each in self.accesses if each.buffer == buffer)

    def writes(self, buffer: Value) -> bool:
        """Returns whether the part writes a buffer."""
        return any(each.is_write for each in self.of(buffer))


@dataclass(frozen=True)
class Slab:
    """What an iteration accesses of a dimension: ``factor`` times its variable plus ``low`` to ``high``."""

    dimension: int
    factor: int
    low: int
    high: int


def may_run_together(parts: Sequence[Part]) -> bool:
    """Returns whether several threads may run the parts, each with its share, and none waits for another."""
    return all(_has_separate_iterations(part) for part in parts if part.share is ThreadShare.SHARED) and all(
        _are_separate(one, other, buffer)
        for one, other in combinations(parts, 2)
        for buffer in _touched_by_both(one, other)
    )


def _has_separate_iterations(part: Part) -> bool:
    written = _distinct(each.buffer for each in part.accesses if each.is_write)
    return all(
        _slabs([part], buffer) or (is_local(buffer) and part.of(buffer)[0].is_write) for buffer in written
    )


def _are_separate(one: Part, other: Part, buffer: Value) -> bool:
    """Returns whether no thread touches what another thread writes into a buffer in another part."""
    shares = {one.share, other.share}
    if (
        not (one.writes(buffer) or other.writes(buffer))
        or len(shares - {ThreadShare.SHARED}) == len(shares) == 1
    ):
        return True  # read only, or both by the same thread
    writer_is_all = all(part.share is ThreadShare.ALL for part in (one, other) if part.writes(buffer))
    if writer_is_all and is_local(buffer):
        return True  # each thread has written all of its own buffer
    if shares == {ThreadShare.SHARED} and one.bounds == other.bounds and _slabs([one, other], buffer):
        return True
    places = zip(_places(one, buffer), _places(other, buffer), strict=False)
    return any(left[1] < right[0] or right[1] < left[0] for left, right in places if left and right)


def _slabs(parts: Sequence[Part], buffer: Value) -> list[Slab]:
    """Returns the dimensions along which iterations of the loops access separate slabs of a buffer."""
    found = []
    accesses = [(part.variable, each) for part in parts for each in part.of(buffer)]
    if any(not each.starts for _, each in accesses):
        return []
    for dimension in range(len(accesses[0][1].starts)):
        ranges = [(range_of(each.starts[dimension], variable), each) for variable, each in accesses]
        known = [(found_range, each) for found_range, each in ranges if found_range is not None]
        factors = {found_range.factor for found_range, _ in known}
        if len(known) < len(ranges) or len(factors) != 1:
            continue
        low = min(found_range.low for found_range, _ in known)
        high = max(found_range.high + each.extents[dimension] - 1 for found_range, each in known)
        (factor,) = factors
        bounds = parts[0].bounds
        if bounds is not None and abs(factor) * bounds.step > high - low:
            found.append(Slab(dimension, factor, low, high))
    return found


def _places(part: Part, buffer: Value) -> list[tuple[int, int] | None]:
    """Returns the first and the last index of each dimension of a buffer that a part touches; None: any."""
    accesses = part.of(buffer)
    if any(not each.starts for each in accesses):
        return []
    places: list[tuple[int, int] | None] = []
    for dimension in range(len(accesses[0].starts)):
        ranges = [(range_of(each.starts[dimension], None), each.extents[dimension]) for each in accesses]
        known = [(found, extent) for found, extent in ranges if found is not None]
        lows = [found.low for found, _ in known]
        highs = [found.high + extent - 1 for found, extent in known]
        places.append((min(lows), max(highs)) if len(known) == len(ranges) else None)
    return places


def _touched_by_both(one: Part, other: Part) -> list[Value]:
    theirs = [each.buffer for each in other.accesses]
    return _distinct(each.buffer for each in one.accesses if each.buffer in theirs)


def _distinct(buffers: Iterator[Value]) -> list[Value]:
    return list(dict.fromkeys(buffers))
