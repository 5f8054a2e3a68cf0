"""A memref in each lane: addresses, sizes and strides, and the bytes that may be accessed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tuner.programs.interpret.element_types import INDEX, Array
from tuner.programs.interpret.lane_grid import uniform


@dataclass(frozen=True, eq=False)
class BufferView:
    """A memref value in each simulated GPU thread (lane): address, sizes, strides, and the accessible bytes.

    All arrays are int64 of a shape that broadcasts to (blocks, threads).
    """

    address: Array  # of the element at index 0
    origin: Array  # address that the offset of the memref is relative to
    low: Array  # address of the first byte that may be accessed
    high: Array  # address after the last byte that may be accessed
    sizes: tuple[Array, ...]
    strides: tuple[Array, ...]  # in elements
    owners: tuple[object, ...] = ()  # objects that keep the memory alive

    @classmethod
    def of_rows(
        cls, address: Array, size_bytes: Any, sizes: Sequence[Array], owner: object = None
    ) -> "BufferView":
        """Returns a contiguous row-major memref of ``size_bytes`` accessible bytes at ``address``.

        Args:
            address: per lane, the address of the first element.
            size_bytes: number of bytes that may be accessed.
            sizes: size per dimension and lane.
            owner: an object that keeps the memory alive.
        """
        owners = () if owner is None else (owner,)
        end = address + size_bytes
        return cls(address, address, address, end, tuple(sizes), row_major(sizes), owners)

    def at(self, indices: Sequence[Array], item_bytes: int) -> Array:
        """Returns each lane's byte address of the element at ``indices``; no bounds are checked.

        ``indices`` has one array per dimension; axes after (blocks, threads) are axes of a vector.
        ``item_bytes`` is the distance between consecutive elements.
        """
        axes = max((index.ndim for index in indices), default=2) - 2
        address = with_trailing_axes(self.address, axes)
        for index, stride in zip(indices, self.strides, strict=True):
            address = (
                address
                + with_trailing_axes(index, axes + 2 - index.ndim)
                * with_trailing_axes(stride, axes)
                * item_bytes
            )
        return address

    def shifted(self, address: Array, sizes: Sequence[Array], strides: Sequence[Array]) -> "BufferView":
        """Returns a memref on the same bytes with another address, sizes, and strides in elements.

        ``address`` is that of the element at index 0. The origin and the accessible bytes stay the same.
        """
        return replace(self, address=address, sizes=tuple(sizes), strides=tuple(strides))


def row_major(sizes: Sequence[Array]) -> tuple[Array, ...]:
    """Returns the strides, in elements, of a contiguous row-major memref; one array per dimension."""
    strides, step = [], uniform(1)
    for size in reversed(sizes):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def with_trailing_axes(values: Array, axes: int) -> Array:
    """Returns ``values`` with ``axes`` axes of size 1 appended, so that lane values broadcast to vectors."""
    return values.reshape(*values.shape, *[1] * axes) if axes else values


def merged(mask: Array, new: Any, old: Any) -> Any:
    """Returns ``new`` in the lanes where ``mask`` is True and ``old`` in the others.

    If ``old`` is None, returns ``new`` in all lanes. Otherwise both are arrays of shape (blocks, threads,
    *vector), or both are BufferView objects.
    """
    if old is None or new is old or (mask.size == 1 and mask.all()):
        return new
    if isinstance(new, BufferView):
        return _merged_views(mask, new, old)
    return np.where(with_trailing_axes(mask, new.ndim - 2), new, old)


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
