"""Matrix fragments in registers, of mma.sync, ldmatrix and wgmma, and wgmma operations in flight.

A fragment is the part of a matrix that a lane's registers hold. Of mma.sync and ldmatrix, with g = lane / 4,
t = lane % 4, and e elements per register (4 of 8 bits, 2 of 16, 1 of 32), 0 <= i < e:

  - A: register r holds row g + 8 (r % 2), columns 4 e (r / 2) + t e + i;
  - B: register r holds rows 4 e r + t e + i, column g;
  - C: register r of 32 bits holds row g + 8 (r / 2), column 2 t + r % 2; of f16 two columns of row g + 8 r.

PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions". Accumulator of wgmma, warp w: register 4 j + 2
h + i of f32 holds row 16 w + g + 8 h, column 8 j + 2 t + i; register 2 j + h of f16 holds both columns. PTX
ISA, "Register Fragments and Shared Memory Matrix Layouts". Operands of wgmma are read when an operation is
issued, and compared when it completes, to detect changes in between; accumulators are NaN meanwhile. PTX ISA,
"Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".
"""

from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

import numpy as np

from tuner.gpu.ptxsim.memory.access_log import Watch
from tuner.gpu.ptxsim.memory.shared_memory import SharedMemory
from tuner.gpu.ptxsim.memory.tensor_maps import swizzled
from tuner.gpu.ptxsim.ptx.defects import Defect, Fault
from tuner.gpu.ptxsim.ptx.dtypes import TYPES, UNSIGNED, Array, Bools, Indices, read_tf32
from tuner.gpu.ptxsim.ptx.geometry import WARP_LANES

INTEGERS = ("s8", "u8")
FLOAT8S = ("e4m3", "e5m2")
# Elements of an operand per register.
ELEMENTS = {"s8": 4, "u8": 4, "e4m3": 4, "e5m2": 4, "f16": 2, "bf16": 2, "tf32": 1}
S32 = np.iinfo(np.int32)
RESULTS = {"s32": np.dtype("i4"), "f32": np.dtype("f4")}  # types of C with one element per register
WARPGROUP_LANES = 128
ROWS = 64  # M of one operation
SPANS_BYTES = {0: 0, 1: 128, 2: 64, 3: 32}  # swizzle field of a matrix descriptor -> bytes
POISON_BITS = np.uint32(0x7FC0DEAD)  # a NaN: value of accumulators in flight
REGISTERS_LIMIT = 65536  # of a multiprocessor; CUDA C programming guide, compute capabilities


def partners(left: str) -> tuple[str, ...]:
    """Returns the types that matrix B may have in mma and wgmma if matrix A has the type ``left``."""
    return next((kinds for kinds in (INTEGERS, FLOAT8S) if left in kinds), (left,))


def operand_values(bits: Array, kind: str) -> Array:
    """Returns elements of A or B, of PTX type ``kind``, as float64 [..., element], from their bits.

    ``bits`` is [..., register] of 32-bit registers, which hold 1, 2 or 4 elements each, or [..., element] of
    unsigned integers of the size of an element.
    """
    if kind == "tf32":
        return read_tf32(bits).astype(np.float64)
    return np.ascontiguousarray(bits).view(TYPES[kind].dtype).astype(np.float64)


def matrix_a(registers: list[Array], kind: str) -> Array:
    """Returns A of each warp, float64 [warp, 16, k], from mma.sync's registers (bits of 32 lanes per warp).

    ``kind``: PTX type of the elements.
    """
    pairs = [
        np.concatenate([_block(registers[r], kind), _block(registers[r + 1], kind)], axis=1)
        for r in range(0, len(registers), 2)
    ]
    return np.concatenate(pairs, axis=2)


def _block(register: Array, kind: str) -> Array:
    """Returns one register of all lanes [warp * 32] as matrices [warp, g, t * element]."""
    return operand_values(register.reshape(-1, 8, 4), kind)


