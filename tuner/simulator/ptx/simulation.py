"""The result of a simulated launch."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.simulator.ptx.defects import BENIGN, Hazard
from tuner.simulator.ptx.geometry import Index3
from tuner.simulator.ptx.memory.touched import Touched
from tuner.simulator.ptx.races.bank_conflicts import BankConflict


@dataclass(frozen=True)
class Simulation:
    """The result of one simulated launch that ran to its end: counts, bank conflicts, hazards and output."""

    kernel: str
    blocks: int  # simulated thread blocks
    instructions: int  # warp-level instructions
    conflicts: tuple[BankConflict, ...]  # of instructions that access shared memory, see ConflictCounter
    hazards: tuple[Hazard, ...]
    printed: str = ""  # output of vprintf
    touched: tuple[Touched, ...] = field(default=(), repr=False, compare=False)  # per array
    cluster: Index3 = (1, 1, 1)  # blocks of a cluster along x, y and z

    @property
    def races(self) -> tuple[Hazard, ...]:
        """Returns all hazards but the benign ones: races, and others that can change the result.

        Others are for example uninitialised shared memory, missing fences and asynchronous operations that
        are not waited for. A correct kernel has none, unless its blocks synchronise through global memory,
        which is not modelled.
        """
        return tuple(hazard for hazard in self.hazards if hazard.kind not in BENIGN)

    @property
    def benign(self) -> tuple[Hazard, ...]:
        """Returns the hazards that change no result: unordered silent stores, and late accumulators.

        A silent store writes the value that the memory has, or the one that all other threads of the
        instruction write. A late accumulator is written after wgmma.fence, which ptxas repairs.
        """
        return tuple(hazard for hazard in self.hazards if hazard.kind in BENIGN)

    @property
    def conflict_ratio(self) -> float:
        """Returns the launch's shared-memory wavefronts divided by those needed without bank conflicts.

        1.0: no bank conflicts, or no access to shared memory.
        """
        ideal = sum(conflict.ideal_wavefronts for conflict in self.conflicts)
        return sum(conflict.wavefronts for conflict in self.conflicts) / ideal if ideal else 1.0

    def written(self, array: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Returns, in the shape of ``array``, which of its elements the launch wrote.

        ``array`` must be an argument of the launch: the same memory, not a copy. For another array, all are
        False.
        """
        flags = np.zeros(array.size, bool)
        for each in self.touched:
            if each.address == array.ctypes.data:
                flags |= each.written(array.size, array.itemsize)
        return flags.reshape(array.shape)
