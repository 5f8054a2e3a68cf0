"""Sums, means, cumulative sums and indices of extrema, by operations that have a schedule.

In torch-mlir 20261001 cumulative sums become operations of a dialect that MLIR does not have; sums over
dimensions that are not adjacent have no schedule; indices of extrema skip NaN. Sums, means and norms of bf16
and f16 are computed in that type, where sums of 512 numbers lose most of their bits; PyTorch computes these
in f32 and rounds once.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from tuner.models.torch.element_types import NARROW, computed_in_f32, widened

ATEN = torch.ops.aten
SOFTMAXES = (ATEN.softmax.int, ATEN._softmax.default, ATEN.log_softmax.int, ATEN._log_softmax.default)  # noqa: SLF001
IN_F32 = (ATEN.mean.default, ATEN.sum.default, ATEN.linalg_vector_norm.default)
BY_RUNS = (ATEN.mean.dim, ATEN.sum.dim_IntList, ATEN.amax.default, ATEN.amin.default)
PREFIX_BLOCK = 16  # so many elements are summed by a triangle of additions: a vector of f32


def reductions(table: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """Returns a table operator -> function for ``run_decompositions``: sums, means, extrema and softmaxes.

    A function that returns NotImplemented leaves its operator to torch-mlir. ``table``: torch-mlir's own.
    """
    return {
        **dict(zip(IN_F32, map(computed_in_f32, IN_F32), strict=True)),
        **dict(zip(BY_RUNS, map(_by_runs, BY_RUNS), strict=True)),
        **{softmax: _of_scalars(softmax, table.get(softmax)) for softmax in SOFTMAXES},
        ATEN.cumsum.default: _cumulative_sum,
        ATEN.cumprod.default: _cumulative_product,
        ATEN.argmax.default: lambda x, dim=None, keepdim=False: _index_of(torch.amax, x, dim, keepdim),
        ATEN.argmin.default: lambda x, dim=None, keepdim=False: _index_of(torch.amin, x, dim, keepdim),
        ATEN.max.dim: lambda x, dim, keepdim=False: _with_index(torch.amax, x, dim, keepdim),
        ATEN.min.dim: lambda x, dim, keepdim=False: _with_index(torch.amin, x, dim, keepdim),
    }


def _by_runs(reduction: Any) -> Callable[..., Any]:
    """Returns a reduction that reduces each run of adjacent dimensions on its own, the last one first.

    A schedule is for one run. Sums of narrow floats are of f32, and rounded once. NotImplemented for one run
    of another type, and for integers.
    """

    def computed(x: torch.Tensor, dim: Any = (), keepdim: bool = False, **keywords: Any) -> Any:
        narrow = NotImplemented
        if reduction in (ATEN.mean.dim, ATEN.sum.dim_IntList):
            narrow = computed_in_f32(reduction)(x, dim, keepdim, **keywords)
        dims = sorted(number % max(x.dim(), 1) for number in dim or ())
        first = [number for number in dims if number - 1 not in dims]
        if narrow is not NotImplemented or len(first) < 2 or not x.is_floating_point():
            return narrow
        for start in reversed(first):
            run = [number for number in dims if number >= start]
            dims = [number for number in dims if number < start]
            x = reduction(x, run, keepdim, **keywords)
        return x

    return computed


def _of_scalars(softmax: Any, decomposed: Callable[..., Any] | None) -> Callable[..., Any]:
    """Returns the decomposition of a softmax of 0-d tensors, on which torch-mlir hangs.

    Other tensors are left to ``decomposed``, or to torch-mlir if that is None.
    """

    def computed(x: torch.Tensor, dim: int, *arguments: Any, **keywords: Any) -> Any:
        if x.dim():
            if decomposed is None:
                return NotImplemented
            return decomposed(x, dim, *arguments, **keywords)
        return softmax(x.reshape(1), 0, *arguments, **keywords).reshape(())

    return computed


def _cumulative_sum(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Sums each prefix of a block on its own, by operations that become vectors, then adds earlier blocks.

    Sums of narrow floats are of f32, and rounded once, as PyTorch's.
    """
    sum_type = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    if x.dim() == 0:
        return x.to(sum_type)
    at = dim % x.dim()
    return _prefix_sums(widened(x.to(sum_type)).movedim(at, -1)).movedim(-1, at).contiguous().to(sum_type)


def _cumulative_product(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    """Multiplies in order, f32 in f64 and narrow floats in f32, as PyTorch: no step overflows earlier.

    NotImplemented for a tensor that has the type to compute in.
    """
    result_type = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    if x.dim() == 0:
        return x.to(result_type)
    wider = {torch.float32: torch.float64, **dict.fromkeys(NARROW, torch.float32)}.get(
        result_type, result_type
    )
    if x.dtype is wider:
        return NotImplemented
    return ATEN.cumprod.default(x.to(result_type).to(wider), dim).to(result_type)


def _prefix_sums(x: torch.Tensor) -> torch.Tensor:
    size = x.shape[-1]
    sum_type = x.dtype
    if size > PREFIX_BLOCK:
        blocks = -(-size // PREFIX_BLOCK)
        padded = torch.nn.functional.pad(x, (0, blocks * PREFIX_BLOCK - size))
        inside = _prefix_sums(padded.reshape(*x.shape[:-1], blocks, PREFIX_BLOCK))
        before = torch.nn.functional.pad(_prefix_sums(inside[..., :-1, -1]), (1, 0))
        sums = inside + before.unsqueeze(-1)
        return sums.reshape(*x.shape[:-1], blocks * PREFIX_BLOCK)[..., :size]
    steps = torch.arange(size)
    is_before = steps[:, None] <= steps[None, :]
    zero = torch.zeros((), dtype=sum_type)
    # in order, a vector of prefixes at a time: the sums are of rows, not of the last dimension
    return torch.where(is_before, x.unsqueeze(-1), zero).sum(-2, dtype=sum_type)


def _index_of(extremum: Any, x: torch.Tensor, dim: int | None, keepdim: bool) -> Any:
    """Returns the index of the first NaN, else of the first extremum; torch-mlir skips NaN.

    NotImplemented for integers and 0-d tensors. ``dim`` None: of all elements in a row.
    """
    if not x.is_floating_point() or x.dim() == 0:
        return NotImplemented
    if dim is None:
        index = _index_of(extremum, x.reshape(-1), 0, False)
        if keepdim:
            return index.reshape([1] * x.dim())
        return index
    at = dim % x.dim()
    is_found = (x == extremum(x, at, keepdim=True)) | (x != x)  # an extremum of NaN equals nothing
    shape = [-1] + [1] * (x.dim() - 1 - at)
    numbers = torch.arange(x.shape[at]).reshape(shape)
    return torch.where(is_found, numbers, x.shape[at]).amin(at, keepdim=keepdim)


def _with_index(extremum: Any, x: torch.Tensor, dim: int, keepdim: bool) -> Any:
    index = _index_of(extremum, x, dim, keepdim)
    if index is NotImplemented:
        return NotImplemented
    return (extremum(x, dim, keepdim=keepdim), index)