def matrix_b(registers: list[Array], kind: str) -> Array:
    """Returns B of each warp, float64 [warp, k, 8], from mma.sync's registers (bits of 32 lanes per warp).

    ``kind``: PTX type of the elements.
    """
    columns = np.concatenate([_block(register, kind) for register in registers], axis=2)
    return columns.transpose(0, 2, 1)


def matrix_c(registers: list[Array], kind: str) -> Array:
    """Returns C of each warp, float64 [warp, 16, 8], from mma.sync's registers (bits of 32 lanes per warp).

    ``kind``: "f16", "f32" or "s32".
    """
    if kind == "f16":
        return np.concatenate([_block(register, "f16") for register in registers], axis=1)
    values = np.stack([register.view(RESULTS[kind]).reshape(-1, 8, 4) for register in registers], axis=-1)
    warps = len(values)  # [warp, g, t, register] with register = 2 * half + column
    grid = values.reshape(warps, 8, 4, 2, 2).transpose(0, 3, 1, 2, 4)
    return grid.reshape(warps, 16, 8).astype(np.float64)


def fragments_c(numbers: Array) -> list[Array]:
    """Returns mma.sync's registers (bits of 32 lanes per warp) that hold D [warp, 16, 8]."""
    warps = len(numbers)
    if numbers.itemsize == 2:
        halves = np.ascontiguousarray(numbers).view(np.uint32).reshape(warps, 2, WARP_LANES)
        return [np.ascontiguousarray(halves[:, half]).ravel() for half in range(2)]
    # [warp, half, g, t, column] to [half, column, warp, g, t]
    grid = numbers.reshape(warps, 2, 8, 4, 2).transpose(1, 4, 0, 2, 3)
    flat = np.ascontiguousarray(grid).view(np.uint32).reshape(4, warps * WARP_LANES)
    return list(flat)


def rounded(matrix: Array, kind: str, *, is_saturating: bool = False) -> Array:
    """Returns float64 sums rounded once to "f16" or "f32", or as "s32", which wraps around or saturates."""
    if kind == "s32":
        limited = np.clip(matrix, S32.min, S32.max) if is_saturating else matrix
        return limited.astype(np.int64).astype(np.int32)
    return matrix.astype(np.float16 if kind == "f16" else np.float32)


def product(
    a: list[Array], b: list[Array], c: list[Array], kinds: tuple[str, str], result: str, is_saturating: bool
) -> list[Array]:
    """Returns the registers of D = A B + C of mma.sync, from those of A, B and C (bits of 32 lanes per warp).

    ``kinds``: PTX types of A and B; ``result``: of C and D. Exact products are summed in float64 and rounded
    once; integer sums are exact, then wrap around or saturate. A GPU sums floats in another order and
    truncates, so that the last bits may differ.
    """
    total = matrix_a(a, kinds[0]) @ matrix_b(b, kinds[1]) + matrix_c(c, result)
    return fragments_c(rounded(total, result, is_saturating=is_saturating))


def rows_to_registers(rows: Array, is_transposed: bool) -> Array:
    """Returns ldmatrix's registers, uint32 [warp, matrix, lane], of 16-bit elements [warp, matrix, 8, 8]."""
    matrices = rows.swapaxes(2, 3) if is_transposed else rows
    return np.ascontiguousarray(matrices).view(np.uint32).reshape(*rows.shape[:2], WARP_LANES)


def registers_to_rows(registers: Array, is_transposed: bool) -> Array:
    """Returns stmatrix's elements, uint16 [warp, matrix, 8, 8], of registers uint32 [warp, matrix, lane]."""
    matrices = np.ascontiguousarray(registers).view(np.uint16).reshape(*registers.shape[:2], 8, 8)
    return np.ascontiguousarray(matrices.swapaxes(2, 3) if is_transposed else matrices)


def accumulator(registers: list[Array], result: str) -> Array:
    """Returns a warpgroup's accumulator, float64 [64, n], from its registers (bits of 128 lanes each).

    ``result``: PTX type of the elements.
    """
    bits = np.ascontiguousarray(np.stack(registers, axis=-1))  # [128, register]
    grid = bits.view(TYPES[result].dtype).reshape(4, 8, 4, -1, 2, 2)
    return (
        grid.transpose(0, 4, 1, 3, 2, 5).reshape(ROWS, -1).astype(np.float64)
    )  # from warp, half, g, j, t, i


