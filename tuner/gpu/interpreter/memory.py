"""Loads, stores and atomic updates of all lanes at once, at addresses that are checked before."""

from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace

import numpy as np

from tuner.core.numpy_types import DType
from tuner.gpu.interpreter.decoding import LaneFrame, require
from tuner.gpu.interpreter.lanes import BOOL, Array, BufferView, ElementType, with_trailing_axes

# The memory of this process as arrays of numbers, read and written at addresses that were checked before.

FIRST = 16  # address of element 0: no array may begin at address 0; a multiple of every element's size
SPAN_BYTES = 1 << 47  # user addresses of x86-64
# alignment of allocations, as with cudaMalloc: CUDA programming guide, device memory accesses
ALIGN_BYTES = 256
POISON = 0xFF  # value of uninitialized bytes: NaN as a float, -1 as an integer
Update = Callable[[Array, Array], Array]  # from the old values and the operands to the new values
OUTSIDE = "found an address outside of its buffer"


def read(dtype: DType, addresses: Array) -> Array:
    """Returns the numbers at unchecked byte addresses of this process, multiples of the type's size."""
    numbers: Array = _numbers(dtype)[(addresses - FIRST) // dtype.itemsize]
    return numbers != 0 if dtype == BOOL else numbers


@cache
def _numbers(dtype: DType) -> Array:
    size = dtype.itemsize
    interface = {
        "shape": (SPAN_BYTES // size,),
        "typestr": f"<u{size}" if size > 1 else "|u1",
        "data": (FIRST, False),
        "version": 3,
    }
    whole = np.asarray(SimpleNamespace(__array_interface__=interface))
    if dtype == BOOL:
        return whole
    return whole.view(dtype)


def write(dtype: DType, addresses: Array, values: Array) -> None:
    """Stores ``values`` at unchecked byte addresses; where addresses are equal, the last value remains."""
    _numbers(dtype)[(addresses - FIRST) // dtype.itemsize] = values


def allocate(size_bytes: int) -> tuple[int, Array]:
    """Allocates bytes of POISON; returns (address, a multiple of 256; the array that owns the memory)."""
    memory = np.full(size_bytes + ALIGN_BYTES, POISON, np.uint8)
    return memory.ctypes.data + -memory.ctypes.data % ALIGN_BYTES, memory


def check_indices(frame: LaneFrame, where: str, view: BufferView, indices: Sequence[Array]) -> None:
    """Raises CandidateError(RUN) if an active lane's index is negative or not below its dimension's size."""
    for axis, (index, size) in enumerate(zip(indices, view.sizes, strict=True)):
        inside = (index >= 0) & (index < size)
        if not inside.all():
            _check_index(frame, where, axis, index, size, inside)


def _check_index(frame: LaneFrame, where: str, axis: int, index: Array, size: Array, inside: Array) -> None:
    def message(lane: tuple[int, ...]) -> str:
        indices = np.broadcast_to(index, inside.shape)
        sizes = np.broadcast_to(size, inside.shape)
        return f"found index {indices[lane]} of dimension {axis}, allowed 0 to {sizes[lane] - 1},"

    require(inside, frame, where, message)


def element_addresses(
    frame: LaneFrame, where: str, view: BufferView, element: ElementType, indices: Sequence[Array]
) -> Array:
    """Returns the byte address of the memref element at ``indices`` in each lane, after checking it.

    Raises CandidateError(RUN), naming the operation ``where``, if an active lane's index is out of bounds, or
    its address is outside the buffer or misaligned.
    """
    check_indices(frame, where, view, indices)
    addresses = view.at(indices, element.size_bytes)
    align_bytes = element.dtype.itemsize
    require(_is_inside(view, addresses, element.size_bytes), frame, where, OUTSIDE)
    if align_bytes > 1:
        is_aligned = addresses % align_bytes == 0
        require(is_aligned, frame, where, f"found an address that is not a multiple of {align_bytes}")
    return addresses


def _is_inside(view: BufferView, addresses: Array, size_bytes: int) -> Array:
    axes = addresses.ndim - 2
    inside: Array = (addresses >= with_trailing_axes(view.low, axes)) & (
        addresses + size_bytes <= with_trailing_axes(view.high, axes)
    )
    return inside


def load_element(
    frame: LaneFrame, where: str, view: BufferView, element: ElementType, indices: Sequence[Array]
) -> Array:
    """Returns the element at ``indices`` in each lane, of shape (blocks, threads, *vector).

    Inactive lanes get an arbitrary value. Raises CandidateError(RUN), naming the operation ``where``, for an
    index out of bounds and for an address that is misaligned or outside of the buffer.
    """
    addresses = element_addresses(frame, where, view, element, indices)
    active = frame.active(addresses.shape)
    if not active.all():  # inactive lanes read at an active lane's address
        addresses = np.where(active, addresses, addresses[active][0])
    return read(element.dtype, with_trailing_axes(addresses, len(element.shape)) + element.offsets_bytes)


def store_element(
    frame: LaneFrame,
    where: str,
    view: BufferView,
    element: ElementType,
    indices: Sequence[Array],
    values: Array,
) -> None:
    """Stores one element per active lane; where lanes store at the same address, the last lane's value stays.

    Raises CandidateError(RUN), naming the operation ``where``, for an index out of bounds and for an address
    that is misaligned or outside of the buffer.
    """
    addresses = element_addresses(frame, where, view, element, indices)
    axes = len(element.shape)
    mask = with_trailing_axes(frame.mask, axes)
    _write_where(element, with_trailing_axes(addresses, axes) + element.offsets_bytes, mask, values)


def _write_where(element: ElementType, addresses: Array, wanted: Array, values: Array) -> None:
    shape = np.broadcast_shapes(addresses.shape, values.shape, wanted.shape)
    chosen, targets, values = (np.broadcast_to(array, shape) for array in (wanted, addresses, values))
    write(element.dtype, targets[chosen], values[chosen])


def load_where(
    frame: LaneFrame, where: str, view: BufferView, element: ElementType, addresses: Array, wanted: Array
) -> Array:
    """Returns the numbers at ``addresses`` in active lanes where the mask ``wanted`` is True, 0 elsewhere.

    Raises CandidateError(RUN) for such an address that is misaligned or outside the bytes of ``view``.
    """
    require_bytes_where(frame, where, view, element, addresses, wanted)
    shape = np.broadcast_shapes(addresses.shape, wanted.shape)
    chosen = np.broadcast_to(frame.active(shape) & wanted, shape)
    numbers = np.zeros(shape, element.dtype)
    numbers[chosen] = read(element.dtype, np.broadcast_to(addresses, shape)[chosen])
    return numbers


def store_where(
    frame: LaneFrame,
    where: str,
    view: BufferView,
    element: ElementType,
    addresses: Array,
    wanted: Array,
    values: Array,
) -> None:
    """Stores ``values`` at ``addresses`` in active lanes where the mask ``wanted`` is True.

    Raises CandidateError(RUN) for such an address that is misaligned or outside the bytes of ``view``.
    """
    require_bytes_where(frame, where, view, element, addresses, wanted)
    _write_where(element, addresses, with_trailing_axes(frame.mask, addresses.ndim - 2) & wanted, values)


def require_bytes_where(
    frame: LaneFrame, where: str, view: BufferView, element: ElementType, addresses: Array, wanted: Array
) -> None:
    """Checks ``addresses`` in active lanes where the mask ``wanted`` is True; accesses nothing.

    Raises CandidateError(RUN) for an address that is misaligned or outside the bytes of ``view``.
    """
    size = element.dtype.itemsize
    require(_is_inside(view, addresses, size) | ~wanted, frame, where, OUTSIDE)
    require((addresses % size == 0) | ~wanted, frame, where, f"found no multiple of {size}")


def update(
    frame: LaneFrame, element: ElementType, addresses: Array, values: Array, function: Update
) -> Array:
    """Replaces the number at each active lane's address by ``function(number, value)``.

    Addresses are not checked. Lanes with equal addresses are updated one after another. Returns, per lane,
    the number before its update; 0 in inactive lanes.
    """
    shape = np.broadcast_shapes(addresses.shape, values.shape, frame.mask.shape, frame.grid.shape)
    chosen = np.broadcast_to(frame.mask, shape)
    targets = np.broadcast_to(addresses, shape)[chosen]
    operands = np.broadcast_to(values, shape)[chosen]
    before = np.zeros(shape, element.dtype)
    olds = np.zeros(targets.shape, element.dtype)
    for group in groups_without_conflicts(targets):
        olds[group] = read(element.dtype, targets[group])
        write(element.dtype, targets[group], function(olds[group], operands[group]))
    before[chosen] = olds
    return before


def groups_without_conflicts(targets: Array) -> list[Array]:
    """Returns groups of indices into ``targets``, a list of addresses; within a group, all addresses differ.

    Of equal addresses, the first is in the first group, the second in the second group, and so on.
    """
    order = np.argsort(targets, kind="stable")
    ordered = targets[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sizes = np.diff(np.r_[starts, len(ordered)])
    rank = np.arange(len(ordered)) - np.repeat(starts, sizes)
    by_rank = np.argsort(rank, kind="stable")
    ends = np.cumsum(np.bincount(rank))[:-1]
    return [order[group] for group in np.split(by_rank, ends)]
