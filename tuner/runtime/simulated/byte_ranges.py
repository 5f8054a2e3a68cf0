"""Ranges of addresses, and whether they overlap."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Addresses: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ByteRanges:
    """Addresses [first, behind the last), in order, apart from one another."""

    firsts: Addresses
    ends: Addresses

    @classmethod
    def one(cls, address: int, size_bytes: int) -> "ByteRanges":
        """Returns a single range, none for no bytes."""
        if size_bytes <= 0:
            return NO_BYTES
        return cls(np.array([address], np.int64), np.array([address + size_bytes], np.int64))

    @classmethod
    def of(cls, pairs: Iterable[Addresses]) -> "ByteRanges":
        """Returns the union of [range, (first, behind the last)] arrays of different buffers."""
        kept = [array for array in pairs if len(array)]
        if not kept:
            return NO_BYTES
        table = np.concatenate(kept)
        table = table[np.argsort(table[:, 0], kind="stable")]
        return cls(table[:, 0].copy(), np.maximum.accumulate(table[:, 1]))

    def first_common(self, other: "ByteRanges") -> int | None:
        """Returns the first address that both hold, None where there is none."""
        if not len(self.firsts) or not len(other.firsts):
            return None
        if self.ends[-1] <= other.firsts[0] or other.ends[-1] <= self.firsts[0]:
            return None
        # of each own range: the first of the others that ends behind its start
        candidate = np.searchsorted(other.ends, self.firsts, side="right")
        is_there = candidate < len(other.firsts)
        starts = other.firsts[np.minimum(candidate, len(other.firsts) - 1)]
        hits = np.flatnonzero(is_there & (starts < self.ends))
        if not len(hits):
            return None
        return int(max(self.firsts[hits[0]], starts[hits[0]]))


NO_BYTES = ByteRanges(np.empty(0, np.int64), np.empty(0, np.int64))
