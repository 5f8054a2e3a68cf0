"""Lanes and what they hold: the blocks that run together, memrefs per lane, element types as numpy types."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tuner.core.numpy_types import DTYPES, DType
from tuner.mlir.bindings import Type, ir

Array: TypeAlias = npt.NDArray[Any]
BOOL = DTYPES["i1"]
INDEX = DTYPES["index"]
Sizes3 = tuple[int, int, int]  # x, y, z
SUBGROUP = 32  # lanes of a warp


class UnknownTypeError(ValueError):
    """An MLIR type for which the interpreter has no numpy type."""


@dataclass(frozen=True)
class ElementType:
    """The numpy form of an MLIR number or vector type: an element of a memref, or a value of one lane."""

    dtype: DType
    shape: tuple[int, ...] = ()  # shape of the vector; () for a number

    @property
    def name(self) -> str:
        """Returns the MLIR name of the number's (a vector's elements') type: ``f32``; ``i64`` for index."""
        return next(name for name, dtype in DTYPES.items() if dtype == self.dtype)

    @cached_property
    def offsets_bytes(self) -> Array:
        """Returns the byte offset of each number in an element; LLVM pads rows to powers of two bytes."""
        offsets = np.zeros(self.shape, np.int64)
        for axis, size in enumerate(self.shape):
            inner = len(self.shape) - 1 - axis
            step = self._row_step(axis) if inner else self.dtype.itemsize
            offsets += with_trailing_axes(np.arange(size) * step, inner)
        return offsets

    @cached_property
    def size_bytes(self) -> int:
        """Returns the distance in bytes between consecutive elements of a memref, with a vector's padding."""
        if self.shape:
            return self._row_step(-1)
        return self.dtype.itemsize

    def _row_step(self, axis: int) -> int:
        # LLVM's size of a one-dimensional vector: its bytes, rounded up to a power of two
        row_bytes = 1 << max(self.shape[-1] * self.dtype.itemsize - 1, 0).bit_length()
        return math.prod(self.shape[axis + 1 : -1]) * row_bytes


def element_type(type_: Type) -> ElementType:
    """Returns the numpy form of an MLIR number or vector type.

    Raises UnknownTypeError for other types, among them scalable vectors.
    """
    if isinstance(type_, ir.VectorType):
        if type_.scalable:
            raise UnknownTypeError(str(type_))
        return ElementType(dtype_of(type_.element_type), tuple(type_.shape))
    return ElementType(dtype_of(type_))


def dtype_of(type_: Type) -> DType:
    """Returns the numpy dtype of an MLIR number type. Raises UnknownTypeError if there is none."""
    dtype = DTYPES.get(str(type_))
    if dtype is None:
        raise UnknownTypeError(str(type_))
    return dtype


def signed(values: Array) -> Array:
    """Returns integers as signed ones: i1 (numpy bool) becomes int8, where true is -1."""
    if values.dtype == BOOL:
        return -values.view(np.int8)
    return values


def unsigned(values: Array) -> Array:
    """Returns the same bits as unsigned integers of the same width; i1 (numpy bool) becomes uint8, 0 or 1."""
    if values.dtype == BOOL:
        return values.view(np.uint8)
    return values.view(f"u{values.dtype.itemsize}")


def to_integer(values: Array, dtype: DType) -> Array:
    """Truncates or extends integers to another type; for i1 (numpy bool) the lowest bit remains."""
    if dtype == BOOL:
        return (values & 1).astype(bool)
    return values.astype(dtype, copy=False)


# The lanes that run together: all threads of some blocks, as arrays of shape (blocks, threads).
#
# The size of an axis is 1 where a value is the same in all blocks, or in all threads of a block.


