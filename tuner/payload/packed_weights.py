"""Packs a weight as panels of columns, as the code of a fusion reads it.

A weight of k x n elements that is read as panels of 4 columns, with n = 6:

    0 1 2 3 | 4 5
    6 7 8 9 | a b      becomes    0 1 2 3  6 7 8 9    4 5 . .  a b . .       . is a zero

With interleave 2 pairs of rows lie next to each other for each column: 0 6 1 7 2 8 3 9. With a depth, rows of
zeros are added until the number of rows is a multiple of the depth; where rows come in runs, to each run.
Bytes that are wanted unsigned have their sign bits flipped, zeros as well. With nibbles, so have integers of
4 bits, of which a byte holds two, of different rows of a column.
"""

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.packings import NIBBLES, WeightPacking

Array = npt.NDArray[Any]
Allocate = Callable[[tuple[int, ...], "np.dtype[Any]"], Array]  # of a shape and a type
SIGN = np.int8(-128)  # the highest bit of an i8
NIBBLE_SIGN = 8  # the highest bit of 4


def packed_shape(shape: tuple[int, ...], packing: WeightPacking) -> tuple[int, int, int, int]:
    """Returns the shape of a packed weight: (panels, steps of k, columns of a panel, rows of a step).

    A step is ``packing.interleave`` rows of k; with nibbles it has half as many rows of bytes. Raises
    ValueError if ``shape`` has not as many dimensions as ``packing.order``; without an order it must have
    two.
    """
    if len(packing.order or (0, 1)) != len(shape):
        raise ValueError(f"a weight of shape {shape} cannot be packed: it is not a matrix")
    rows, columns = packing.matrix_shape(shape)
    steps = -(-packing.padded_rows(rows) // packing.interleave)
    panels = -(-columns // packing.columns)
    return panels, steps, packing.columns, packing.interleave // (2 if packing.nibbles else 1)


def packed(weight: Array, packing: WeightPacking, allocate: Allocate) -> Array:
    """Returns a weight, packed, in a new array of one dimension, which ``allocate`` makes.

    Raises ValueError for another number of dimensions than ``packing.order`` has, or without an order than
    two.
    """
    target = allocate((prod(packed_shape(weight.shape, packing)),), weight.dtype)
    pack(weight, packing, target)
    return target


def pack(weight: Array, packing: WeightPacking, target: Array) -> None:
    """Writes a weight, packed, into ``target``, a contiguous array of as many elements as ``packed_shape``.

    Raises ValueError for another number of dimensions than ``packing.order`` has, or without an order than
    two.
    """
    matrix = weight.transpose(packing.order) if packing.order else weight
    matrix = _with_padded_runs(matrix.reshape(packing.matrix_shape(weight.shape)), packing)
    if packing.nibbles:
        _pack_nibbles(matrix, packing, target.reshape(packed_shape(weight.shape, packing)))
        return
    shape = packed_shape(weight.shape, packing)
    packed = target.reshape(shape)
    if packed.size > matrix.size:  # else each element is written
        packed[...] = 0
    for panel in range(shape[0]):
        part = matrix[:, panel * packing.columns : (panel + 1) * packing.columns]
        for row in range(packing.interleave):
            lines = part[row :: packing.interleave]
            packed[panel, : lines.shape[0], : lines.shape[1], row] = lines
    if packing.unsigned:
        packed ^= SIGN


def _pack_nibbles(matrix: Array, packing: WeightPacking, packed: Array) -> None:
    whole = replace(packing, nibbles="", order=())
    order = NIBBLES[packing.nibbles]
    for panel in range(packed.shape[0]):
        part = matrix[:, panel * packing.columns : (panel + 1) * packing.columns]
        panel_bytes = np.zeros(packed_shape(part.shape, whole)[1:], np.int8)
        for row in range(packing.interleave):
            lines = part[row :: packing.interleave]
            panel_bytes[: lines.shape[0], : lines.shape[1], row] = lines
        numbers = (panel_bytes ^ np.int8(NIBBLE_SIGN)).astype(np.uint8) & np.uint8(2 * NIBBLE_SIGN - 1)
        packed[panel] = (numbers[..., order[::2]] | numbers[..., order[1::2]] << 4).view(np.int8)


def _with_padded_runs(matrix: Array, packing: WeightPacking) -> Array:
    if not packing.run:
        return matrix
    rows, columns = matrix.shape
    padded = packing.padded_rows(packing.run)
    runs = np.zeros((rows // packing.run, padded, columns), matrix.dtype)
    runs[:, : packing.run] = matrix.reshape(-1, packing.run, columns)
    return runs.reshape(-1, columns)
