"""Operations of PyTorch that torch-mlir would turn into something else, written by simpler ones.

``decompositions`` collects the tables of the modules of their subjects. torch-mlir 20261001 gives zeros for
one_hot of a number that is not a class; convolutions of volumes and pooling have no schedule; transposed
convolutions multiply zeros. A product of i8 into i32 (``torch._int_mm``) has no counterpart in torch-mlir:
fusions read i8 again where both operands of a matmul were extended to i32.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tuner.mlir.bindings import torch_decompositions
from tuner.models.torch.arithmetic import arithmetic
from tuner.models.torch.attention import attentions
from tuner.models.torch.convolutions import convolution
from tuner.models.torch.element_functions import element_functions
from tuner.models.torch.element_types import computed_in_f32
from tuner.models.torch.encoder_layers import encoder_layers
from tuner.models.torch.interpolation import interpolations
from tuner.models.torch.normalizations import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
    variance_and_mean,
    variance_of,
)
from tuner.models.torch.pooling import adaptive_average_pool, adaptive_max_pool, average_pool, max_pool
from tuner.models.torch.products import sums_with_products
from tuner.models.torch.quotients import fmod, remainder, rounded_quotient
from tuner.models.torch.rearrangements import block_diagonal, constant_pad, fold, roll
from tuner.models.torch.recurrences import recurrences
from tuner.models.torch.reductions import reductions
from tuner.models.torch.written_positions import position_writes

ATEN = torch.ops.aten
BYTES_PRODUCT = ATEN._int_mm.default  # noqa: SLF001 - the only product of i8
COMPUTED_IN_F32 = (ATEN.elu.default, ATEN.leaky_relu.default, ATEN.sigmoid.default)
POOLS = {
    "max_pool": max_pool,
    "avg_pool": average_pool,
    "adaptive_avg_pool": adaptive_average_pool,
    "adaptive_max_pool": adaptive_max_pool,
}
REMAINDERS = (ATEN.remainder.Scalar, ATEN.remainder.Tensor, ATEN.remainder.Scalar_Tensor)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Returns a table operator -> function for ``run_decompositions``: torch-mlir's with changes.

    A function that returns NotImplemented leaves its operator in the graph, for torch-mlir.
    """
    table = torch_decompositions()
    return {
        **table,
        **element_functions(),
        **arithmetic(table),
        **reductions(table),
        **{op: computed_in_f32(op) for op in COMPUTED_IN_F32},
        ATEN.convolution.default: convolution,
        **{
            getattr(ATEN, f"{name}{dims}d").default: pool(dims)
            for name, pool in POOLS.items()
            for dims in (1, 2, 3)
        },
        ATEN._efficientzerotensor.default: _zeros,  # noqa: SLF001
        **position_writes(),
        **attentions(table),
        **encoder_layers(),
        **recurrences(),
        **sums_with_products(table),
        ATEN.block_diag.default: block_diagonal,
        ATEN.constant_pad_nd.default: constant_pad,
        ATEN.roll.default: roll,
        ATEN.col2im.default: fold,
        **interpolations(),
        ATEN.div.Tensor_mode: rounded_quotient,
        ATEN.floor_divide.default: partial(rounded_quotient, rounding_mode="floor"),
        **dict.fromkeys((ATEN.fmod.Scalar, ATEN.fmod.Tensor), fmod),
        **dict.fromkeys(REMAINDERS, remainder),
        ATEN.rms_norm.default: rms_norm,
        ATEN.group_norm.default: group_norm,
        ATEN.native_layer_norm.default: layer_norm,
        ATEN.instance_norm.default: instance_norm,
        ATEN._native_batch_norm_legit_no_training.default: batch_norm,  # noqa: SLF001
        ATEN._weight_int8pack_mm.default: _product_by_bytes,  # noqa: SLF001
        BYTES_PRODUCT: _product_of_bytes,
        ATEN.var.correction: variance_of,
        ATEN.var_mean.correction: variance_and_mean,
        ATEN.bucketize.Tensor: _bucketize,
        ATEN.linspace.default: _of_floats(table[ATEN.linspace.default]),
        ATEN.one_hot.default: _one_hot,
    }


def _product_of_bytes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Multiplies i8 as i32, which fusions narrow again.

    A uint8 x is shifted to i8 by -128; 128 times the sums of y's columns make up for that.
    """
    if x.dtype is not torch.uint8 or y.dtype is not torch.int8:
        return ATEN.mm.default(x.int(), y.int())
    signed = (x.int() - 128).to(torch.int8)
    return ATEN.mm.default(signed.int(), y.int()) + 128 * y.sum(0, keepdim=True, dtype=torch.int32)


def _product_by_bytes(x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Computes the product by weights of bytes: sums in f32, rounded once, as by PyTorch's kernel."""
    rows = weight.float() * scales.float().unsqueeze(1)
    return (x.float() @ rows.t()).to(x.dtype)


def _one_hot(x: torch.Tensor, classes: int = -1) -> Any:
    """Reads each class from a table of the classes, so that a number out of range is an error."""
    if classes < 1:
        return NotImplemented
    numbers = torch.arange(classes)
    return (ATEN.embedding.default(numbers.unsqueeze(1), x) == numbers).long()


def _bucketize(
    x: torch.Tensor, boundaries: torch.Tensor, *, out_int32: bool = False, right: bool = False
) -> torch.Tensor:
    """Searches by halves as PyTorch does, so that unsorted boundaries give the same result, too."""
    count = boundaries.shape[0]
    low = torch.zeros(x.shape, dtype=torch.int64)
    high = torch.full(x.shape, count, dtype=torch.int64)
    for _ in range(count.bit_length()):
        middle = (low + high) >> 1
        boundary = boundaries[middle.clamp(max=count - 1)]
        is_after = ~(boundary > x) if right else ~(boundary >= x)  # NaN is after all
        is_searched = low < high
        low = torch.where(is_searched & is_after, middle + 1, low)
        high = torch.where(is_searched & ~is_after, middle, high)
    if out_int32:
        return low.to(torch.int32)
    return low


def _of_floats(linspace: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the decomposition of linspace for floats; of integers it is left, and refused later."""

    def computed(*arguments: Any, dtype: torch.dtype | None = None, **keywords: Any) -> Any:
        if dtype is not None and not dtype.is_floating_point:
            return NotImplemented
        return linspace(*arguments, dtype=dtype, **keywords)

    return computed


def _zeros(size: list[int], *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    return torch.zeros(size, dtype=dtype or torch.get_default_dtype())