def accumulator_registers(numbers: Array) -> list[Array]:
    """Returns a warpgroup's registers (uint32 of 128 lanes each) that hold an accumulator [64, n]."""
    grid = numbers.reshape(4, 2, 8, -1, 4, 2).transpose(0, 2, 4, 3, 1, 5)
    bits = np.ascontiguousarray(grid).view(np.uint32).reshape(WARPGROUP_LANES, -1)
    return [np.ascontiguousarray(bits[:, number]) for number in range(bits.shape[1])]


def register_operand(registers: list[Array], item_bytes: int) -> Array:
    """Returns A of wgmma, [64, k] unsigned integers, from four registers in the layout of mma.sync's A."""
    dtype = UNSIGNED[item_bytes]
    blocks = [np.ascontiguousarray(register).view(dtype).reshape(4, 8, -1) for register in registers]
    pairs = [np.concatenate(blocks[r : r + 2], axis=1) for r in range(0, len(blocks), 2)]
    return np.concatenate(pairs, axis=2).reshape(ROWS, -1)


def operand_addresses(
    descriptor: int, rows: int, depth: int, item_bytes: int, is_transposed: bool
) -> Indices:
    """Returns the shared address of each element [row, k] of the wgmma operand that a descriptor describes.

    ``rows`` and ``depth``: elements along M or N, and along K, of ``item_bytes`` bytes each.

    The canonical layouts of the PTX ISA, "Matrix Descriptor Format", as distances in bytes; ``stride`` and
    ``leading`` are the descriptor's offsets, the span is the swizzle's. K-major (not ``is_transposed``):
    ``stride`` between groups of 8 rows, a span between rows; without swizzle 16 between rows, ``leading``
    between chunks of 16 bytes along k. MN-major: ``leading`` between runs of a span of rows, ``stride``
    between groups of 8 k; unswizzled ``stride`` between groups of 8 rows, ``leading`` between groups of k.

    Raises Fault for a descriptor with a base offset.
    """
    start, leading, stride = ((descriptor >> shift & 0x3FFF) << 4 for shift in (0, 16, 32))
    if descriptor >> 49 & 7:
        raise Fault(Defect.ILLEGAL, "found a base offset in a matrix descriptor, which is not simulated")
    span = SPANS_BYTES[descriptor >> 62 & 3]
    row = np.arange(rows)[:, None]
    k = np.arange(depth)[None, :]
    inner = k * item_bytes
    if not is_transposed and span:
        offsets = row // 8 * stride + row % 8 * span + inner
    elif not is_transposed:
        offsets = row // 8 * stride + row % 8 * 16 + inner // 16 * leading + inner % 16
    elif span:
        run = span // item_bytes
        offsets = row // run * leading + k // 8 * stride + k % 8 * span + row % run * item_bytes
    else:
        offsets = row // 8 * stride + k // 8 * leading + k % 8 * 16 + row % 8 * item_bytes
    return swizzled(start + offsets, span)


class Registers(Protocol):
    """The registers of resident blocks, as ``Warpgroups`` uses them; ``ResidentBlocks`` implements this."""

    mask: Bools
    time: int
    written_at: dict[str, int]

    def read(self, name: str) -> Array:
        """Returns the bits of the register ``name`` in all lanes."""

    def put(self, name: str, lanes: Indices, bits: Array) -> None:
        """Writes a register in ``lanes``; does not count as a write by the kernel (``written_at``)."""


@dataclass(frozen=True)
class Watched:
    """A shared-memory operand of a wgmma in flight: copied at issue, compared at completion."""

    content: Array  # [row, k] raw
    elements: Indices  # [row, k], indices into the shared memory of all resident blocks


