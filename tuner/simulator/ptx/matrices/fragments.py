"""Matrix fragments of mma.sync and ldmatrix. PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions".

With g = lane / 4, t = lane % 4, and e elements per register (4 of 8 bits, 2 of 16, 1 of 32), 0 <= i < e:

- A: register r holds row g + 8 (r % 2), columns 4 e (r / 2) + t e + i;
- B: register r holds rows 4 e r + t e + i, column g;
- C: register r of 32 bits holds row g + 8 (r / 2), column 2 t + r % 2; of f16 two columns of row g + 8 r.
"""

import numpy as np

from tuner.simulator.ptx.dtypes import TYPES, Array
from tuner.simulator.ptx.geometry import WARP_LANES
from tuner.simulator.ptx.numbers.rounding import read_tf32

INTEGERS, FLOAT8S = ("s8", "u8"), ("e4m3", "e5m2")
# Elements of an operand per register.
ELEMENTS = {"s8": 4, "u8": 4, "e4m3": 4, "e5m2": 4, "f16": 2, "bf16": 2, "tf32": 1}
S32 = np.iinfo(np.int32)
RESULTS = {"s32": np.dtype("i4"), "f32": np.dtype("f4")}  # types of C with one element per register


def partners(left: str) -> tuple[str, ...]:
    """Returns the types that matrix B may have in mma where matrix A has the type ``left``, such as "f16"."""
    return next((kinds for kinds in (INTEGERS, FLOAT8S) if left in kinds), (left,))


def operand_values(bits: Array, kind: str) -> Array:
    """Returns elements of A or B as float64 [..., element], from their bits.

    ``bits`` is [..., register] of 32-bit registers, which hold 1, 2 or 4 elements each, or [..., element] of
    unsigned integers of the size of an element. ``kind`` is the elements' PTX type, such as "f16".
    """
    if kind == "tf32":
        return read_tf32(bits).astype(np.float64)
    return np.ascontiguousarray(bits).view(TYPES[kind].dtype).astype(np.float64)


def _block(register: Array, kind: str) -> Array:
    """Returns one register of all lanes [warp * 32] as matrices [warp, g, t * element]."""
    grid = register.reshape(-1, 8, 4)
    return operand_values(grid, kind)


def matrix_a(registers: list[Array], kind: str) -> Array:
    """Returns matrix A of each warp, as float64 [warp, 16, k], from the registers of mma.sync.

    ``registers`` holds an array [warp * 32] of bits per register; ``kind`` is the elements' PTX type.
    """
    pairs = [
        np.concatenate([_block(registers[r], kind), _block(registers[r + 1], kind)], axis=1)
        for r in range(0, len(registers), 2)
    ]
    return np.concatenate(pairs, axis=2)


def matrix_b(registers: list[Array], kind: str) -> Array:
    """Returns matrix B of each warp, as float64 [warp, k, 8], from the registers of mma.sync.

    ``registers`` holds an array [warp * 32] of bits per register; ``kind`` is the elements' PTX type.
    """
    columns = np.concatenate([_block(register, kind) for register in registers], axis=2)
    return columns.transpose(0, 2, 1)


def matrix_c(registers: list[Array], kind: str) -> Array:
    """Returns matrix C of each warp, as float64 [warp, 16, 8], from the registers of mma.sync.

    ``registers`` holds an array [warp * 32] of bits per register; ``kind`` is "f16", "f32" or "s32".
    """
    if kind == "f16":
        return np.concatenate([_block(register, "f16") for register in registers], axis=1)
    values = np.stack([register.view(RESULTS[kind]).reshape(-1, 8, 4) for register in registers], axis=-1)
    warps = len(values)  # [warp, g, t, register] with register = 2 * half + column
    grid = values.reshape(warps, 8, 4, 2, 2).transpose(0, 3, 1, 2, 4)
    return grid.reshape(warps, 16, 8).astype(np.float64)


def fragments_c(numbers: Array) -> list[Array]:
    """Returns the registers in which mma.sync holds matrix D: per register an array [warp * 32] of bits.

    ``numbers`` is D [warp, 16, 8], of 16-bit or 32-bit elements. The inverse of ``matrix_c``.
    """
    warps = len(numbers)
    if numbers.itemsize == 2:
        halves = np.ascontiguousarray(numbers).view(np.uint32).reshape(warps, 2, WARP_LANES)
        return [np.ascontiguousarray(halves[:, half]).ravel() for half in range(2)]
    grid = numbers.reshape(warps, 2, 8, 4, 2).transpose(1, 4, 0, 2, 3)
    flat = np.ascontiguousarray(grid).view(np.uint32).reshape(4, warps * WARP_LANES)
    return list(flat)


def rounded(matrix: Array, kind: str, *, is_saturating: bool = False) -> Array:
    """Returns float64 sums rounded once to ``kind``: "f16", "f32" or "s32".

    s32 wraps around, or saturates with ``is_saturating``.
    """
    if kind == "s32":
        limited = np.clip(matrix, S32.min, S32.max) if is_saturating else matrix
        return limited.astype(np.int64).astype(np.int32)
    return matrix.astype(np.float16 if kind == "f16" else np.float32)


def product(
    a: list[Array], b: list[Array], c: list[Array], kinds: tuple[str, str], result: str, is_saturating: bool
) -> list[Array]:
    """Returns the registers of D = A B + C of mma.sync: per register an array [warp * 32] of bits.

    ``a``, ``b`` and ``c`` are registers of the same form; ``kinds`` are the types of A and B, ``result`` that
    of C and D. Exact products are summed in float64 and rounded once; integer sums are exact, and saturate at
    the limits of s32 with ``is_saturating``. A device sums floating-point numbers in a different order and
    truncates, so that the last bits may differ.
    """
    total = matrix_a(a, kinds[0]) @ matrix_b(b, kinds[1]) + matrix_c(c, result)
    return fragments_c(rounded(total, result, is_saturating=is_saturating))


def rows_to_registers(rows: Array, is_transposed: bool) -> Array:
    """Returns the registers that ldmatrix loads, as uint32 [warp, matrix, lane].

    ``rows`` holds 16-bit elements [warp, matrix, 8 rows, 8 columns]; each register holds two of them. With
    ``is_transposed`` (.trans) the matrices are transposed first.
    """
    matrices = rows.swapaxes(2, 3) if is_transposed else rows
    return np.ascontiguousarray(matrices).view(np.uint32).reshape(*rows.shape[:2], WARP_LANES)


def registers_to_rows(registers: Array, is_transposed: bool) -> Array:
    """Returns the 16-bit elements that stmatrix stores, as uint16 [warp, matrix, 8 rows, 8 columns].

    ``registers`` holds uint32 [warp, matrix, lane]; with ``is_transposed`` (.trans) the matrices are
    transposed. The inverse of ``rows_to_registers``.
    """
    matrices = np.ascontiguousarray(registers).view(np.uint16).reshape(*registers.shape[:2], 8, 8)
    return np.ascontiguousarray(matrices.swapaxes(2, 3) if is_transposed else matrices)
