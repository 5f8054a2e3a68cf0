"""What a kernel touched of one buffer, as ranges of bytes."""

from dataclasses import dataclass

import numpy as np

from tuner.ptx.dtypes import Bools, Indices
from tuner.ptx.global_races import GlobalRaces


@dataclass(frozen=True, eq=False)
class Touched:
    """Bytes of one buffer: [range, (first, behind the last)], in order, apart from one another."""

    address: int  # of the array in this process
    reads: Indices  # of what was there before the launch
    writes: Indices

    @classmethod
    def of(cls, address: int, size_bytes: int, races: GlobalRaces) -> "Touched":
        """Returns what the races of a buffer have seen."""
        reads, writes = (
            np.minimum(runs(cells) * races.cell_bytes, size_bytes)
            for cells in (races.read_first, races.written)
        )
        return cls(address, reads, writes)


def runs(flags: Bools) -> Indices:
    """Returns the runs of flags that are set: [run, (first, behind the last)]."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    return edges.reshape(-1, 2)
