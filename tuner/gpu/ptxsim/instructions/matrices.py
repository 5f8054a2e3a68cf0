"""Decoders of warp-level matrix instructions: mma.sync, ldmatrix, stmatrix, and wmma.

A decoder takes the operands of an instruction and returns the function that executes it for all active warps.
"""

from collections.abc import Callable

import numpy as np

from tuner.gpu.ptxsim.instructions.operands import Operands, Reader, SharedReader, Step, shared_address
from tuner.gpu.ptxsim.instructions.warps import synchronise_warp
from tuner.gpu.ptxsim.ptx.dtypes import TYPES, Array, Indices
from tuner.gpu.ptxsim.ptx.geometry import WARP_LANES
from tuner.gpu.ptxsim.state import fragments
from tuner.gpu.ptxsim.state.resident_blocks import ResidentBlocks

B32 = TYPES["b32"]
SHAPES = {
    "m16n8k32": (*fragments.INTEGERS, *fragments.FLOAT8S),
    "m16n8k16": ("f16", "bf16", *fragments.INTEGERS),
    "m16n8k8": ("f16", "bf16", "tf32"),
    "m16n8k4": ("tf32",),
}
COUNTS = {"x1": 1, "x2": 2, "x4": 4}
WHOLE_WARP = np.array([0xFFFFFFFF], np.uint32)  # the member mask of all lanes
# of wmma:
SIDE = 16  # rows and columns of all its matrices
SHAPE = "m16n16k16"
LAYOUTS = ("row", "col")
PART = 8  # elements of C or D per lane
INPUT_REGISTERS = 8  # of A or B: two lanes hold each element
RESULT_REGISTERS = {"f16": 4, "f32": 8}


