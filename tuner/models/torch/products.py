"""Decompositions of ``addmm``, ``addmv``, ``addbmm`` and ``baddbmm``, for a ``beta`` or ``alpha`` of 0, too.

A NaN or an infinity in a term times 0 reaches the result exactly where it does in PyTorch, which does not
read all of them. It reads the tensor unless ``beta`` is 0. Where ``alpha`` is 0, it reads the factors of
narrow floats, and those of the smallest batches, which it multiplies by loops of its own; other factors go to
a BLAS, which does not read them.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import get_decompositions

from tuner.models.torch.element_types import NARROW

ATEN = torch.ops.aten
BATCH_LOOPS_LIMIT = 400  # multiplications of one product: at::native::bmm_out_or_baddbmm_ of torch 2.13
Scalar = int | float


def sums_with_products(table: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """Returns decompositions of ``addmm``, ``addmv``, ``addbmm`` and ``baddbmm``: operator -> function.

    ``table`` has those of ``addmm`` and ``baddbmm``, and may have that of ``addmv``. They are called unless
    ``alpha`` is 0 and PyTorch leaves out the product, so that its NaN and infinity do not count.
    """
    known = get_decompositions([ATEN.addmv]) | table
    return {
        ATEN.addmm.default: _by_blas(known[ATEN.addmm.default]),
        ATEN.addmv.default: _by_blas(known[ATEN.addmv.default]),
        ATEN.addbmm.default: _sum_of_batch,
        ATEN.baddbmm.default: _of_batches(known[ATEN.baddbmm.default]),
    }


def _by_blas(decomposed: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the decomposition of ``addmm`` or ``addmv``: ``decomposed``; no product if ``alpha`` is 0.

    With narrow floats the product is computed all the same, as by PyTorch.
    """

    def computed(
        x: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
    ) -> torch.Tensor:
        if alpha == 0 and rows.dtype not in NARROW:
            return _without_product(x, beta, (rows.shape[0], *columns.shape[1:]))
        result: torch.Tensor = decomposed(x, rows, columns, beta=beta, alpha=alpha)
        return result

    return computed


def _sum_of_batch(
    x: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Any:
    """Computes ``aten.addbmm``: the products of a batch and their sum as one product."""
    batches, m, k = rows.shape
    rows = rows.transpose(0, 1).reshape(m, batches * k)
    columns = columns.reshape(batches * k, columns.shape[2])
    return ATEN.addmm.default(x, rows, columns, beta=beta, alpha=alpha)


def _of_batches(decomposed: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the decomposition of ``baddbmm``: ``decomposed``, without the products if ``alpha`` is 0.

    Small products and those of narrow floats are computed all the same, as by PyTorch.
    """

    def computed(
        x: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
    ) -> torch.Tensor:
        batches, m, k = rows.shape
        n = columns.shape[2]
        # bf16 is computed: PyTorch's result of larger batches is undefined memory, so any number is right
        if alpha == 0 and rows.dtype not in NARROW and m * n * k >= BATCH_LOOPS_LIMIT:
            return _without_product(x, beta, (batches, m, n))
        result: torch.Tensor = decomposed(x, rows, columns, beta=beta, alpha=alpha)
        return result

    return computed


def _without_product(x: torch.Tensor, beta: Scalar, shape: tuple[int, ...]) -> torch.Tensor:
    if beta == 0:
        return torch.zeros(shape, dtype=x.dtype)
    return (x * beta).expand(shape).clone()
