"""Operations of PyTorch that torch-mlir would turn into something else, written by simpler ones.

torch-mlir 20261001 exports GELU by tanh with 0.797724 for the square root of 2 / pi, which is 0.797885;
clamp, hardtanh, hardsigmoid, minimum and maximum lose NaN; a reciprocal asserts that no element is zero;
cumulative sums become operations of a dialect that MLIR does not have. Of bf16 and f16 it adds up sums and
means in that type, where sums of 512 numbers lose most of their bits, and rounds each step of GELU; PyTorch
computes both in f32 and rounds once. A product of i8 into i32 (``torch._int_mm``) has no counterpart there:
groups read i8 again where both operands of a matmul were extended to i32.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

from tuner.mlir.bindings import torch_decompositions

GELU_SCALE, GELU_CUBE = math.sqrt(2 / math.pi), 0.044715  # of the approximation by tanh
ATEN = torch.ops.aten
BYTES_PRODUCT = ATEN._int_mm.default  # noqa: SLF001 - the only product of i8
NARROW = (torch.float16, torch.bfloat16)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Returns torch-mlir's own table with the operations of this file, for ``run_decompositions``."""
    return {
        **torch_decompositions(),
        ATEN.gelu.default: _gelu,
        ATEN.clamp.default: _clamp,
        ATEN.hardtanh.default: lambda x, least=-1.0, greatest=1.0: _clamp(x, least, greatest),
        ATEN.hardsigmoid.default: lambda x: _clamp(x + 3, 0.0, 6.0) / 6,
        ATEN.maximum.default: lambda x, y: torch.where((x > y) | (x != x), x, y),
        ATEN.minimum.default: lambda x, y: torch.where((x < y) | (x != x), x, y),
        ATEN.reciprocal.default: _reciprocal,
        ATEN.cumsum.default: _cumulative_sum,
        BYTES_PRODUCT: lambda x, y: ATEN.mm.default(x.int(), y.int()),
        ATEN.mean.dim: _in_f32(ATEN.mean.dim),
        ATEN.mean.default: _in_f32(ATEN.mean.default),
        ATEN.sum.dim_IntList: _in_f32(ATEN.sum.dim_IntList),
        ATEN.sum.default: _in_f32(ATEN.sum.default),
    }


def _in_f32(operation: Any) -> Callable[..., Any]:
    """Returns an operation that computes narrow floats in f32, and rounds its result."""

    def computed(x: torch.Tensor, *arguments: Any, dtype: torch.dtype | None = None, **keywords: Any) -> Any:
        if x.dtype not in NARROW or (dtype or x.dtype) not in NARROW:
            return NotImplemented
        return operation(x.float(), *arguments, **keywords).to(dtype or x.dtype)

    return computed


def _gelu(x: torch.Tensor, approximate: str = "none") -> Any:
    if approximate == "none":  # torch-mlir's is right for what is not narrow
        return ATEN.gelu.default(x.float()).to(x.dtype) if x.dtype in NARROW else NotImplemented
    wide = x.float() if x.dtype in NARROW else x
    inner = GELU_SCALE * (wide + GELU_CUBE * (wide * wide * wide))
    return (0.5 * wide * (1 + torch.tanh(inner))).to(x.dtype)


def _clamp(x: torch.Tensor, least: float | None = None, greatest: float | None = None) -> Any:
    """Keeps NaN: a comparison with it is false."""
    if not x.is_floating_point():
        return NotImplemented
    if least is not None:
        x = torch.where(x < least, _like(x, least), x)
    if greatest is not None:
        x = torch.where(x > greatest, _like(x, greatest), x)
    return x


def _reciprocal(x: torch.Tensor) -> Any:
    if not x.is_floating_point():
        return NotImplemented
    return ATEN.div.Tensor(_like(x, 1.0), x)


def _cumulative_sum(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Sums each prefix on its own: quadratic, but of operations that can be vectorized."""
    kind = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    if x.dim() == 0:
        return x.to(kind)
    at = dim % x.dim()
    moved = x.to(kind).movedim(at, -1)
    steps = torch.arange(moved.shape[-1])
    is_before = steps[None, :] <= steps[:, None]
    zero = torch.zeros((), dtype=kind)
    return torch.where(is_before, moved.unsqueeze(-2), zero).sum(-1, dtype=kind).movedim(-1, at)


def _like(x: torch.Tensor, number: float) -> torch.Tensor:
    return torch.full((), number, dtype=x.dtype)
