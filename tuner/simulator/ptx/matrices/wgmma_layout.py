"""Layouts of wgmma matrices. PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma.

Accumulator of warp w: with g = lane / 4 and t = lane % 4, register 4 j + 2 h + i of f32 holds row 16 w + g +
8 h, column 8 j + 2 t + i; register 2 j + h of f16 holds both of these columns.
"""

import numpy as np

from tuner.simulator.ptx.defects import Defect, Fault
from tuner.simulator.ptx.dtypes import TYPES, UNSIGNED, Array, Indices
from tuner.simulator.ptx.memory.tensor_map import swizzled

WARPGROUP_LANES = 128
ROWS = 64  # M of one operation
SPANS_BYTES = {0: 0, 1: 128, 2: 64, 3: 32}  # swizzle field of a matrix descriptor -> bytes


def accumulator(registers: list[Array], result: str) -> Array:
    """Returns the accumulator of a warpgroup, as float64 [64, n], from its registers.

    ``registers`` holds an array of 128 lanes' bits per register; ``result`` is "f32", "f16" or "s32".
    """
    bits = np.ascontiguousarray(np.stack(registers, axis=-1))  # [128, register]
    grid = (
        bits.view(TYPES[result].dtype).reshape(4, 8, 4, -1, 2, 2).transpose(0, 4, 1, 3, 2, 5)
    )  # [warp, half, g, j, t, i]
    return grid.reshape(ROWS, -1).astype(np.float64)


def accumulator_registers(numbers: Array) -> list[Array]:
    """Returns the registers in which a warpgroup holds an accumulator: per register 128 lanes' bits (uint32).

    ``numbers`` is [64, n], of f32, s32, or f16, two columns of which share a register. The inverse of
    ``accumulator``.
    """
    grid = numbers.reshape(4, 2, 8, -1, 4, 2).transpose(0, 2, 4, 3, 1, 5)
    bits = np.ascontiguousarray(grid).view(np.uint32).reshape(WARPGROUP_LANES, -1)
    return [np.ascontiguousarray(bits[:, number]) for number in range(bits.shape[1])]


def register_operand(registers: list[Array], item_bytes: int) -> Array:
    """Returns matrix A of wgmma [64, k] as unsigned integers of ``item_bytes`` bytes, from four registers.

    ``registers`` holds an array of 128 lanes' bits per register, in mma.sync's layout.
    """
    dtype = UNSIGNED[item_bytes]
    blocks = [np.ascontiguousarray(register).view(dtype).reshape(4, 8, -1) for register in registers]
    pairs = [np.concatenate(blocks[r : r + 2], axis=1) for r in range(0, len(blocks), 2)]
    return np.concatenate(pairs, axis=2).reshape(ROWS, -1)


def operand_addresses(
    descriptor: int, rows: int, depth: int, item_bytes: int, is_transposed: bool
) -> Indices:
    """Returns the shared address of each element [row, k] of the wgmma operand that ``descriptor`` describes.

    ``rows`` and ``depth`` are the operand's elements along M or N and along K, of ``item_bytes`` bytes.

    The canonical layouts of the PTX ISA, "Matrix Descriptor Format". K-major (not ``is_transposed``): groups
    of 8 rows are the stride offset apart, and the rows of a group the swizzle span; without swizzle rows are
    16 bytes apart, and chunks of 16 bytes along k the leading offset. MN-major: runs of one span of rows are
    the leading offset apart, and groups of 8 k the stride offset; without swizzle, groups of 8 rows the
    stride offset, and groups of 8 k the leading offset.

    Raises Fault for a descriptor with a base offset.
    """
    start, leading, stride = ((descriptor >> shift & 0x3FFF) << 4 for shift in (0, 16, 32))
    if descriptor >> 49 & 7:
        raise Fault(Defect.ILLEGAL, "found a base offset in a matrix descriptor, which is not simulated")
    span = SPANS_BYTES[descriptor >> 62 & 3]
    row, k = np.arange(rows)[:, None], np.arange(depth)[None, :]
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
