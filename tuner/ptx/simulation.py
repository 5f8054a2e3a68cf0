"""What a simulation found, as a value."""

from dataclasses import dataclass

from tuner.ptx.conflicts import BankConflict
from tuner.ptx.defects import BENIGN, Hazard


@dataclass(frozen=True)
class Simulation:
    """The outcome of one launch that ran to its end."""

    kernel: str
    blocks: int  # simulated
    instructions: int  # of warps
    conflicts: tuple[BankConflict, ...]  # of every instruction that touches shared memory
    hazards: tuple[Hazard, ...]

    @property
    def races(self) -> tuple[Hazard, ...]:
        """Returns the hazards that make results depend on the order: none may be there."""
        return tuple(hazard for hazard in self.hazards if hazard.kind not in BENIGN)

    @property
    def benign(self) -> tuple[Hazard, ...]:
        """Returns the hazards that do no harm, such as unordered writes of the same value."""
        return tuple(hazard for hazard in self.hazards if hazard.kind in BENIGN)

    @property
    def conflict_ratio(self) -> float:
        """Returns how many times longer shared memory takes because of bank conflicts; 1.0 without any."""
        ideal = sum(conflict.ideal_wavefronts for conflict in self.conflicts)
        return sum(conflict.wavefronts for conflict in self.conflicts) / ideal if ideal else 1.0
