"""Counts shared-memory bank conflicts of every access, as a multiprocessor would serve it."""

from dataclasses import dataclass

import numpy as np

from tuner.ptx.dtypes import Indices
from tuner.ptx.geometry import WARP_LANES
from tuner.ptx.instruction import Instruction

BANKS = 32  # of 4 bytes each; CUDA C programming guide, shared memory
BANK_BYTES = 4


@dataclass(frozen=True)
class BankConflict:
    """Shared-memory wavefronts of one instruction over a whole launch."""

    line: int  # of the PTX
    instruction: str
    wavefronts: int
    ideal_wavefronts: int  # without conflicts

    @property
    def ratio(self) -> float:
        """Returns how many times longer the access takes; 1.0 is free of conflicts."""
        return self.wavefronts / self.ideal_wavefronts


class ConflictCounter:
    """Wavefronts of every instruction so far."""

    def __init__(self) -> None:
        self._counts: dict[Instruction, tuple[int, int]] = {}

    def count(self, instruction: Instruction, lanes: Indices, addresses: Indices, size_bytes: int) -> None:
        """Adds one access of threads; ``addresses`` are bytes in the shared memory of their block."""
        real, ideal = wavefronts(lanes, addresses, size_bytes)
        before = self._counts.get(instruction, (0, 0))
        self._counts[instruction] = (before[0] + real, before[1] + ideal)

    def conflicts(self) -> tuple[BankConflict, ...]:
        """Returns every instruction that touched shared memory, in the order of the lines."""
        found = [
            BankConflict(instruction.line, instruction.short_text, real, ideal)
            for instruction, (real, ideal) in self._counts.items()
        ]
        return tuple(sorted(found, key=lambda conflict: conflict.line))


def wavefronts(lanes: Indices, addresses: Indices, size_bytes: int) -> tuple[int, int]:
    """Returns the wavefronts of an access, and how many it would take without conflicts.

    A wavefront serves one 4-byte word of each bank. Accesses of 8 and 16 bytes are served by half and quarter
    warps.
    """
    words = max(size_bytes // BANK_BYTES, 1)
    group_lanes = WARP_LANES // words
    group = lanes // group_lanes
    word = addresses[:, None] // BANK_BYTES + np.arange(words)
    first = group.min()
    spread = int(word.max()) + 1
    keys = np.unique(((group - first)[:, None] * spread + word).ravel())
    groups = int(group.max() - first) + 1
    slots = keys // spread * BANKS + keys % spread % BANKS
    served = np.bincount(slots, minlength=groups * BANKS).reshape(groups, BANKS).max(axis=1)
    return int(served.sum()), int((served > 0).sum())
