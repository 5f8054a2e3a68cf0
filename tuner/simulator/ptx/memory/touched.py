"""The byte ranges of a buffer that a launch read and wrote."""

from dataclasses import dataclass

import numpy as np

from tuner.simulator.ptx.dtypes import Bools, Indices
from tuner.simulator.ptx.races.global_races import GlobalRaces


@dataclass(frozen=True, eq=False)
class Touched:
    """Byte ranges of one buffer: [range, (first, end)], sorted and disjoint."""

    address: int  # of the array in this process
    reads: Indices  # bytes read before the launch wrote them
    writes: Indices

    @classmethod
    def of(cls, address: int, size_bytes: int, races: GlobalRaces) -> "Touched":
        """Returns the byte ranges that the race detector ``races`` of a buffer has recorded."""
        reads, writes = (
            np.minimum(runs(cells) * races.cell_bytes, size_bytes)
            for cells in (races.read_first, races.written)
        )
        return cls(address, reads, writes)

    def written(self, items: int, item_bytes: int) -> Bools:
        """Returns per item of the buffer whether any of its bytes was written."""
        flags = np.zeros(items, bool)
        for first, end in self.writes:
            flags[first // item_bytes : -(-end // item_bytes)] = True
        return flags


def runs(flags: Bools) -> Indices:
    """Returns the runs of True: [run, (first, end)]."""
    changes = np.flatnonzero(flags[1:] != flags[:-1]) + 1
    first, end = np.flatnonzero(flags[:1]), np.flatnonzero(flags[-1:]) + flags.size
    return np.concatenate((first, changes, end)).reshape(-1, 2)
