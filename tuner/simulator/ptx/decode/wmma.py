"""Warp-level matrix instructions with opaque fragments: wmma.load, wmma.mma, wmma.store.

PTX ISA, "Warp-level Matrix Instructions for wmma", leaves open which lane holds which element, so that a
program cannot depend on the layout. Here, for 16x16 matrices, lane l holds line l % 16 of A or B in memory
order: a row, or a column where the layout is ``col``, in which case wmma.mma must specify ``col`` as well;
and half of row l / 2 of C or D. Simulated: only the shape m16n16k16 and f16 into f16 or f32.
"""

from collections.abc import Callable

import numpy as np

from tuner.simulator.ptx.decode.matrices import fragment, fragment_bits, set_lanes
from tuner.simulator.ptx.decode.operands import Operands, Step
from tuner.simulator.ptx.decode.warps import synchronise_warp
from tuner.simulator.ptx.dtypes import TYPES, Array, Indices
from tuner.simulator.ptx.geometry import WARP_LANES
from tuner.simulator.ptx.state.resident_blocks import ResidentBlocks

WHOLE_WARP = np.array([0xFFFFFFFF], np.uint32)  # the member mask of all lanes
SIDE = 16  # rows and columns of all matrices
SHAPE = "m16n16k16"
LAYOUTS = ("row", "col")
PART = 8  # elements of C or D per lane
INPUT_REGISTERS = 8  # of A or B: two lanes hold each element
RESULT_REGISTERS = {"f16": 4, "f32": 8}


def load_tile(operands: Operands) -> Step:
    """Decodes PTX wmma.load: returns a function that loads a 16x16 matrix A, B or C into a warp's registers.

    Only m16n16k16 is simulated: A and B of f16, C of f16 or f32. Other forms raise UnsupportedInstruction.
    """
    which = operands.modifiers.need(("a", "b", "c"), "a matrix")
    kind, layout, space = _text(operands, "load")
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
            resident.spaces.load(lanes, each, space, TYPES[kind].bytes, 1)[:, 0]
            for each in addresses(resident, lanes).T
        ]
        bits = np.ascontiguousarray(np.stack(columns, axis=1)).view(np.uint32)
        for number, name in enumerate(targets):
            set_lanes(resident, name, lanes, np.ascontiguousarray(bits[:, number]))

    return step


def store_tile(operands: Operands) -> Step:
    """Decodes PTX ``wmma.store``: returns a function that stores a 16x16 matrix D from registers of a warp.

    Only m16n16k16 with D of f16 or f32 is simulated. Other forms raise UnsupportedInstruction.
    """
    operands.modifiers.need(("d",), "a matrix")
    kind, layout, space = _text(operands, "store")
    sources = fragment(operands, 1, RESULT_REGISTERS[kind])
    addresses = _addresses(operands, 0, kind, layout)

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.lanes_of_warps(resident.whole_warps())
        values = _elements(fragment_bits(resident, lanes, sources), TYPES[kind].raw)
        for number, each in enumerate(addresses(resident, lanes).T):
            resident.spaces.store(lanes, each, space, np.ascontiguousarray(values[:, number : number + 1]))

    return step


def multiply_tiles(operands: Operands) -> Step:
    """Decodes PTX ``wmma.mma``: returns a function that computes D = A B + C per warp, for 16x16 matrices.

    Exact products of f16 are summed in float64 and rounded once to f16 or f32. Other types raise
    UnsupportedInstruction.
    """
    modifiers = operands.modifiers
    for word in ("mma", "sync", "aligned", SHAPE):
        modifiers.need((word,), "it")
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

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.lanes_of_warps(resident.whole_warps())
        left, right = (
            _input(fragment_bits(resident, lanes, part), layout)
            for part, layout in zip(inputs, layouts, strict=True)
        )
        sums = left @ right + _matrix(_elements(fragment_bits(resident, lanes, added), np.dtype(addend_type)))
        bits = sums.reshape(len(lanes), PART).astype(result_type).view(np.uint32)
        for number, name in enumerate(targets):
            set_lanes(resident, name, lanes, np.ascontiguousarray(bits[:, number]))
        synchronise_warp(resident, WHOLE_WARP)  # mma reads what every lane loaded, and D may overwrite it

    addend_type, result_type = (np.float16 if kind == "f16" else np.float32 for kind in (addend, result))
    return step


def _text(operands: Operands, what: str) -> tuple[str, str, str]:
    """Consumes the modifiers of a load or a store; returns (type, layout, state space)."""
    modifiers = operands.modifiers
    kind = modifiers.type(*RESULT_REGISTERS).name
    for word in (what, "sync", "aligned", SHAPE):
        modifiers.need((word,), "it")
    operands.need(2, 3)
    return kind, modifiers.need(LAYOUTS, "a layout"), modifiers.space()


def _addresses(
    operands: Operands, number: int, kind: str, layout: str | None
) -> Callable[[ResidentBlocks, Indices], Indices]:
    """Returns the reader of element addresses [lane, element]; ``layout`` None: of lines of A or B."""
    base = operands.address(number)
    stride = operands.source(2, TYPES["s32"]) if len(operands) == 3 else None

    def find(resident: ResidentBlocks, lanes: Indices) -> Indices:
        start = resident.full(base(resident))[lanes][:, None]
        step = SIDE if stride is None else resident.full(stride(resident))[lanes].astype(np.int64)[:, None]
        lane = (lanes % WARP_LANES)[:, None]
        if layout is None:
            places = (lane % SIDE) * step + np.arange(SIDE)
        else:
            row, column = lane // 2, PART * (lane % 2) + np.arange(PART)
            places = row * step + column if layout == "row" else column * step + row
        return np.asarray(start + TYPES[kind].bytes * places, np.int64)

    return find


def _elements(registers: list[Array], dtype: "np.dtype[np.generic]") -> Array:
    """Returns the elements in registers: [lane, element]."""
    return np.ascontiguousarray(np.stack(registers, axis=1)).view(dtype)


def _input(registers: list[Array], layout: str) -> Array:
    """Returns A or B as float64: [warp, 16, 16]."""
    lines = _elements(registers, np.dtype(np.float16)).reshape(-1, WARP_LANES, SIDE)[:, :SIDE]
    return (lines.swapaxes(1, 2) if layout == "col" else lines).astype(np.float64)


def _matrix(elements: Array) -> Array:
    return elements.reshape(-1, SIDE, SIDE).astype(np.float64)


TILES: dict[str, Callable[[Operands], Step]] = {
    "load": load_tile,
    "store": store_tile,
    "mma": multiply_tiles,
}


def wmma(operands: Operands) -> Step:
    """Decodes PTX wmma.load, wmma.store and wmma.mma: returns a function that loads, stores or multiplies."""
    form = next(iter(operands.instruction.parts[1:]), "")
    if form not in TILES:
        raise operands.unsupported(f"it without {', '.join(TILES)}")
    return TILES[form](operands)


DECODERS: dict[str, Callable[[Operands], Step]] = {"wmma": wmma}
