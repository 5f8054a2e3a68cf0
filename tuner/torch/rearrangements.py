"""Operations that move elements, as slices, pads and concatenations of static sizes.

torch-mlir 20261001 gives a roll dynamic sizes, which no fusion has, and is wrong for a roll by less than
minus the size; it leaves the elements in place where a pad adds as many as it cuts; it has no ``block_diag``.
"""

from collections.abc import Sequence
from typing import Any

import torch

from tuner.core.errors import UsageError

ATEN = torch.ops.aten
Scalar = bool | int | float


def roll(x: torch.Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> torch.Tensor:
    """Returns x with its last elements before the first ones, along one dimension after the other.

      torch.roll(x, 2, 0)
    becomes
      torch.cat([x[-2:], x[:-2]])

    Without dimensions, all elements are one row.
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
    return x.clone() if rolled is x else rolled


def constant_pad(x: torch.Tensor, pad: Sequence[int], value: Scalar = 0) -> Any:
    """Returns x without the elements that negative numbers cut, then with ``value`` around it.

    ``pad`` has two numbers per dimension, before and after it, beginning with the last dimension.
    """
    if min(pad, default=0) >= 0:
        return NotImplemented  # is left to torch-mlir
    kept = x
    shape = [*x.shape]
    for number, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        dim = x.dim() - 1 - number
        first = max(-before, 0)
        end = x.shape[dim] - max(-after, 0)
        if end < first:
            raise UsageError(
                f"{ATEN.constant_pad_nd.default} cuts more than the {x.shape[dim]} of a dimension"
            )
        kept = ATEN.slice.Tensor(kept, dim, first, end)
        shape[dim] += before + after
    if not kept.numel() and 0 not in shape:
        return torch.full(shape, value if x.is_floating_point() else int(value), dtype=x.dtype)
    added = [max(size, 0) for size in pad]
    return ATEN.constant_pad_nd.default(kept, added, value) if any(added) else kept.clone()


def block_diagonal(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Returns the matrix that has matrices on its diagonal; a vector is one row."""
    matrices = [torch.atleast_2d(tensor) for tensor in tensors]
    columns = sum(matrix.shape[1] for matrix in matrices)
    rows = []
    before = 0
    for matrix in matrices:
        after = columns - before - matrix.shape[1]
        rows.append(ATEN.constant_pad_nd.default(matrix, [before, after]))
        before += matrix.shape[1]
    return ATEN.cat.default(rows)
