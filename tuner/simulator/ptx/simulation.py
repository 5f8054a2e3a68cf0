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
    """The result of one launch that ran to its end."""

    kernel: str
    blocks: int  # simulated thread blocks
    instructions: int  # warp-level instructions
    conflicts: tuple[BankConflict, ...]  # of every instruction that accesses shared memory
    hazards: tuple[Hazard, ...]
    printed: str = ""  # output of vprintf
    touched: tuple[Touched, ...] = field(default=(), repr=False, compare=False)  # per array
    cluster: Index3 = (1, 1, 1)  # blocks of a cluster along x, y and z

    @property
    def races(self) -> tuple[Hazard, ...]:
        """Returns the hazards that make a result depend on the schedule; a correct kernel has none."""
        return tuple(hazard for hazard in self.hazards if hazard.kind not in BENIGN)

    @property
    def benign(self) -> tuple[Hazard, ...]:
        """Returns the hazards that change no result, such as unordered writes of the same value."""
        return tuple(hazard for hazard in self.hazards if hazard.kind in BENIGN)

    @property
    def conflict_ratio(self) -> float:
        """Returns the shared-memory wavefronts divided by those without bank conflicts; 1.0: no conflicts."""
        ideal = sum(conflict.ideal_wavefronts for conflict in self.conflicts)
        return sum(conflict.wavefronts for conflict in self.conflicts) / ideal if ideal else 1.0

    def written(self, array: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Returns which elements of an array the launch wrote."""
        flags = np.zeros(array.size, bool)
        for each in self.touched:
            if each.address == array.ctypes.data:
                flags |= each.written(array.size, array.itemsize)
        return flags.reshape(array.shape)
