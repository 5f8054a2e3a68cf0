"""Writes at positions that come with a call: rows that are copied, and sums.

          x.index_copy(1, at, rows)  # x: 2x16x8, at has three positions
        becomes
          rows of 8 of x, 32x8, written at six positions by one operator, and seen as 2x16x8 again

A position out of range becomes -1, which the write of rows refuses. A sum at few positions is a comparison of
each position with all numbers of a dimension; many sums would take longer than PyTorch's and stay PyTorch's:

          x.index_add(0, at, rows)  # at has one position
        becomes
          torch.where(numbers == at[0], x + rows[0], x)  # numbers: a column of 0, 1, ... up to the size of x

torch-mlir 20261001 makes operations of them of which it takes negative positions as they are.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree

from tuner.models.torch.element_types import widened

ATEN = torch.ops.aten
ROW_WRITE = ATEN._index_put_impl.default  # noqa: SLF001 - no user's code has it, and torch-mlir lowers it
POSITION_TYPES = (torch.int32, torch.int64)
MOST_IN_ORDER = 8  # sums at positions that are added one after the other
# Of f32, on one thread: PyTorch's call next to a program takes 5 to 10 us, as these do.
MOST_SELECTED = 1 << 17  # elements, once for each position
LEAST_ROW = 16  # elements at one position of a large x, so that numbers of positions are little memory
LARGEST_SIZE = 2**31 - 1  # positions are compared as 32 bits, which is half as much memory


def position_writes() -> dict[Any, Callable[..., Any]]:
    """Returns decompositions of operators that write at positions, such as ``scatter``: operator -> function.

    A function that returns NotImplemented leaves its operator in the graph.
    """
    written: dict[Any, Callable[..., Any]] = {
        ATEN.index_add.default: _index_add,
        ATEN.index_copy.default: _index_copy,
        ATEN.index_fill.int_Scalar: _index_fill,
        ATEN.index_put.default: _index_put,
        ATEN.scatter.src: _scatter,
        ATEN.scatter.value: _scatter,
        ATEN.scatter_add.default: _scatter_add,
        ATEN.scatter.reduce: _left,
        ATEN.scatter.value_reduce: _left,
        ATEN.scatter_reduce.two: _left,
    }
    return {operator: _unless_empty(write) for operator, write in written.items()}


def _unless_empty(write: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a write that returns a copy of x if an operand is empty, for which torch-mlir divides by zero.

    NotImplemented for an x that is empty or complex, and for dynamic sizes.
    """

    def computed(x: torch.Tensor, *arguments: Any, **keywords: Any) -> Any:
        tensors = [leaf for leaf in _pytree.tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]
        if any(tensor.numel() == 0 for tensor in tensors):
            return x.clone()
        if not x.numel() or x.is_complex() or not all(map(_is_static, (x, *tensors))):
            return NotImplemented
        return write(x, *arguments, **keywords)

    return computed


def _is_static(x: torch.Tensor) -> bool:
    return all(isinstance(size, int) for size in x.shape)


def _left(*_: Any, **__: Any) -> Any:
    return NotImplemented