def multiply_matrices(operands: Operands) -> Step:
    """Decodes PTX mma.sync, D [16, 8] = A B + C: f16 into f16, any float into f32, s8 and u8 into s32."""
    modifiers = operands.modifiers
    modifiers.need_each("sync", "aligned", "row", "col")
    shape = modifiers.need(SHAPES, "a shape")
    is_saturating = modifiers.take("satfinite") is not None
    # the last modifier comes first: D.A.B.C
    addend, right, left, result = (
        modifiers.type(*fragments.ELEMENTS, *fragments.RESULTS).name for _ in range(4)
    )
    if right not in fragments.partners(left) or left not in SHAPES[shape] or addend != result:
        raise operands.unsupported(f"{shape} of these types")
    results = {"f16": ("f32", "f16"), **dict.fromkeys(fragments.INTEGERS, ("s32",))}.get(left, ("f32",))
    if result not in results or (is_saturating and result != "s32"):
        raise operands.unsupported(f"{left} into {result}")
    operands.need(4)
    depth = int(shape.removeprefix("m16n8k"))
    columns = depth // fragments.ELEMENTS[left]  # 32-bit registers per row of A
    counts = (columns // 2, columns // 4, 4 if result in fragments.RESULTS else 2)
    a, b, c = (fragment(operands, number, count) for number, count in zip((1, 2, 3), counts, strict=True))
    targets = operands.names(0)
    if len(targets) != counts[2]:
        raise operands.unsupported(f"a result of {len(targets)} registers")

    def step(resident: ResidentBlocks) -> None:
        warps = resident.whole_warps()
        lanes = resident.lanes_of_warps(warps)
        a_bits, b_bits, c_bits = (fragment_bits(resident, lanes, readers) for readers in (a, b, c))
        registers = fragments.product(a_bits, b_bits, c_bits, (left, right), result, is_saturating)
        for name, bits in zip(targets, registers, strict=True):
            set_lanes(resident, name, lanes, bits)

    return step


def fragment(operands: Operands, number: int, count: int) -> list[Reader]:
    """Returns the readers of ``count`` 32-bit registers of the vector operand at position ``number``.

    Raises UnsupportedInstruction for another number of registers.
    """
    items = operands.items(number)
    if len(items) != count:
        raise operands.unsupported(f"a fragment of {len(items)} registers, only {count}")
    return [operands.reader(item, B32) for item in items]


def fragment_bits(resident: ResidentBlocks, lanes: Indices, readers: list[Reader]) -> list[Array]:
    """Returns the bits of each reader's register in ``lanes``, which are all lanes of the active warps."""
    if resident.is_full:
        return [np.ascontiguousarray(resident.full(read(resident))) for read in readers]
    return [resident.full(read(resident))[lanes] for read in readers]


def set_lanes(resident: ResidentBlocks, name: str, lanes: Indices, bits: Array) -> None:
    """Writes ``bits[i]`` to lane ``lanes[i]`` of register ``name``.

    ``lanes``: all lanes of the active warps, ascending.
    """
    if resident.is_full:
        resident.write(name, bits)
    else:
        resident.scatter(name, lanes, bits)


def load_matrices(operands: Operands) -> Step:
    """Decodes PTX ldmatrix of 1, 2 or 4 8x8 b16 matrices; row addresses in lanes 0 to 8 * count - 1."""
    count, is_transposed, is_generic = _matrix_modifiers(operands)
    address = shared_address(operands, 1, is_generic)
    targets = operands.names(0)
    if len(targets) != count:
        raise operands.unsupported(f"{len(targets)} registers for {count} matrices")

    def step(resident: ResidentBlocks) -> None:
        warps, lanes, addresses = _rows(resident, address, count)
        rows = resident.spaces.shared.load_rows(lanes, addresses).reshape(len(warps), count, 8, 8)
        registers = fragments.rows_to_registers(rows, is_transposed)
        every = resident.lanes_of_warps(warps)
        for index, name in enumerate(targets):
            set_lanes(resident, name, every, np.ascontiguousarray(registers[:, index]).ravel())

    return step


def store_matrices(operands: Operands) -> Step:
    """Decodes PTX stmatrix, the inverse of ldmatrix: returns a function that stores matrices per warp."""
    count, is_transposed, is_generic = _matrix_modifiers(operands)
    address = shared_address(operands, 0, is_generic)
    sources = fragment(operands, 1, count)

    def step(resident: ResidentBlocks) -> None:
        warps, lanes, addresses = _rows(resident, address, count)
        every = resident.lanes_of_warps(warps)
        bits = np.stack([resident.full(read(resident))[every].reshape(-1, 32) for read in sources], axis=1)
        rows = fragments.registers_to_rows(bits, is_transposed).reshape(len(lanes), 8)
        resident.spaces.shared.store(lanes, addresses, rows)

    return step


def _matrix_modifiers(operands: Operands) -> tuple[int, bool, bool]:
    """Consumes the modifiers; returns (number of matrices, is transposed, is a generic address)."""
    modifiers = operands.modifiers
    modifiers.type("b16")
    modifiers.need_each("sync", "aligned", "m8n8")
    count = COUNTS[modifiers.need(COUNTS, "a number of matrices")]
    operands.need(2)
    return count, modifiers.take("trans") is not None, modifiers.space() == "generic"


def _rows(resident: ResidentBlocks, address: SharedReader, count: int) -> tuple[Indices, Indices, Indices]:
    """Returns the active warps, the lanes that hold row addresses, and these shared addresses."""
    warps = resident.whole_warps()
    lanes = (warps[:, None] * 32 + np.arange(8 * count)).ravel()
    return warps, lanes, address(resident, lanes)


MMA: dict[str, Callable[[Operands], Step]] = {
    "mma": multiply_matrices,
    "ldmatrix": load_matrices,
    "stmatrix": store_matrices,
}


# Warp-level matrix instructions with opaque fragments: wmma.load, wmma.mma, wmma.store.
#
# PTX ISA, "Warp-level Matrix Instructions for wmma", leaves open which lane holds which element, so that a
# program cannot depend on the layout. Here, for 16x16 matrices, lane l holds line l % 16 of A or B in memory
# order: a row, or a column where the layout is ``col``, in which case wmma.mma must specify ``col`` as well;
# and half of row l / 2 of C or D. Simulated: only the shape m16n16k16 and f16 into f16 or f32.


def load_tile(operands: Operands) -> Step:
    """Decodes PTX wmma.load: returns a function that loads a 16x16 matrix A, B or C into registers."""
    which = operands.modifiers.need(("a", "b", "c"), "a matrix")
    kind, layout, space = _tile_modifiers(operands, "load")
    if which != "c" and kind != "f16":
        raise operands.unsupported(f".{kind} for {which}, only .f16")
    targets = operands.names(0)
    registers = INPUT_REGISTERS if which != "c" else RESULT_REGISTERS[kind]
    if len(targets) != registers:
        raise operands.unsupported(f"a fragment of {len(targets)} registers, only {registers}")
    addresses = _addresses(operands, 1, kind, layout if which == "c" else None)

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.lanes_of_warps(resident.whole_warps())
        columns = [
            resident.spaces.load(lanes, column, space, TYPES[kind].bytes, 1)[:, 0]
            for column in addresses(resident, lanes).T
        ]
        bits = np.ascontiguousarray(np.stack(columns, axis=1)).view(np.uint32)
        for index, name in enumerate(targets):
            set_lanes(resident, name, lanes, np.ascontiguousarray(bits[:, index]))

    return step


def store_tile(operands: Operands) -> Step:
    """Decodes PTX ``wmma.store``: returns a function that stores a 16x16 matrix D from registers."""
    operands.modifiers.need(("d",), "a matrix")
    kind, layout, space = _tile_modifiers(operands, "store")
    sources = fragment(operands, 1, RESULT_REGISTERS[kind])
    addresses = _addresses(operands, 0, kind, layout)

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.lanes_of_warps(resident.whole_warps())
        values = _elements(fragment_bits(resident, lanes, sources), TYPES[kind].raw)
        for index, column in enumerate(addresses(resident, lanes).T):
            resident.spaces.store(lanes, column, space, np.ascontiguousarray(values[:, index : index + 1]))

    return step


def multiply_tiles(operands: Operands) -> Step:
    """Decodes PTX ``wmma.mma``, D = A B + C of 16x16 f16 A and B: summed in float64, then rounded once."""
    modifiers = operands.modifiers
    modifiers.need_each("mma", "sync", "aligned", SHAPE)
    addend, result = (modifiers.type(*RESULT_REGISTERS).name for _ in range(2))
    layouts = [part for part in operands.instruction.parts if part in LAYOUTS]  # layout of A, then of B
    for _ in range(2):
        modifiers.need(LAYOUTS, "a layout")
    operands.need(4)
    inputs = [fragment(operands, number, INPUT_REGISTERS) for number in (1, 2)]
    added = fragment(operands, 3, RESULT_REGISTERS[addend])
    targets = operands.names(0)
    if len(targets) != RESULT_REGISTERS[result]:
        raise operands.unsupported(f"a result of {len(targets)} registers")

    addend_type, result_type = (np.float16 if kind == "f16" else np.float32 for kind in (addend, result))

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.lanes_of_warps(resident.whole_warps())
        left, right = (
            _input(fragment_bits(resident, lanes, part), layout)
            for part, layout in zip(inputs, layouts, strict=True)
        )
        before = _elements(fragment_bits(resident, lanes, added), np.dtype(addend_type))
        sums = left @ right + before.reshape(-1, SIDE, SIDE).astype(np.float64)
        bits = sums.reshape(len(lanes), PART).astype(result_type).view(np.uint32)
        for index, name in enumerate(targets):
            set_lanes(resident, name, lanes, np.ascontiguousarray(bits[:, index]))
        synchronise_warp(resident, WHOLE_WARP)  # all lanes have loaded A, B, C: a store may overwrite them

    return step


def _tile_modifiers(operands: Operands, what: str) -> tuple[str, str, str]:
    """Consumes the modifiers of a load or a store; returns (type, layout, state space)."""
    modifiers = operands.modifiers
    kind = modifiers.type(*RESULT_REGISTERS).name
    modifiers.need_each(what, "sync", "aligned", SHAPE)
    operands.need(2, 3)
    return kind, modifiers.need(LAYOUTS, "a layout"), modifiers.space()


def _addresses(
    operands: Operands, number: int, kind: str, layout: str | None
) -> Callable[[ResidentBlocks, Indices], Indices]:
    """Returns a function that computes element addresses [lane, element].

    ``layout``: of C or D, half a row of 16 per lane; None: of A or B, a line per lane.
    """
    base = operands.address(number)
    stride = operands.source(2, TYPES["s32"]) if len(operands) == 3 else None

    def find(resident: ResidentBlocks, lanes: Indices) -> Indices:
        start = resident.full(base(resident))[lanes][:, None]
        step = SIDE if stride is None else resident.full(stride(resident))[lanes].astype(np.int64)[:, None]
        lane = (lanes % WARP_LANES)[:, None]
        # a line of A or B per lane; of C or D, PART elements of a row of SIDE per lane
        if layout is None:
            elements = (lane % SIDE) * step + np.arange(SIDE)
        else:
            row = lane // 2
            column = PART * (lane % 2) + np.arange(PART)
            elements = row * step + column if layout == "row" else column * step + row
        return np.asarray(start + TYPES[kind].bytes * elements, np.int64)

    return find


def _elements(registers: list[Array], dtype: "np.dtype[np.generic]") -> Array:
    return np.ascontiguousarray(np.stack(registers, axis=1)).view(dtype)


def _input(registers: list[Array], layout: str) -> Array:
    """Returns the registers of A or B as float64 [warp, 16, 16]; ``layout`` "col": lanes hold columns."""
    lines = _elements(registers, np.dtype(np.float16)).reshape(-1, WARP_LANES, SIDE)[:, :SIDE]
    return (lines.swapaxes(1, 2) if layout == "col" else lines).astype(np.float64)


TILES: dict[str, Callable[[Operands], Step]] = {"load": load_tile, "store": store_tile, "mma": multiply_tiles}


def wmma(operands: Operands) -> Step:
    """Decodes PTX wmma.load, wmma.store and wmma.mma: returns a function that loads, stores or multiplies."""
    form = next(iter(operands.instruction.parts[1:]), "")
    if form not in TILES:
        raise operands.unsupported(f"this instruction without {', '.join(TILES)}")
    return TILES[form](operands)


WMMA: dict[str, Callable[[Operands], Step]] = {"wmma": wmma}
