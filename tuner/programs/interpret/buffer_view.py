"""A memref in each lane: addresses, sizes and strides, and the bytes that it may touch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tuner.programs.interpret.element_types import INDEX, Array
from tuner.programs.interpret.lane_grid import uniform


@dataclass(frozen=True, eq=False)
class BufferView:
    """All arrays are int64 of a shape that broadcasts to (blocks, threads)."""

    address: Array  # of the element at index 0
    origin: Array  # where the buffer's own offset is counted from
    low: Array  # first byte that may be touched
    high: Array  # end of those bytes
    sizes: tuple[Array, ...]
    strides: tuple[Array, ...]  # elements
    owners: tuple[object, ...] = ()  # what keeps the bytes alive

    @classmethod
    def of_rows(
        cls, address: Array, size_bytes: Any, sizes: Sequence[Array], owner: object = None
    ) -> "BufferView":
        """Returns a row-major buffer that has its bytes for itself."""
        owners = () if owner is None else (owner,)
        end = address + size_bytes
        return cls(address, address, address, end, tuple(sizes), row_major(sizes), owners)

    def at(self, indices: Sequence[Array], item_bytes: int) -> Array:
        """Returns the address of an element; indices may have the axes of a vector behind those of lanes."""
        axes = max((index.ndim for index in indices), default=2) - 2
        address = behind(self.address, axes)
        for index, stride in zip(indices, self.strides, strict=True):
            address = address + behind(index, axes + 2 - index.ndim) * behind(stride, axes) * item_bytes
        return address

    def shifted(self, address: Array, sizes: Sequence[Array], strides: Sequence[Array]) -> "BufferView":
        """Returns another view of the same bytes."""
        return replace(self, address=address, sizes=tuple(sizes), strides=tuple(strides))


def row_major(sizes: Sequence[Array]) -> tuple[Array, ...]:
    """Returns the strides of rows without gaps."""
    strides, step = [], uniform(1)
    for size in reversed(sizes):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def behind(values: Array, axes: int) -> Array:
    """Returns values of lanes with more axes of size 1, to meet vectors."""
    return values.reshape(*values.shape, *[1] * axes) if axes else values


def merged(mask: Array, new: Any, old: Any) -> Any:
    """Returns the new value in the lanes of a mask, the old in the others; both are of one type."""
    if old is None or new is old or (mask.size == 1 and mask.all()):
        return new
    if isinstance(new, BufferView):
        return _merged_views(mask, new, old)
    return np.where(behind(mask, new.ndim - 2), new, old)


def _merged_views(mask: Array, new: BufferView, old: BufferView) -> BufferView:
    def chosen(one: Array, other: Array) -> Array:
        return np.where(mask, one, other).astype(INDEX, copy=False)

    return BufferView(
        chosen(new.address, old.address),
        chosen(new.origin, old.origin),
        chosen(new.low, old.low),
        chosen(new.high, old.high),
        tuple(map(chosen, new.sizes, old.sizes)),
        tuple(map(chosen, new.strides, old.strides)),
        tuple({id(owner): owner for owner in (*new.owners, *old.owners)}.values()),
    )
