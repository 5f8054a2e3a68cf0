"""Normalizations and variances, computed in f32 in as many passes as PyTorch has.

torch-mlir 20261001 computes variances in f64, in twice as many passes, and each step of a norm of narrow
floats in their type; its variance of no elements is 0, where PyTorch's is NaN.
"""

import math
from typing import Any

import torch

from tuner.models.torch.element_types import number_like, widened

ATEN = torch.ops.aten
LONG = 1 << 16  # numbers of a variance: sums of more are in f64


def rms_norm(x: torch.Tensor, shape: list[int], weight: Any = None, eps: float | None = None) -> torch.Tensor:
    """Computes ``aten.rms_norm``; f16 and bf16 are computed in f32.

    ``eps`` None: the machine epsilon of the type that is computed in.
    """
    wide = widened(x)
    dims = list(range(-len(shape), 0))
    least = torch.finfo(wide.dtype).eps if eps is None else eps
    normalized = wide * torch.rsqrt((wide * wide).mean(dims, keepdim=True) + least)
    return (normalized if weight is None else normalized * weight).to(x.dtype)


def batch_norm(
    x: torch.Tensor, weight: Any, bias: Any, mean: Any, variance: Any, _: float, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Computes ``aten._native_batch_norm_legit_no_training``: (result, empty tensor, empty tensor).

    Multiplies and adds a number per channel, as PyTorch's kernel: both numbers depend on weights alone.
    """
    wide = widened(x)
    mean = mean.to(wide.dtype)
    variance = variance.to(wide.dtype)
    scale = ATEN.div.Tensor(number_like(wide, 1.0), torch.sqrt(variance + eps))
    scale = scale if weight is None else scale * weight.to(wide.dtype)
    shift = -(mean * scale) if bias is None else bias.to(wide.dtype) - mean * scale
    shape = (-1, *[1] * (x.dim() - 2))
    result = (wide * scale.reshape(shape) + shift.reshape(shape)).to(x.dtype)
    return result, x.new_empty(0), x.new_empty(0)


def group_norm(
    x: torch.Tensor, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, _: bool = True
) -> Any:
    """Computes ``aten.group_norm``, in f32 for f16 and bf16; NotImplemented for a tensor without elements."""
    if not x.numel():
        return NotImplemented
    wide = widened(x).reshape(x.shape[0], groups, -1)
    mean = wide.mean(-1, keepdim=True)
    centred = wide - mean
    scale = torch.rsqrt((centred * centred).mean(-1, keepdim=True) + eps)
    if x.shape[1] != groups:  # a row has several channels, each with its own weight: scaled afterwards
        wide = wide.reshape(*wide.shape[:2], x.shape[1] // groups, -1)
        centred = wide - mean.unsqueeze(-1)
        scale = scale.unsqueeze(-1)
    shape = (groups, -1, 1) if centred.dim() == 4 else (-1, 1)
    result = centred * (scale if weight is None else scale * widened(weight).reshape(shape))
    result = result if bias is None else result + widened(bias).reshape(shape)
    return result.reshape(x.shape).to(x.dtype)


def layer_norm(
    x: torch.Tensor, shape: list[int], weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Computes ``aten.native_layer_norm``: (result, mean, 1 / standard deviation).

    f16 and bf16 are computed in f32, the type of the last two. NotImplemented for a tensor without elements.
    """
    if not x.numel():
        return NotImplemented
    wide = widened(x)
    dims = list(range(-len(shape), 0))
    mean = wide.mean(dims, keepdim=True)
    centred = wide - mean
    scale = torch.rsqrt((centred * centred).mean(dims, keepdim=True) + eps)
    result = centred * scale
    if weight is not None:
        result = result * widened(weight)
    if bias is not None:
        result = result + widened(bias)
    return result.to(x.dtype), mean, scale


def instance_norm(
    x: torch.Tensor,
    weight: Any,
    bias: Any,
    mean: Any,
    _: Any,
    is_of_input: bool,
    __: float,
    eps: float,
    *___: Any,
) -> Any:
    """Computes ``aten.instance_norm`` with statistics of the input.

    NotImplemented where running statistics are given or used, and for a tensor without elements.
    """
    if mean is not None or not is_of_input:
        return NotImplemented
    return group_norm(x, x.shape[1], weight, bias, eps)


def variance_of(x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    """Computes ``aten.var`` as the first result of ``variance_and_mean``, with the same limits."""
    found = variance_and_mean(x, dim, correction=correction, keepdim=keepdim)
    if found is NotImplemented:
        return found
    return found[0]


def variance_and_mean(
    x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Any:
    """Computes ``aten.var_mean``: (variance, mean); f16 and bf16 in f32, more than LONG numbers in f64.

    The variance and the mean of no numbers are NaN. NotImplemented where the count of numbers is dynamic.
    """
    dims = list(dim or range(x.dim()))
    if not x.numel():
        nothing = x.sum(dims, keepdim=keepdim) * math.nan
        return nothing, nothing
    numbers = math.prod(x.shape[dimension] for dimension in dims)
    if not isinstance(numbers, int):
        return NotImplemented
    wide = widened(x)
    if numbers > LONG:
        wide = x.double()
    mean = wide.mean(dims, keepdim=True)
    centred = wide - mean
    squares = (centred * centred).sum(dims, keepdim=keepdim)
    if correction is None:
        correction = 1
    variance = squares / max(numbers - correction, 0)
    return variance.to(x.dtype), mean.reshape(variance.shape).to(x.dtype)
