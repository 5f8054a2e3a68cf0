"""The first memory accesses of each instruction, a record per warp."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tuner.simulator.ptx.dtypes import Indices
from tuner.simulator.ptx.geometry import WARP_LANES
from tuner.simulator.ptx.instruction import Instruction

SAMPLES = 16  # accesses kept per instruction: of several warps or loop iterations
WORD_BYTES = 4


@dataclass(frozen=True)
class Access:
    """One memory access of a warp: the address of each lane, and the size.

    An inactive lane has the address of the first active lane.
    """

    opcode: str  # of the PTX: "ld.shared.v4.b32"
    line: int  # of the PTX
    words: tuple[int, ...]  # per lane: index of its first 4-byte word
    width: int  # 4-byte words per lane


class AccessSample:
    """A sample of a launch's memory accesses: the first 16 accesses of warps of every PTX instruction."""

    def __init__(self) -> None:
        self._kept: dict[Instruction, list[Access]] = {}

    def note(self, instruction: Instruction, lanes: Indices, addresses: Indices, size_bytes: int) -> None:
        """Records an access of ``lanes`` to byte ``addresses``, ``size_bytes`` per lane: an entry per warp.

        Ignores accesses of an instruction that already has 16 entries.
        """
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
        """Yields the recorded accesses, grouped by instruction, each of one warp."""
        for kept in self._kept.values():
            yield from kept
