"""Lays out the weights of a program in one block of memory: packed as the groups' scripts read them.

A weight of k x n elements that a script reads as panels of 4 columns, with n = 6:

    0 1 2 3 | 4 5
    6 7 8 9 | a b      becomes    0 1 2 3  6 7 8 9    4 5 . .  a b . .       . is a zero

With interleave 2 pairs of rows lie next to each other for each column: 0 6 1 7 2 8 3 9. A weight that two
groups read alike is stored once, one that they read differently twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.element_types import number_type
from tuner.core.grouped_program import WEIGHT, GroupCode, GroupedProgram, View, WeightPacking
from tuner.programs.run.result_pool import ALIGNMENT_BYTES, aligned_bytes

Array = npt.NDArray[Any]
Key = tuple[int, View | None, WeightPacking | None]  # index of the buffer; the view only of a packed one


@dataclass(frozen=True)
class WeightPlace:
    """Where a weight lies in the block of all weights, and how it is packed."""

    weight: int  # which of the program's weights
    offset_bytes: int
    bytes: int
    view: View | None = None  # of the weight's buffer, where a part of it is packed
    packing: WeightPacking | None = None  # None: the buffer as it is


@dataclass(frozen=True)
class WeightPlan:
    """The places of all weights that the groups of a program read."""

    places: tuple[WeightPlace, ...]
    bytes: int
    by_key: tuple[tuple[Key, int], ...]  # -> index into ``places``

    def offset_bytes(self, view: View, packing: WeightPacking | None) -> int:
        """Returns where the first element that a group reads of a weight lies in the block."""
        place = self.places[dict(self.by_key)[_key(view, packing)]]
        inside = 0 if packing else view.offset * number_type(view.type.element).bytes
        return place.offset_bytes + inside


def weight_plan(program: GroupedProgram, codes: Sequence[GroupCode]) -> WeightPlan:
    """Returns a place for each weight in each packing that some group reads.

    Raises ValueError for a packed view that is no matrix.
    """
    found: dict[Key, int] = {}
    places: list[WeightPlace] = []
    at = 0
    for group, code in zip(program.groups, codes, strict=True):
        for view, packing in zip(group.inputs, code.packings, strict=True):
            buffer = program.buffers[view.buffer]
            if buffer.owner != WEIGHT or _key(view, packing) in found:
                continue
            size = packed_bytes(view, packing) if packing else buffer.type.bytes
            found[_key(view, packing)] = len(places)
            places.append(WeightPlace(buffer.number, at, size, view if packing else None, packing))
            at += -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return WeightPlan(tuple(places), at, tuple(found.items()))


def packed_bytes(view: View, packing: WeightPacking) -> int:
    """Returns the bytes of a packed weight. Raises ValueError for a view that is no matrix."""
    return prod(_packed_shape(view, packing)) * number_type(view.type.element).bytes


def fill_weights(plan: WeightPlan, weights: Sequence[Array], block: Array) -> None:
    """Writes the weights of a program, packed, into ``block``, an array of ``plan.bytes`` bytes.

    ``weights`` are the arrays of the program's WEIGHT buffers by their number.
    """
    for place in plan.places:
        weight = np.ascontiguousarray(weights[place.weight])
        target = block[place.offset_bytes : place.offset_bytes + place.bytes].view(weight.dtype)
        if place.packing is None or place.view is None:
            target[...] = weight.reshape(-1)
        else:
            _pack(_viewed(weight, place.view), place.packing, target)


def packed_block(plan: WeightPlan, weights: Sequence[Array]) -> Array:
    """Returns the weights of a program in a new block of bytes; what is between them is zero."""
    block = aligned_bytes(plan.bytes)
    block[...] = 0  # also between the weights: equal programs have equal files
    fill_weights(plan, weights, block)
    return block


def _key(view: View, packing: WeightPacking | None) -> Key:
    return (view.buffer, view if packing else None, packing)


def _packed_shape(view: View, packing: WeightPacking) -> tuple[int, int, int, int]:
    """Returns (panels, steps of k, columns, rows of a step)."""
    if len(view.type.shape) != 2:
        raise ValueError(f"a weight of shape {view.type.shape} cannot be packed: it is no matrix")
    rows, columns = view.type.shape
    return (
        -(-columns // packing.columns),
        -(-rows // packing.interleave),
        packing.columns,
        packing.interleave,
    )


def _viewed(weight: Array, view: View) -> Array:
    flat = weight.reshape(-1)[view.offset :]
    strides = [stride * weight.itemsize for stride in view.strides]
    return np.lib.stride_tricks.as_strided(flat, view.type.shape, strides, writeable=False)


def _pack(matrix: Array, packing: WeightPacking, target: Array) -> None:
    rows, columns = matrix.shape
    panels, steps = -(-columns // packing.columns), -(-rows // packing.interleave)
    packed = target.reshape(panels, steps, packing.columns, packing.interleave)
    packed[...] = 0
    for panel in range(panels):
        part = matrix[:, panel * packing.columns : (panel + 1) * packing.columns]
        for row in range(packing.interleave):
            lines = part[row :: packing.interleave]
            packed[panel, : lines.shape[0], : lines.shape[1], row] = lines
