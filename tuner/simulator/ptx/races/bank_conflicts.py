"""Bank conflicts of shared memory, counted as wavefronts. CUDA C programming guide, "Shared Memory"."""

from dataclasses import dataclass

import numpy as np

from tuner.simulator.ptx.dtypes import Indices
from tuner.simulator.ptx.geometry import WARP_LANES
from tuner.simulator.ptx.instruction import Instruction

BANKS = 32  # of 4 bytes each; CUDA C programming guide, shared memory
BANK_BYTES = 4


@dataclass(frozen=True)
class BankConflict:
    """The shared-memory wavefronts of one PTX instruction in a launch, with or without bank conflicts.

    A wavefront serves a 4-byte word of each bank: conflicts are the wavefronts above ``ideal_wavefronts``.
    """

    line: int  # of the PTX
    instruction: str
    wavefronts: int
    ideal_wavefronts: int  # without conflicts

    @property
    def ratio(self) -> float:
        """Returns the wavefronts divided by those needed without bank conflicts; 1.0: no conflicts."""
        return self.wavefronts / self.ideal_wavefronts


class ConflictCounter:
    """The shared-memory wavefronts counted so far, for each instruction of a launch."""

    def __init__(self) -> None:
        self._counts: dict[Instruction, tuple[int, int]] = {}

    def count(self, instruction: Instruction, lanes: Indices, addresses: Indices, size_bytes: int) -> None:
        """Adds the wavefronts of an access by ``lanes`` to the counts of ``instruction``.

        ``addresses`` are shared byte addresses inside the lanes' blocks; ``size_bytes`` are the bytes of each
        lane.
        """
        real, ideal = wavefronts(lanes, addresses, size_bytes)
        before = self._counts.get(instruction, (0, 0))
        self._counts[instruction] = (before[0] + real, before[1] + ideal)

    def conflicts(self) -> tuple[BankConflict, ...]:
        """Returns the counts of every instruction in the counter, also of those without conflicts, by line.

        Loads, stores, ldmatrix, stmatrix and cp.async are counted; atomics, bulk copies and wgmma are not.
        """
        found = [
            BankConflict(instruction.line, instruction.short_text, real, ideal)
            for instruction, (real, ideal) in self._counts.items()
        ]
        return tuple(sorted(found, key=lambda conflict: conflict.line))


def wavefronts(lanes: Indices, addresses: Indices, size_bytes: int) -> tuple[int, int]:
    """Returns (wavefronts of an access to shared memory, wavefronts that it needs without bank conflicts).

    ``addresses`` are the lanes' shared byte addresses. A wavefront serves one 4-byte word of each bank.
    Accesses of 8 and 16 bytes per lane are served by half warps and quarter warps.
    """
    words = max(size_bytes // BANK_BYTES, 1)
    group_lanes = WARP_LANES // words
    group = lanes // group_lanes
    word = addresses[:, None] // BANK_BYTES + np.arange(words)
    first = group.min()
    spread = int(word.max()) + 1
    keys = _distinct(((group - first)[:, None] * spread + word).ravel())
    groups = int(group.max() - first) + 1
    slots = keys // spread * BANKS + keys % spread % BANKS
    served = np.bincount(slots, minlength=groups * BANKS).reshape(groups, BANKS).max(axis=1)
    return int(served.sum()), int((served > 0).sum())


def _distinct(keys: Indices) -> Indices:
    """Returns the sorted distinct keys; faster than ``np.unique``, which hashes integers since numpy 2.3."""
    ordered = np.sort(keys)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=-1))]