@dataclass(frozen=True)
class Operation:
    """A wgmma.mma_async in flight: issued, and not waited for yet."""

    targets: tuple[str, ...]
    left_registers: tuple[str, ...]  # that hold A; () if it is in shared memory
    left: Array  # [row, k] raw
    right: Array  # [column, k] raw
    watched: tuple[Watched, ...]
    kinds: tuple[str, str]  # of the operands
    result: str  # of the accumulator
    adds: bool  # adds to the accumulator; else replaces it
    sign: int
    is_saturating: bool
    clock: int  # when the operands were read, in the warpgroup's component of the vector clocks


@dataclass
class Warpgroup:
    """A warpgroup of 128 lanes, with its wgmma-groups and its accumulators in flight."""

    lanes: Indices
    column: int  # component of the vector clocks for the warpgroup's reads
    open: list[Operation] = field(default_factory=list)  # issued, not yet committed
    groups: list[list[Operation]] = field(default_factory=list)  # committed, oldest first
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
        """Returns the warpgroups whose lanes are active in ``mask``. Raises Fault for a partly active one."""
        lanes = np.flatnonzero(mask)
        geometry = self._watch.geometry
        of_block = geometry.thread[lanes] // WARPGROUP_LANES
        numbers = geometry.block_index[lanes] * self._of_block + of_block
        groups = []
        for number in np.unique(numbers):
            own = lanes[numbers == number]
            if len(own) != WARPGROUP_LANES:
                reason = f"found {len(own)} of its {WARPGROUP_LANES} threads here, allowed all"
                raise Fault(Defect.DIVERGENCE, f"warpgroup of {geometry.who(int(own[0]))}: {reason}")
            column = self._first_column + int(number) % (self._of_block * geometry.cluster_blocks)
            groups.append(self._groups.setdefault(int(number), Warpgroup(own, column)))
        return groups

    def issue(self, resident: Registers, group: Warpgroup, operation: Operation) -> None:
        """Issues a wgmma.mma_async of a warpgroup; its accumulator registers are NaN until a wait.

        Reports a missing wgmma.fence, and accumulators that were written after the fence or in flight.
        """
        fresh = [name for name in operation.targets if name not in group.live]
        if group.fenced_at < 0:
            self._report(Defect.MISSING_WGMMA_FENCE, group, "there was no wgmma.fence before")
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
        """Commits the open wgmma-group of each warpgroup that is active in ``mask``."""
        for group in self.executing(mask):
            group.groups.append(group.open)
            group.open = []

    def fence(self, resident: Registers) -> None:
        """Records a wgmma.fence of the active warpgroups, for the checks of ``issue``."""
        for group in self.executing(resident.mask):
            group.fenced_at = resident.time

    def wait(self, resident: Registers, newest: int) -> None:
        """Completes the active warpgroups' committed operations, except their ``newest`` latest groups.

        Reports operands that changed in flight.
        """
        for group in self.executing(resident.mask):
            while len(group.groups) > newest:
                for operation in group.groups.pop(0):
                    self._check_left(resident, group, operation)
                    self._retire(group, operation)
            flying = list(chain.from_iterable((*group.groups, group.open)))
            pending = {name for operation in flying for name in operation.targets}
            for name in [name for name in group.live if name not in pending]:
                resident.put(name, group.lanes, group.live.pop(name))

    def _check_left(self, resident: Registers, group: Warpgroup, operation: Operation) -> None:
        if not operation.left_registers:
            return
        registers = [resident.read(name)[group.lanes] for name in operation.left_registers]
        item_bytes = 4 // ELEMENTS[operation.kinds[0]]
        if (register_operand(registers, item_bytes) != operation.left).any():
            self._report(Defect.IN_FLIGHT, group, "a register of A was written while in flight")

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
        """Sets the number of registers per thread of the warpgroups active in ``mask``: setmaxnreg.

        Raises Fault for a partly active warpgroup, and if the warpgroups of a block, as far as they executed
        setmaxnreg, have more than REGISTERS_LIMIT registers together.
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
        """Reports, once, wgmma operations that no thread has waited for when the blocks end."""
        if any(group.open or any(group.groups) for group in self._groups.values()):
            watch.log.report(Defect.UNFINISHED, None, lambda: "a wgmma is not waited for before the end")
