"""Sets of byte addresses as sorted intervals, and the intersection test of two sets."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Addresses: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ByteRanges:
    """A set of byte addresses: the union of half-open intervals; both ``firsts`` and ``ends`` ascend."""

    firsts: Addresses
    ends: Addresses

    @classmethod
    def one(cls, address: int, size_bytes: int) -> "ByteRanges":
        """Returns the set of ``size_bytes`` bytes from ``address``; the empty set, NO_BYTES, for size 0."""
        if size_bytes <= 0:
            return NO_BYTES
        return cls(np.array([address], np.int64), np.array([address + size_bytes], np.int64))

    @classmethod
    def of(cls, pairs: Iterable[Addresses]) -> "ByteRanges":
        """Returns the union of the half-open intervals (first, end) in arrays of shape (intervals, 2).

        The intervals may come in any order and overlap. In the result the ends are sorted too: an end is the
        largest so far, so intervals may still overlap, but the set of bytes is the union.
        """
        kept = [array for array in pairs if len(array)]
        if not kept:
            return NO_BYTES
        table = np.concatenate(kept)
        table = table[np.argsort(table[:, 0], kind="stable")]
        return cls(table[:, 0].copy(), np.maximum.accumulate(table[:, 1]))

    def first_common(self, other: "ByteRanges") -> int | None:
        """Returns an address that is in both sets, by binary search; None where they are disjoint."""
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
