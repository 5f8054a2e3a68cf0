"""What the lanes of a warp ask memory for, kept for a few accesses of each instruction."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tuner.simulator.ptx.dtypes import Indices
from tuner.simulator.ptx.geometry import WARP_LANES
from tuner.simulator.ptx.instruction import Instruction

SAMPLES = 16  # of each instruction: warps, or turns of a loop
WORD_BYTES = 4


@dataclass(frozen=True)
class Access:
    """One access of a warp; lanes that did not run ask for what the first one asks for."""

    opcode: str  # of the PTX: "ld.shared.v4.b32"
    line: int  # of the PTX
    words: tuple[int, ...]  # of each lane: the first 4-byte word
    width: int  # words of a lane


class AccessSample:
    """The first accesses of every instruction so far."""

    def __init__(self) -> None:
        self._kept: dict[Instruction, list[Access]] = {}

    def note(self, instruction: Instruction, lanes: Indices, addresses: Indices, size_bytes: int) -> None:
        """Keeps accesses of lanes, warp by warp, while there are few of the instruction."""
        kept = self._kept.setdefault(instruction, [])
        if len(kept) >= SAMPLES:
            return
        warps = lanes // WARP_LANES
        for warp in np.unique(warps)[: SAMPLES - len(kept)]:
            mine = warps == warp
            words = np.full(WARP_LANES, addresses[mine][0])
            words[lanes[mine] % WARP_LANES] = addresses[mine]
            first = tuple(int(word) for word in words // WORD_BYTES)
            width = max(size_bytes // WORD_BYTES, 1)
            kept.append(Access(instruction.opcode, instruction.line, first, width))

    def accesses(self) -> Iterator[Access]:
        """Yields what was kept, instruction by instruction."""
        for kept in self._kept.values():
            yield from kept
