"""Watches memory accesses of a launch: reports of defects, a sample of accesses, and bank conflicts.

``Watch`` is what all state spaces share: it knows the instruction that executes, checks addresses, and hands
accesses to an ``AccessSample``, a ``ConflictCounter`` and a log of hazards.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tuner.gpu.ptxsim.memory.hazards import HazardLog, SilentStores, Unordered, report
from tuner.gpu.ptxsim.memory.vector_clocks import Clocks
from tuner.gpu.ptxsim.ptx.defects import Defect, Fault
from tuner.gpu.ptxsim.ptx.dtypes import Bools, Indices
from tuner.gpu.ptxsim.ptx.geometry import WARP_LANES, Geometry
from tuner.gpu.ptxsim.ptx.syntax_tree import Instruction

SAMPLES = 16  # accesses kept per instruction: of several warps or loop iterations
WORD_BYTES = 4
BANKS = 32  # of 4 bytes each; CUDA C programming guide, shared memory
BANK_BYTES = 4


@dataclass(frozen=True)
class Access:
    """One memory access of a warp: each lane's first word, and the words per lane.

    A lane that is not active has the address of the first active one.
    """

    opcode: str  # of the PTX: "ld.shared.v4.b32"
    line: int  # of the PTX
    words: tuple[int, ...]  # per lane: index of its first 4-byte word
    width: int  # 4-byte words per lane


class AccessSample:
    """The first SAMPLES memory accesses of warps of every PTX instruction of a launch."""

    def __init__(self) -> None:
        self._kept: dict[Instruction, list[Access]] = {}

    def note(self, instruction: Instruction, lanes: Indices, addresses: Indices, size_bytes: int) -> None:
        """Records an access of ``lanes`` of ``size_bytes`` each, once per warp, up to SAMPLES (16)."""
        kept = self._kept.setdefault(instruction, [])
        if len(kept) >= SAMPLES:
            return
        warps = lanes // WARP_LANES
        for warp in np.unique(warps)[: SAMPLES - len(kept)]:
            mine = warps == warp
            words = np.full(WARP_LANES, addresses[mine][0])
            words[lanes[mine] % WARP_LANES] = addresses[mine]
            first = tuple(map(int, words // WORD_BYTES))
            width = max(size_bytes // WORD_BYTES, 1)
            kept.append(Access(instruction.opcode, instruction.line, first, width))

    def accesses(self) -> Iterator[Access]:
        for kept in self._kept.values():
            yield from kept


@dataclass(frozen=True)
class BankConflict:
    """The wavefronts of a PTX instruction in a launch: in each, a bank of shared memory serves one word."""

    line: int  # of the PTX
    instruction: str
    wavefronts: int
    ideal_wavefronts: int  # without conflicts

    @property
    def ratio(self) -> float:
        return self.wavefronts / self.ideal_wavefronts


class ConflictCounter:
    """Counts the wavefronts of accesses to shared memory, for each instruction of a launch."""

    def __init__(self) -> None:
        self._counts: dict[Instruction, tuple[int, int]] = {}

    def count(self, instruction: Instruction, lanes: Indices, addresses: Indices, size_bytes: int) -> None:
        real, ideal = wavefronts(lanes, addresses, size_bytes)
        before = self._counts.get(instruction, (0, 0))
        self._counts[instruction] = (before[0] + real, before[1] + ideal)

    def conflicts(self) -> tuple[BankConflict, ...]:
        """Returns the counts per instruction, by line; atomics, bulk copies and wgmma are not counted."""
        conflicts = (
            BankConflict(instruction.line, instruction.short_text, real, ideal)
            for instruction, (real, ideal) in self._counts.items()
        )
        return tuple(sorted(conflicts, key=lambda conflict: conflict.line))


def wavefronts(lanes: Indices, addresses: Indices, size_bytes: int) -> tuple[int, int]:
    """Returns the wavefronts of an access to shared memory, and those that it needs without conflicts.

    ``lanes`` and ``addresses``: of the active lanes. Accesses of 8 and 16 bytes per lane are served by half
    warps and quarter warps.
    """
    words = max(size_bytes // BANK_BYTES, 1)
    group_lanes = WARP_LANES // words
    group = lanes // group_lanes
    word = addresses[:, None] // BANK_BYTES + np.arange(words)
    first = group.min()
    spread = int(word.max()) + 1
    ordered = np.sort(((group - first)[:, None] * spread + word).ravel())
    # faster than ``np.unique``, which hashes integers since numpy 2.3
    keys = ordered[np.flatnonzero(np.diff(ordered, prepend=-1))]
    groups = int(group.max() - first) + 1
    slots = keys // spread * BANKS + keys % spread % BANKS
    served = np.bincount(slots, minlength=groups * BANKS).reshape(groups, BANKS).max(axis=1)
    return int(served.sum()), int((served > 0).sum())


class Watch:
    """The instruction that executes now, and the vector clocks and logs that all state spaces use."""

    def __init__(
        self,
        clocks: Clocks,
        log: HazardLog,
        conflicts: ConflictCounter,
        idle: Instruction,
        sample: AccessSample | None = None,
    ) -> None:
        self.clocks = clocks
        self.log = log
        self.conflicts = conflicts
        self.instruction = idle
        self._sample = sample

    @property
    def geometry(self) -> Geometry:
        return self.clocks.geometry

    def count_shared(self, lanes: Indices, addresses: Indices, size_bytes: int) -> None:
        self.conflicts.count(self.instruction, lanes, addresses, size_bytes)
        self.note(lanes, addresses, size_bytes)

    def note(self, lanes: Indices, addresses: Indices, size_bytes: int) -> None:
        if self._sample is not None:
            self._sample.note(self.instruction, lanes, addresses, size_bytes)

    def report(
        self,
        found: list[Unordered],
        lanes: Indices,
        memory: str,
        cell_bytes: int,
        silent: SilentStores | None = None,
    ) -> None:
        """Logs accesses that are not ordered after earlier ones (races, missing fences) as hazards.

        ``found``: the unordered accesses; ``lanes``: lane of each access; ``memory``: a buffer's name, or
        "shared"; ``cell_bytes``: granularity of race detection. Races of stores that leave the value
        unchanged (``silent``) are logged as benign.
        """

        def example(access: int, cell: int, earlier: str) -> str:
            who = self.geometry.who(int(lanes[min(access, len(lanes) - 1)]))
            return f"{who} at {memory} byte {cell * cell_bytes}: not ordered after an earlier {earlier}"

        if found:
            report(self.log, self.instruction, found, example, silent)

    def out_of_bounds(self, lane: int, reason: str) -> Fault:
        """Returns the Fault for an out-of-bounds access by ``lane``, without raising it."""
        return Fault(Defect.OUT_OF_BOUNDS, f"{self.geometry.who(lane)}: {reason}")

    def require_inside(self, lanes: Indices, is_out: Bools, reason: Callable[[int], str]) -> None:
        if is_out.any():
            worst = int(is_out.argmax())
            raise self.out_of_bounds(int(lanes[worst]), reason(worst))

    def require_aligned(self, lanes: Indices, addresses: Indices, size_bytes: int) -> None:
        is_off = addresses % size_bytes != 0
        if is_off.any():
            worst = int(is_off.argmax())
            who = self.geometry.who(int(lanes[worst]))
            address = int(addresses[worst])
            raise Fault(
                Defect.MISALIGNED,
                f"{who}: found address {address:#x}, allowed multiples of {size_bytes} bytes",
            )
