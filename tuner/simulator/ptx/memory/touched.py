"""The byte ranges of a buffer that a launch read and wrote."""

from dataclasses import dataclass

import numpy as np

from tuner.simulator.ptx.dtypes import Bools, Indices
from tuner.simulator.ptx.races.global_races import GlobalRaces


@dataclass(frozen=True, eq=False)
class Touched:
    """The byte ranges of a buffer that a launch read and wrote: [range, (first, end)], sorted and disjoint.

    ``end`` is exclusive. ``reads`` holds only bytes that were read before the launch wrote them.
    """

    address: int  # of the array in this process
    reads: Indices  # bytes read before the launch wrote them
    writes: Indices
    plain_reads: Indices  # those of ``reads`` and ``writes`` that are not accessed atomically only
    plain_writes: Indices

    @classmethod
    def of(cls, address: int, size_bytes: int, races: GlobalRaces) -> "Touched":
        """Returns the byte ranges of a buffer that its race detector ``races`` has recorded.

        ``address`` is the array's in this process. Ranges are whole cells of the race detector.
        """

        def ranges(cells: Bools) -> Indices:
            found: Indices = np.minimum(runs(cells) * races.cell_bytes, size_bytes)
            return found

        reads, writes = ranges(races.read_first), ranges(races.written)
        if not races.has_strong:
            return cls(address, reads, writes, reads, writes)
        is_plain = ~races.only_strong
        return cls(
            address, reads, writes, ranges(races.read_first & is_plain), ranges(races.written & is_plain)
        )

    def written(self, items: int, item_bytes: int) -> Bools:
        """Returns, for each of the buffer's ``items`` items, whether any of its bytes was written.

        An item has ``item_bytes`` bytes.
        """
        flags = np.zeros(items, bool)
        for first, end in self.writes:
            flags[first // item_bytes : -(-end // item_bytes)] = True
        return flags


def runs(flags: Bools) -> Indices:
    """Returns the runs of True in ``flags``: [run, (first, end)], where end is exclusive."""
    changes = np.flatnonzero(flags[1:] != flags[:-1]) + 1
    first, end = np.flatnonzero(flags[:1]), np.flatnonzero(flags[-1:]) + flags.size
    return np.concatenate((first, changes, end)).reshape(-1, 2)
