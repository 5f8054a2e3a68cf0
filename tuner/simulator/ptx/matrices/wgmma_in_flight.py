"""wgmma operations in flight: products of a warpgroup, which read shared memory asynchronously.

Operands are read when an operation is issued, and compared when it completes, to detect changes in between;
accumulators are NaN meanwhile. PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate
Instructions".
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tuner.simulator.ptx.defects import Defect, Fault
from tuner.simulator.ptx.dtypes import Array, Bools, Indices
from tuner.simulator.ptx.matrices.fragments import operand_values, rounded
from tuner.simulator.ptx.matrices.wgmma_layout import WARPGROUP_LANES, accumulator, accumulator_registers
from tuner.simulator.ptx.memory.shared_memory import SharedMemory
from tuner.simulator.ptx.races.access_watch import Watch

POISON_BITS = np.uint32(0x7FC0DEAD)  # a NaN: value of accumulators in flight
REGISTERS_LIMIT = 65536  # of a multiprocessor; CUDA C programming guide, compute capabilities


class Registers(Protocol):
    """Interface to the registers of resident blocks; ``ResidentBlocks`` implements it."""

    mask: Bools
    time: int
    written_at: dict[str, int]

    def read(self, name: str) -> Array:
        """Returns the bits of the register ``name`` in all lanes."""

    def put(self, name: str, lanes: Indices, bits: Array) -> None:
        """Writes a register in ``lanes``, without recording the write in ``written_at``."""


@dataclass(frozen=True)
class Watched:
    """A shared-memory operand of a wgmma in flight: copied at issue, compared at completion."""

    content: Array  # [row, k] raw
    elements: Indices  # [row, k], indices into the shared memory of all resident blocks


@dataclass(frozen=True)
class Operation:
    """A wgmma.mma_async that is issued and not yet waited for: operands, result registers and flags."""

    targets: tuple[str, ...]
    left: Array  # [row, k] raw
    right: Array  # [column, k] raw
    watched: tuple[Watched, ...]
    kinds: tuple[str, str]  # of the operands
    result: str  # of the accumulator
    adds: bool  # adds to the accumulator; else replaces it
    sign: int
    is_saturating: bool
    clock: int


@dataclass
class Warpgroup:
    """A warpgroup (128 lanes), with its wgmma-groups and its accumulators in flight."""

    lanes: Indices
    column: int  # component of the vector clocks for the warpgroup's reads
    open: list[Operation] = field(default_factory=list)
    groups: list[list[Operation]] = field(default_factory=list)
    live: dict[str, Array] = field(default_factory=dict)  # register of an accumulator in flight -> value
    fenced_at: int = -1  # time of the last wgmma.fence
    registers: int = 0  # per thread, as set by setmaxnreg; 0: not set


class Warpgroups:
    """The warpgroups of resident blocks, with their wgmma operations in flight."""

    def __init__(self, watch: Watch, shared: SharedMemory, first_column: int) -> None:
        self._watch = watch
        self._shared = shared
        self._first_column = first_column
        self._of_block = -(-watch.geometry.block_lanes // WARPGROUP_LANES)
        self._groups: dict[int, Warpgroup] = {}

    def executing(self, mask: Bools) -> list[Warpgroup]:
        """Returns the warpgroups that are active in ``mask``.

        Raises Fault for a partially active warpgroup.
        """
        lanes = np.flatnonzero(mask)
        geometry = self._watch.geometry
        of_block = geometry.thread[lanes] // WARPGROUP_LANES
        numbers = geometry.block_index[lanes] * self._of_block + of_block
        found = []
        for number in np.unique(numbers):
            own = lanes[numbers == number]
            if len(own) != WARPGROUP_LANES:
                reason = f"found {len(own)} of its {WARPGROUP_LANES} threads here, allowed all"
                raise Fault(Defect.DIVERGENCE, f"warpgroup of {geometry.who(int(own[0]))}: {reason}")
            column = self._first_column + int(number) % (self._of_block * geometry.cluster_blocks)
            found.append(self._groups.setdefault(int(number), Warpgroup(own, column)))
        return found

    def issue(self, resident: Registers, group: Warpgroup, operation: Operation) -> None:
        """Issues a wgmma.mma_async of a warpgroup; its accumulators are undefined until it is waited for.

        Until then each of their registers holds the bits 0x7FC0DEAD, a NaN of f32. Reports, as hazards, a
        missing wgmma.fence, and accumulators that were written after the fence or in flight.
        """
        fresh = [name for name in operation.targets if name not in group.live]
        if group.fenced_at < 0:
            self._report(Defect.MISSING_FENCE, group, "there was no wgmma.fence before")
        elif any(resident.written_at.get(name, -1) > group.fenced_at for name in fresh):
            self._report(Defect.LATE_ACCUMULATOR, group, "an accumulator was written after the fence")
        flying = [name for name in operation.targets if name in group.live]
        if any((resident.read(name)[group.lanes] != POISON_BITS).any() for name in flying):
            self._report(Defect.IN_FLIGHT, group, "an accumulator was written while in flight")
        for name in fresh:
            group.live[name] = resident.read(name)[group.lanes].copy()
            resident.put(name, group.lanes, np.full(len(group.lanes), POISON_BITS))
        group.open.append(operation)

    def commit(self, mask: Bools) -> None:
        """Commits the open wgmma-group of each warpgroup that is active in ``mask``: wgmma.commit_group."""
        for group in self.executing(mask):
            group.groups.append(group.open)
            group.open = []

    def fence(self, resident: Registers) -> None:
        """Records a wgmma.fence of the active warpgroups; ``issue`` checks accumulator writes against it."""
        for group in self.executing(resident.mask):
            group.fenced_at = resident.time

    def wait(self, resident: Registers, newest: int) -> None:
        """Completes wgmma operations of active warpgroups, and writes their accumulators: wgmma.wait_group.

        The ``newest`` latest wgmma-groups of each warpgroup, and operations that are not committed, stay in
        flight with their accumulators. Reports operands that changed in flight.
        """
        for group in self.executing(resident.mask):
            while len(group.groups) > newest:
                for operation in group.groups.pop(0):
                    self._retire(group, operation)
            flying = [operation for some in (*group.groups, group.open) for operation in some]
            pending = {name for operation in flying for name in operation.targets}
            for name in [name for name in group.live if name not in pending]:
                resident.put(name, group.lanes, group.live.pop(name))

    def _retire(self, group: Warpgroup, operation: Operation) -> None:
        for operand in operation.watched:
            now = self._shared.bytes.view(operand.content.dtype)[operand.elements]
            if (now != operand.content).any():
                self._report(Defect.IN_FLIGHT, group, "an operand was overwritten while in flight")
        raw = (operation.left, operation.right)
        left, right = (operand_values(bits, kind) for bits, kind in zip(raw, operation.kinds, strict=True))
        total = operation.sign * (left @ right.T)
        if operation.adds:
            total = total + accumulator([group.live[name] for name in operation.targets], operation.result)
        numbers = rounded(total, operation.result, is_saturating=operation.is_saturating)
        bits = accumulator_registers(numbers)
        group.live.update(zip(operation.targets, bits, strict=True))
        self._watch.clocks.learn_agent(group.lanes, group.column, operation.clock)

    def set_registers(self, mask: Bools, count: int) -> None:
        """Sets the registers per thread of the warpgroups active in ``mask`` to ``count``: setmaxnreg.

        Raises Fault for a partially active warpgroup, and where the warpgroups of a block that have executed
        setmaxnreg then have more registers together than a multiprocessor has: 65536. Others are not counted.
        """
        for group in self.executing(mask):
            group.registers = count
        for block in range(len(self._watch.geometry.blocks)):
            own = [self._groups.get(block * self._of_block + number) for number in range(self._of_block)]
            total = sum(group.registers * WARPGROUP_LANES for group in own if group is not None)
            if total > REGISTERS_LIMIT:
                raise Fault(Defect.ILLEGAL, f"found {total} registers of a block, allowed {REGISTERS_LIMIT}")

    def _report(self, kind: Defect, group: Warpgroup, what: str) -> None:
        who = self._watch.geometry.who(int(group.lanes[0]))
        self._watch.log.report(kind, self._watch.instruction, lambda: f"warpgroup of {who}: {what}")

    def report_unfinished(self, watch: Watch) -> None:
        """Reports wgmma operations that no thread waited for, as one hazard at the end of the kernel."""
        if any(group.open or any(group.groups) for group in self._groups.values()):
            example = "a wgmma is not waited for before the end"
            watch.log.report(Defect.UNFINISHED, None, lambda: example)
