"""Operations that move elements, as slices, pads and concatenations of static sizes.

torch-mlir 20261001 gives a roll dynamic sizes, which no fusion has, and is wrong for a roll by less than
minus the size; it leaves the elements in place where a pad adds as many as it cuts; it has no ``block_diag``;
of ``fold`` (``col2im``) it makes a scatter, which is not lowered.
"""

from collections.abc import Sequence
from typing import Any

import torch

ATEN = torch.ops.aten
Scalar = bool | int | float


def roll(x: torch.Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> torch.Tensor:
    """Computes ``aten.roll``: moves the last elements to the front, along one dimension after the other.

        torch.roll(x, 2, 0)

    becomes

        torch.cat([x[-2:], x[:-2]])

    ``shifts`` has a number per dimension of ``dims``; without dimensions, x is rolled as one flat row.
    """
    if not x.numel():
        return x.clone()
    if not dims:
        return roll(x.reshape(-1), shifts, (0,)).reshape(x.shape)
    rolled = x
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim] if x.dim() else 1
        first = -shift % size  # the element that comes to the front
        if first:
            after = ATEN.slice.Tensor(rolled, dim, first, size)
            before = ATEN.slice.Tensor(rolled, dim, 0, first)
            rolled = ATEN.cat.default([after, before], dim)
    if rolled is x:
        return x.clone()
    return rolled


def constant_pad(x: torch.Tensor, pad: Sequence[int], value: Scalar = 0) -> Any:
    """Computes ``aten.constant_pad_nd`` where ``pad`` has negative numbers, which remove elements.

    ``pad`` has two numbers per dimension, before and after it, beginning with the last dimension.
    NotImplemented where no number is negative, which torch-mlir lowers rightly, or where more is removed than
    a dimension has.
    """
    if min(pad, default=0) >= 0:
        return NotImplemented  # is left to torch-mlir
    kept = x
    shape = [*x.shape]
    for index, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        dim = x.dim() - 1 - index
        first = max(-before, 0)
        end = x.shape[dim] - max(-after, 0)
        if end < first:
            return NotImplemented  # is refused
        kept = ATEN.slice.Tensor(kept, dim, first, end)
        shape[dim] += before + after
    if not kept.numel() and 0 not in shape:
        return torch.full(shape, value if x.is_floating_point() else int(value), dtype=x.dtype)
    added = [max(size, 0) for size in pad]
    if any(added):
        return ATEN.constant_pad_nd.default(kept, added, value)
    return kept.clone()


def block_diagonal(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Computes ``aten.block_diag``: matrices on a diagonal, zeros elsewhere; a vector is one row."""
    matrices = list(map(torch.atleast_2d, tensors))
    columns = sum(matrix.shape[1] for matrix in matrices)
    rows = []
    before = 0
    for matrix in matrices:
        after = columns - before - matrix.shape[1]
        rows.append(ATEN.constant_pad_nd.default(matrix, [before, after]))
        before += matrix.shape[1]
    return ATEN.cat.default(rows)


def fold(
    x: torch.Tensor,
    size: Sequence[int],
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Any:
    """Computes ``aten.col2im``, the inverse of ``unfold``: sums overlapping windows into an image.

    ``x``: (..., channels * window height * window width, windows); the other arguments: (of rows, of
    columns). Returns (..., channels, height, width); NotImplemented for integers. f16 and bf16 are summed in
    f32.
    """
    if not x.is_floating_point():
        return NotImplemented
    axes = [*zip(size, kernel, dilation, padding, stride, strict=True)]
    counts = [(size + 2 * pad - gap * (taps - 1) - 1) // step + 1 for size, taps, gap, pad, step in axes]
    summable = x if x.dtype in (torch.float32, torch.float64) else x.float()
    windows = summable.reshape(*x.shape[:-2], -1, *kernel, *counts)  # (..., c, kh, kw, rows, columns)
    rows = _overlapped(windows, -4, -2, *axes[0])  # (..., c, kw, height, columns)
    return _overlapped(rows, -3, -1, *axes[1]).to(x.dtype)


def _overlapped(
    x: torch.Tensor, taps_dim: int, dim: int, size: int, taps: int, gap: int, pad: int, step: int
) -> torch.Tensor:
    """Returns windows added up along a dimension, where they begin ``step`` apart.

    Dimension ``taps_dim`` of x has the ``taps`` elements of a window, which are ``gap`` apart; ``dim`` has
    the windows, and becomes their sums: ``size`` elements, after ``pad`` are cut off at the begin.
    """
    later_dims = [0, 0] * (-1 - dim)  # of ``constant_pad_nd``, which begins with the last dimension
    total = None
    for tap in range(taps):
        part = x.select(taps_dim, tap)
        if step > 1:  # zeros between the windows
            apart = ATEN.constant_pad_nd.default(part.unsqueeze(dim), [*later_dims, 0, step - 1])
            part = apart.flatten(dim - 1, dim)
        before = tap * gap - pad
        after = size - before - part.shape[dim]
        if -part.shape[dim] < min(before, after):  # else all of it is padding
            part = ATEN.constant_pad_nd.default(part, [*later_dims, before, after])
            total = part if total is None else total + part
    if total is None:
        shape = [*x.select(taps, 0).shape]
        shape[dim] = size
        return torch.zeros(shape, dtype=x.dtype)
    return total
