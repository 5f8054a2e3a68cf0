"""Decoders of wgmma.fence, mma_async, commit_group and wait_group, and of setmaxnreg.

PTX ISA, "wgmma.mma_async": a warpgroup multiplies asynchronously; a product is complete when the warpgroup
has waited for its group.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tuner.gpu.ptxsim.instructions.operands import PREDICATE, U64, Operands, Reader, Step
from tuner.gpu.ptxsim.ptx.defects import Defect, Fault
from tuner.gpu.ptxsim.ptx.dtypes import UNSIGNED, Array, Indices
from tuner.gpu.ptxsim.ptx.syntax_tree import Vector
from tuner.gpu.ptxsim.state import fragments
from tuner.gpu.ptxsim.state.resident_blocks import ResidentBlocks

DEPTH_BYTES = 32  # bytes of an operand along K; PTX ISA, "wgmma.mma_async", shapes
SHAPES = {f"m64n{n}k{k}": (n, k) for n in range(8, 257, 8) for k in (8, 16, 32)}
INTEGER_COLUMNS = (8, 24, *range(16, 257, 16))  # n of 8-bit integers; same source
REGISTERS_RANGE = range(24, 257, 8)  # PTX ISA, "setmaxnreg"
# -> (raw elements, their indices in shared memory, or None where they come from registers)
OperandReader = Callable[[ResidentBlocks, fragments.Warpgroup, int], tuple[Array, Indices | None]]


def wgmma(operands: Operands) -> Step:
    """Decodes PTX wgmma.fence, mma_async, commit_group or wait_group; returns its function.

    The function executes the instruction for whole warpgroups of the resident blocks.
    """
    modifiers = operands.modifiers
    operation = modifiers.need(("fence", "mma_async", "commit_group", "wait_group"), "an operation")
    modifiers.need_each("sync", "aligned")
    if operation == "fence":
        return lambda resident: resident.warpgroups.fence(resident)
    if operation == "commit_group":
        return lambda resident: resident.warpgroups.commit(resident.mask)
    if operation == "wait_group":
        newest = operands.constant(0)
        return lambda resident: resident.warpgroups.wait(resident, newest)
    return _multiply(operands)


@dataclass(frozen=True)
class MmaAsync:
    """The types, shape and flags of a wgmma.mma_async: D [64, n] (+)= sign * A [64, k] B [k, n]."""

    kinds: tuple[str, str]  # types of A and B
    result: str  # type of D
    columns: int  # n
    depth: int  # k
    targets: tuple[str, ...]  # registers of D
    has_left_in_registers: bool  # A in registers; else in shared memory, like B
    transposed: tuple[bool, bool]  # A, B
    sign: int
    is_saturating: bool  # integer sums saturate at the limits of s32; else wrap around

    @property
    def item_bytes(self) -> int:
        """Returns the size of an element of A and of B, which is the same, in bytes."""
        return 4 // fragments.ELEMENTS[self.kinds[0]]


def _multiply(operands: Operands) -> Step:
    mma = _checked(operands)
    left_transposed, right_transposed = mma.transposed
    if mma.has_left_in_registers:
        left = _register_left(operands, mma.item_bytes)
    else:
        left = _shared(operands, 1, fragments.ROWS, mma.depth, left_transposed)
    right = _shared(operands, 2, mma.columns, mma.depth, right_transposed)
    adds = operands.source(3, PREDICATE)

    def step(resident: ResidentBlocks) -> None:
        for group in resident.warpgroups.executing(resident.mask):
            reads = tuple(read(resident, group, mma.item_bytes) for read in (left, right))
            watched = tuple(
                fragments.Watched(content, elements) for content, elements in reads if elements is not None
            )
            is_added = bool(_uniform(resident, group, adds, "scale-d"))
            shared = resident.spaces.shared
            # the race detector's cells of the elements that are read
            every = np.concatenate([operand.elements.ravel() for operand in watched])
            cells = np.unique(every * mma.item_bytes // shared.races.cell_bytes)
            column = group.column
            fenced = resident.bulk.fenced
            clock, unordered = shared.races.async_read(group.lanes, cells, column, fenced)
            shared.report_agent(unordered, int(group.lanes[0]))
            operation = fragments.Operation(
                targets=mma.targets,
                left_registers=operands.names(1) if mma.has_left_in_registers else (),
                left=reads[0][0],
                right=reads[1][0],
                watched=watched,
                kinds=mma.kinds,
                result=mma.result,
                adds=is_added,
                sign=mma.sign,
                is_saturating=mma.is_saturating,
                clock=clock,
            )
            resident.warpgroups.issue(resident, group, operation)

    return step


def _checked(operands: Operands) -> MmaAsync:
    """Consumes shape, types and flags. Raises UnsupportedInstruction for an unsupported combination."""
    modifiers = operands.modifiers
    columns, depth = SHAPES[modifiers.need(SHAPES, "a shape")]
    is_saturating = modifiers.take("satfinite") is not None
    # the last modifier comes first: D.A.B
    right, left, result = (modifiers.type(*fragments.ELEMENTS, *fragments.RESULTS).name for _ in range(3))
    results: tuple[str, ...] = ("s32",) if left in fragments.INTEGERS else ("f32",)
    if left in ("f16", *fragments.FLOAT8S):
        results = ("f32", "f16")
    if left not in fragments.ELEMENTS or right not in fragments.partners(left) or result not in results:
        raise operands.unsupported("this instruction with these types")
    item_bytes = 4 // fragments.ELEMENTS[left]
    is_integer = left in fragments.INTEGERS
    if (
        depth * item_bytes != DEPTH_BYTES
        or (is_integer and columns not in INTEGER_COLUMNS)
        or (is_saturating and not is_integer)
    ):
        raise operands.unsupported(f"this shape of {left}")
    targets = operands.names(0)
    if len(targets) != columns // (4 if result == "f16" else 2):
        raise operands.unsupported(f"an accumulator of {len(targets)} registers")
    in_registers = isinstance(operands.operand(1), Vector)
    if is_integer:
        transposed, sign = ((False, False), 1)
    else:
        transposed, sign = _flags(operands, item_bytes, in_registers)
    if is_integer:
        operands.need(4)
    return MmaAsync(
        (left, right), result, columns, depth, targets, in_registers, transposed, sign, is_saturating
    )


def _flags(operands: Operands, item_bytes: int, in_registers: bool) -> tuple[tuple[bool, bool], int]:
    """Returns (whether A, whether B is transposed) and the sign of the product, 1 or -1.

    Raises UnsupportedInstruction for other flags than ``item_bytes`` and A in registers (``in_registers``)
    allow.
    """
    flags = list(map(operands.constant, range(4, len(operands))))
    # flags: scale of A, of B, then transposes; only 16-bit operands in shared memory have those
    if item_bytes != 2:
        transposes = 0
    elif in_registers:
        transposes = 1
    else:
        transposes = 2
    if len(flags) != 2 + transposes or set(map(abs, flags[:2])) != {1}:
        raise operands.unsupported(f"this instruction with the flags {flags}")
    right = bool(flags[-1]) if transposes else False
    return (bool(flags[2]) if transposes == 2 else False, right), flags[0] * flags[1]


def _register_left(operands: Operands, item_bytes: int) -> OperandReader:
    names = operands.names(1)
    if len(names) != 4:
        raise operands.unsupported(f"A in {len(names)} registers")

    def read(
        resident: ResidentBlocks, group: fragments.Warpgroup, _item: int
    ) -> tuple[Array, Indices | None]:
        registers = [resident.read(name)[group.lanes] for name in names]
        return fragments.register_operand(registers, item_bytes), None

    return read


def _shared(operands: Operands, number: int, rows: int, depth: int, is_transposed: bool) -> OperandReader:
    descriptor = operands.source(number, U64)

    def read(resident: ResidentBlocks, group: fragments.Warpgroup, item: int) -> tuple[Array, Indices | None]:
        bits = int(_uniform(resident, group, descriptor, "descriptor"))
        addresses = fragments.operand_addresses(bits, rows, depth, item, is_transposed)
        shared = resident.spaces.shared
        if addresses.max() + item > shared.limit_bytes:
            reason = f"found an operand up to shared byte {addresses.max()}, allowed {shared.limit_bytes}"
            raise resident.watch.out_of_bounds(int(group.lanes[0]), reason)
        block = int(resident.geometry.block_index[group.lanes[0]])
        # ``bytes`` holds the memories of all blocks, one stride apart
        in_all_blocks = (addresses + block * shared.stride_bytes) // item
        return shared.bytes.view(UNSIGNED[item])[in_all_blocks], in_all_blocks

    return read


def _uniform(resident: ResidentBlocks, group: fragments.Warpgroup, read: Reader, what: str) -> int:
    values = resident.full(read(resident))[group.lanes]
    if (values != values[0]).any():
        raise Fault(Defect.ILLEGAL, f"found different values of {what} inside a warpgroup")
    return int(values[0])


def set_registers(operands: Operands) -> Step:
    """Decodes PTX setmaxnreg inc and dec: sets the registers per thread of the active warpgroups."""
    modifiers = operands.modifiers
    modifiers.type("u32")
    modifiers.need(("inc", "dec"), "a direction")
    modifiers.need_each("sync", "aligned")
    count = operands.constant(0)
    if count not in REGISTERS_RANGE:
        raise operands.unsupported(f"{count} registers, only multiples of 8 from 24 to 256")
    return lambda resident: resident.warpgroups.set_registers(resident.mask, count)


DECODERS: dict[str, Callable[[Operands], Step]] = {"wgmma": wgmma, "setmaxnreg": set_registers}