def _index_copy(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> Any:
    if x.dim() == 0 or index.dim() != 1:
        return NotImplemented
    return _with_rows(x, dim % x.dim(), index.long(), source)


def _index_add(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, alpha: float = 1
) -> Any:
    if x.dim() == 0 or index.dim() != 1:
        return NotImplemented
    at = dim % x.dim()
    rows = widened(source) if alpha == 1 else widened(source) * alpha
    return _rounded(_with_sums(widened(x), at, _checked(index, x.shape[at]), rows), x)


def _index_fill(x: torch.Tensor, dim: int, index: torch.Tensor, value: float) -> Any:
    if x.dim() == 0:
        return NotImplemented
    at = dim % x.dim()
    indices = [None] * at + [index.reshape(-1)]
    return _index_put(x, indices, torch.full((), value, dtype=x.dtype))


def _index_put(
    x: torch.Tensor, indices: Sequence[torch.Tensor | None], values: torch.Tensor, accumulate: bool = False
) -> Any:
    """Writes values at positions of some dimensions, taken together as one: rows, or sums if ``accumulate``.

    NotImplemented, so that torch-mlir lowers it, for positions of other types than integers, for many sums,
    and for masks that are not alone or write more than one number.
    """
    dims = []
    at = []
    for dim, index in enumerate(indices):
        if index is not None:
            dims.append(dim)
            at.append(index)
    if not at:
        return NotImplemented
    if at[0].dtype is torch.bool and len(at) == 1 and values.numel() == 1 and not accumulate:
        mask = at[0].reshape(*at[0].shape, *[1] * (x.dim() - dims[0] - at[0].dim()))
        return torch.where(mask, values.reshape(()), x)
    if any(index.dtype not in POSITION_TYPES for index in at):
        return NotImplemented
    first = dims[0]
    if dims[-1] - first >= len(dims):  # PyTorch has the dimensions of the positions first, then
        first = 0
    adjacent = list(range(first, first + len(dims)))
    moved = x.movedim(dims, adjacent)
    before = moved.shape[:first]
    after = moved.shape[first + len(dims) :]
    sizes = moved.shape[first : first + len(dims)]
    written_at = _with_rows
    position = _together(at, sizes)
    if accumulate:
        written_at = _with_sums
        position = _checked_together(at, sizes)
    rows = values.expand(*before, *position.shape, *after).reshape(*before, -1, *after)
    written = written_at(moved.flatten(first, adjacent[-1]), first, position.reshape(-1), rows)
    if written is NotImplemented:
        return NotImplemented
    return written.reshape(moved.shape).movedim(adjacent, dims)


def _together(at: Sequence[torch.Tensor], sizes: Sequence[int]) -> torch.Tensor:
    """Returns positions of several dimensions as those of one; -1 where one of them is out of range."""
    position = torch.zeros((), dtype=torch.int64)
    is_inside = torch.ones((), dtype=torch.bool)
    for index, size in zip(at, sizes, strict=True):
        place = torch.where(index < 0, index.long() + size, index.long())
        is_inside = is_inside & _is_inside(place, size)
        position = position * size + place
    return torch.where(is_inside, position, -1)


def _checked_together(at: Sequence[torch.Tensor], sizes: Sequence[int]) -> torch.Tensor:
    position = torch.zeros((), dtype=torch.int64)
    for index, size in zip(at, sizes, strict=True):
        position = position * size + _checked(index, size, counts_from_end=True)
    return position


def _scatter(x: torch.Tensor, dim: int, index: torch.Tensor, source: Any) -> Any:
    """Writes elements along a dimension, each at a position of its own: rows of one element."""
    if x.dim() == 0 or index.dim() != x.dim():
        return NotImplemented
    if not isinstance(source, torch.Tensor):
        source = torch.full((), source, dtype=x.dtype).expand(index.shape)
    along = dim % x.dim()
    position = torch.zeros((), dtype=torch.int64)
    elements = source
    for axis, count in enumerate(index.shape):
        place = index.long() if axis == along else _aligned(torch.arange(count), axis, x.dim())
        position = position * x.shape[axis] + place
        elements = elements.narrow(axis, 0, count)
    position = torch.where(_is_inside(index, x.shape[along]), position, -1).reshape(-1)
    return _with_rows(x.reshape(-1), 0, position, elements.reshape(-1)).reshape(x.shape)


def _scatter_add(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> Any:
    return _rounded(_with_added_elements(widened(x), dim, index, widened(source)), x)


def _rounded(written: Any, x: torch.Tensor) -> Any:
    """Returns complete sums in the type of x, as eager mode rounds them in most shapes.

    NotImplemented stays.
    """
    if written is NotImplemented:
        return NotImplemented
    return written.to(x.dtype)


def _with_added_elements(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> Any:
    """Adds elements of ``source`` along a dimension, each at a position of its own."""
    if x.dim() == 0 or index.dim() != x.dim():
        return NotImplemented
    along = dim % x.dim()
    if not _is_short(x, along, index.shape[along]):
        return NotImplemented
    at = _checked(index, x.shape[along])
    elements = source
    padding: list[int] = []
    for axis, size in enumerate(index.shape):
        elements = elements.narrow(axis, 0, size)
        added = 0 if axis == along else x.shape[axis] - size
        padding = [0, added, *padding]
    if any(padding):
        at = torch.nn.functional.pad(at, padding, value=-1)
        elements = torch.nn.functional.pad(elements, padding)
    return _added_in_order(x, along, at, elements)


def _with_sums(x: torch.Tensor, dim: int, at: torch.Tensor, rows: torch.Tensor) -> Any:
    """Adds rows along a dimension of x at positions, each of several rows of one position.

    NotImplemented for many positions.
    """
    if _is_short(x, dim, at.shape[0]):
        return _added_in_order(x, dim, _aligned(at, dim, x.dim()), rows)
    return NotImplemented


def _with_rows(x: torch.Tensor, dim: int, at: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Writes rows along a dimension of x at positions; the last of equal positions is kept.

    ``at``: int64, in range, else the program fails: a row of x as a matrix is named by all dimensions up to
    ``dim``.
    """
    size = x.shape[dim]
    before = math.prod(x.shape[:dim])
    width = math.prod(x.shape[dim + 1 :])
    position = at
    if before > 1:
        rows_before = torch.arange(before).unsqueeze(1) * size
        position = torch.where(_is_inside(at, size), rows_before + at, -1)
    given = rows.expand(*x.shape[:dim], at.shape[0], *x.shape[dim + 1 :])
    written = ROW_WRITE(x.reshape(-1, width), [position.reshape(-1)], given.reshape(-1, width))
    return written.reshape(x.shape)


def _is_inside(position: torch.Tensor, size: int) -> torch.Tensor:
    return (position >= 0) & (position < size)


def _is_short(x: torch.Tensor, dim: int, count: int) -> bool:
    """Returns whether ``count`` positions should be written one by one, each by a pass over all of x."""
    size = x.shape[dim]
    if count * x.numel() <= MOST_SELECTED:
        return count <= MOST_IN_ORDER
    return count == 1 and size * LEAST_ROW <= x.numel() and size <= LARGEST_SIZE


def _added_in_order(x: torch.Tensor, dim: int, at: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    numbers = _aligned(torch.arange(x.shape[dim], dtype=torch.int32), dim, x.dim())
    at = at.to(torch.int32)
    for number in range(at.shape[dim]):
        row = rows.narrow(dim, number, 1)
        row = x | row if x.dtype is torch.bool else x + row
        x = torch.where(numbers == at.narrow(dim, number, 1), row, x)
    return x


def _aligned(numbers: torch.Tensor, dim: int, rank: int) -> torch.Tensor:
    """Returns a vector as a tensor of ``rank`` dimensions, of which ``dim`` is the vector's."""
    return numbers.reshape([*[1] * dim, -1, *[1] * (rank - 1 - dim)])


def _checked(at: torch.Tensor, size: int, *, counts_from_end: bool = False) -> torch.Tensor:
    """Returns positions as int64; one out of range is an error when it is run, as of a table's index.

    ``counts_from_end``: whether negative positions count from the end.
    """
    position = at.long().reshape(-1)
    if counts_from_end:
        position = torch.where(position < 0, position + size, position)
    return torch.index_select(torch.arange(size), 0, position).reshape(at.shape)
