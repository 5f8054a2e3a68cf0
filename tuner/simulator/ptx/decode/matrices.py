"""Warp-level matrix instructions: mma.sync, ldmatrix, stmatrix."""

from collections.abc import Callable

import numpy as np

from tuner.simulator.ptx.decode.operands import Operands, Reader, Step
from tuner.simulator.ptx.decode.shared_addresses import SharedReader, shared_address
from tuner.simulator.ptx.dtypes import TYPES, Array, Indices
from tuner.simulator.ptx.matrices.fragments import (
    ELEMENTS,
    FLOAT8S,
    INTEGERS,
    RESULTS,
    partners,
    product,
    registers_to_rows,
    rows_to_registers,
)
from tuner.simulator.ptx.state.resident_blocks import ResidentBlocks

B32 = TYPES["b32"]
SHAPES = {
    "m16n8k32": (*INTEGERS, *FLOAT8S),
    "m16n8k16": ("f16", "bf16", *INTEGERS),
    "m16n8k8": ("f16", "bf16", "tf32"),
    "m16n8k4": ("tf32",),
}
COUNTS = {"x1": 1, "x2": 2, "x4": 4}


def multiply_matrices(operands: Operands) -> Step:
    """Decodes PTX ``mma.sync``: returns a function that computes D [16, 8] = A B + C per warp.

    Simulated: fp8, f16, bf16 and tf32 into f32, f16 into f16, 8-bit integers into s32; other types raise
    UnsupportedInstruction.
    """
    modifiers = operands.modifiers
    for word in ("sync", "aligned", "row", "col"):
        modifiers.need((word,), "it")
    shape = modifiers.need(SHAPES, "a shape")
    is_saturating = modifiers.take("satfinite") is not None
    addend, right, left, result = (modifiers.type(*ELEMENTS, *RESULTS).name for _ in range(4))
    if right not in partners(left) or left not in SHAPES[shape] or addend != result:
        raise operands.unsupported(f"{shape} of these types")
    if result not in _results(left) or (is_saturating and result != "s32"):
        raise operands.unsupported(f"{left} into {result}")
    operands.need(4)
    depth = int(shape.removeprefix("m16n8k"))
    columns = depth // ELEMENTS[left]  # 32-bit registers per row of A
    counts = (columns // 2, columns // 4, 4 if result in RESULTS else 2)
    a, b, c = (fragment(operands, number, count) for number, count in zip((1, 2, 3), counts, strict=True))
    targets = operands.names(0)
    if len(targets) != counts[2]:
        raise operands.unsupported(f"a result of {len(targets)} registers")

    def step(resident: ResidentBlocks) -> None:
        warps = resident.whole_warps()
        lanes = resident.lanes_of_warps(warps)
        left_bits, right_bits, addend_bits = (
            fragment_bits(resident, lanes, fragment) for fragment in (a, b, c)
        )
        found = product(left_bits, right_bits, addend_bits, (left, right), result, is_saturating)
        for name, bits in zip(targets, found, strict=True):
            set_lanes(resident, name, lanes, bits)

    return step


def _results(left: str) -> tuple[str, ...]:
    """Returns the types of C and D that mma.sync allows for a type of A."""
    if left in INTEGERS:
        return ("s32",)
    return ("f32", "f16") if left == "f16" else ("f32",)


def fragment(operands: Operands, number: int, count: int) -> list[Reader]:
    """Returns the readers of the ``count`` 32-bit registers of the vector operand ``number``, counted from 0.

    A reader returns the register's bits in all lanes. Raises UnsupportedInstruction where the operand does
    not have ``count`` registers.
    """
    items = operands.items(number)
    if len(items) != count:
        raise operands.unsupported(f"a fragment of {len(items)} registers, only {count}")
    return [operands.reader(item, B32) for item in items]


def fragment_bits(resident: ResidentBlocks, lanes: Indices, readers: list[Reader]) -> list[Array]:
    """Returns, for each reader, its register's bits in ``lanes``: all lanes of the active warps."""
    if resident.is_full:
        return [np.ascontiguousarray(resident.full(read(resident))) for read in readers]
    return [resident.full(read(resident))[lanes] for read in readers]


def set_lanes(resident: ResidentBlocks, name: str, lanes: Indices, bits: Array) -> None:
    """Writes ``bits``, one value per lane of ``lanes``, to register ``name``; other lanes keep their values.

    ``lanes`` must be all lanes of the active warps.
    """
    if resident.is_full:
        resident.write(name, bits)
    else:
        resident.scatter(name, lanes, bits)


def load_matrices(operands: Operands) -> Step:
    """Decodes PTX ldmatrix: returns a function that loads 1, 2 or 4 matrices of 8x8 b16 elements per warp.

    The addresses of the matrices' rows are in lanes 0 to 8 * count - 1 of the warp. Only .m8n8 with .b16 is
    simulated.
    """
    count, is_transposed, is_generic = _matrix_words(operands)
    address, targets = shared_address(operands, 1, is_generic), operands.names(0)
    if len(targets) != count:
        raise operands.unsupported(f"{len(targets)} registers for {count} matrices")

    def step(resident: ResidentBlocks) -> None:
        warps, lanes, addresses = _rows(resident, address, count)
        rows = resident.spaces.shared.load_rows(lanes, addresses).reshape(len(warps), count, 8, 8)
        found = rows_to_registers(rows, is_transposed)
        every = resident.lanes_of_warps(warps)
        for number, name in enumerate(targets):
            set_lanes(resident, name, every, np.ascontiguousarray(found[:, number]).ravel())

    return step


def store_matrices(operands: Operands) -> Step:
    """Decodes PTX stmatrix: returns a function that stores 1, 2 or 4 matrices of 8x8 b16 elements per warp.

    The inverse of ldmatrix: the addresses of the matrices' rows are in lanes 0 to 8 * count - 1 of the warp.
    """
    count, is_transposed, is_generic = _matrix_words(operands)
    address, sources = shared_address(operands, 0, is_generic), fragment(operands, 1, count)

    def step(resident: ResidentBlocks) -> None:
        warps, lanes, addresses = _rows(resident, address, count)
        every = resident.lanes_of_warps(warps)
        bits = np.stack([resident.full(read(resident))[every].reshape(-1, 32) for read in sources], axis=1)
        rows = registers_to_rows(bits, is_transposed).reshape(len(lanes), 8)
        resident.spaces.shared.store(lanes, addresses, rows)

    return step


def _matrix_words(operands: Operands) -> tuple[int, bool, bool]:
    """Consumes the modifiers; returns (number of matrices, is transposed, is a generic address)."""
    modifiers = operands.modifiers
    modifiers.type("b16")
    for word in ("sync", "aligned", "m8n8"):
        modifiers.need((word,), "it")
    count = COUNTS[modifiers.need(COUNTS, "a number of matrices")]
    operands.need(2)
    return count, modifiers.take("trans") is not None, modifiers.space() == "generic"


def _rows(resident: ResidentBlocks, address: SharedReader, count: int) -> tuple[Indices, Indices, Indices]:
    """Returns the active warps, the lanes that hold row addresses, and these shared addresses."""
    warps = resident.whole_warps()
    lanes = (warps[:, None] * 32 + np.arange(8 * count)).ravel()
    return warps, lanes, address(resident, lanes)


DECODERS: dict[str, Callable[[Operands], Step]] = {
    "mma": multiply_matrices,
    "ldmatrix": load_matrices,
    "stmatrix": store_matrices,
}