@dataclass(frozen=True, eq=False)
class LaneGrid:
    """The blocks of a launch that the interpreter runs together, and the sizes of the grid and of a block.

    ``numbers`` are the linear numbers of these blocks in the grid, x fastest.
    """

    grid: Sizes3
    block: Sizes3
    numbers: Array

    @property
    def count(self) -> int:
        """Returns the number of blocks that run together."""
        return len(self.numbers)

    @property
    def threads(self) -> int:
        """Returns the number of threads of a block."""
        return math.prod(self.block)

    @property
    def shape(self) -> tuple[int, int]:
        """Returns the shape of an array with a number per lane: (blocks, threads)."""
        return self.count, self.threads

    @cached_property
    def linear_thread(self) -> Array:
        """Returns the linear index of each thread in its block, x fastest, of shape (1, threads)."""
        return np.arange(self.threads, dtype=INDEX)[None, :]

    @cached_property
    def linear_block(self) -> Array:
        """Returns the linear index in the grid of each block that runs, x fastest, of shape (blocks, 1)."""
        return self.numbers[:, None]

    def thread_id(self, axis: int) -> Array:
        """Returns threadIdx along ``axis`` (0: x, 1: y, 2: z) of each thread, of shape (1, threads)."""
        return self.linear_thread // math.prod(self.block[:axis]) % self.block[axis]

    def block_id(self, axis: int) -> Array:
        """Returns blockIdx along ``axis`` (0: x, 1: y, 2: z) of each running block, of shape (blocks, 1)."""
        return self.linear_block // math.prod(self.grid[:axis]) % self.grid[axis]

    def describe(self, block: int, thread: int) -> str:
        """Returns "block (x, y, z), thread (x, y, z)" for a running block's index and a thread's number."""
        indices = (
            ", ".join(str(linear // math.prod(sizes[:axis]) % sizes[axis]) for axis in range(3))
            for linear, sizes in ((int(self.numbers[block]), self.grid), (thread, self.block))
        )
        return "block ({}), thread ({})".format(*indices)


def uniform(value: int) -> Array:
    """Returns ``value`` as an int64 array of shape (1, 1), which broadcasts to all lanes."""
    return np.full((1, 1), value, INDEX)


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
        """Returns a contiguous row-major memref; ``owner`` is an object that keeps the memory alive."""
        owners = () if owner is None else (owner,)
        end = address + size_bytes
        return cls(address, address, address, end, tuple(sizes), row_major(sizes), owners)

    def at(self, indices: Sequence[Array], item_bytes: int) -> Array:
        """Returns each lane's byte address of the element at ``indices``; bounds are not checked.

        ``item_bytes``: distance of consecutive elements. An index may have further axes after (blocks,
        threads): those of a vector of elements.
        """
        axes = max((index.ndim for index in indices), default=2) - 2
        address = with_trailing_axes(self.address, axes)
        for index, stride in zip(indices, self.strides, strict=True):
            steps = with_trailing_axes(index, axes + 2 - index.ndim) * with_trailing_axes(stride, axes)
            address = address + steps * item_bytes
        return address

    def shifted(self, address: Array, sizes: Sequence[Array], strides: Sequence[Array]) -> "BufferView":
        """Returns a memref on the same bytes with another address of its first element, sizes and strides."""
        return replace(self, address=address, sizes=tuple(sizes), strides=tuple(strides))


def row_major(sizes: Sequence[Array]) -> tuple[Array, ...]:
    """Returns the strides, in elements, of a contiguous row-major memref; one array per dimension."""
    strides = []
    step = uniform(1)
    for size in reversed(sizes):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def with_trailing_axes(values: Array, axes: int) -> Array:
    """Returns ``values`` with ``axes`` axes of size 1 appended, so that lane values broadcast to vectors."""
    if axes:
        return values.reshape(*values.shape, *[1] * axes)
    return values


def merged(mask: Array, new: Any, old: Any) -> Any:
    """Returns ``new`` in the lanes of ``mask`` and ``old`` in the others; both are arrays or BufferViews.

    ``old`` is None where no lane has a value yet: then ``new`` is returned for all lanes.
    """
    if old is None or new is old or (mask.size == 1 and mask.all()):
        return new
    if not isinstance(new, BufferView):
        return np.where(with_trailing_axes(mask, new.ndim - 2), new, old)

    def chosen(if_new: Array, if_old: Array) -> Array:
        return np.where(mask, if_new, if_old).astype(INDEX, copy=False)

    return BufferView(
        chosen(new.address, old.address),
        chosen(new.origin, old.origin),
        chosen(new.low, old.low),
        chosen(new.high, old.high),
        tuple(map(chosen, new.sizes, old.sizes)),
        tuple(map(chosen, new.strides, old.strides)),
        tuple({id(owner): owner for owner in (*new.owners, *old.owners)}.values()),
    )
