"""Functions of elements - clamps, powers, GELU and others - with the rounding, NaN and infinities of PyTorch.

torch-mlir 20261001 exports GELU by tanh with 0.797724 for the square root of 2 / pi, which is 0.797885, and
rounds each step of GELU of narrow floats; clamp, hardtanh, hardsigmoid, minimum and maximum lose NaN; a
reciprocal asserts that no element is zero.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

from tuner.models.torch.element_types import NARROW, number_like, widened

# of the approximation by tanh
GELU_SCALE = math.sqrt(2 / math.pi)
GELU_CUBE = 0.044715
SIXTH = 1 / 6  # of hard functions: a processor takes five times as long to divide
ATEN = torch.ops.aten
SPECIAL_POWERS: dict[float, Callable[[torch.Tensor], torch.Tensor]] = {
    0.5: torch.sqrt,
    -0.5: torch.rsqrt,
    -2: lambda x: torch.reciprocal(x * x),
}


def element_functions() -> dict[Any, Callable[..., Any]]:
    """Returns a table operator -> function for ``run_decompositions``; see ``decompositions``."""
    return {
        ATEN.gelu.default: _gelu,
        ATEN.clamp.default: _clamp,
        ATEN.clamp.Tensor: _clamp_by_tensors,
        ATEN.hardtanh.default: lambda x, least=-1.0, greatest=1.0: _clamp(x, least, greatest),
        ATEN.hardsigmoid.default: lambda x: (_clamp(widened(x) + 3, 0.0, 6.0) * SIXTH).to(x.dtype),
        ATEN.hardswish.default: _hardswish,
        ATEN.maximum.default: _maximum,
        ATEN.minimum.default: _minimum,
        ATEN.threshold.default: _threshold,
        ATEN.softplus.default: _softplus,
        ATEN.reciprocal.default: _reciprocal,
        ATEN.pow.Tensor_Scalar: _power,
        **{power: _power_by_tensor(power) for power in (ATEN.pow.Scalar, ATEN.pow.Tensor_Tensor)},
    }


def _gelu(x: torch.Tensor, approximate: str = "none") -> Any:
    if approximate == "none":  # torch-mlir's is right for what is not narrow
        if x.dtype in NARROW:
            return ATEN.gelu.default(x.float()).to(x.dtype)
        return NotImplemented
    wide = widened(x)
    inner = GELU_SCALE * (wide + GELU_CUBE * (wide * wide * wide))
    return (0.5 * wide * (1 + torch.tanh(inner))).to(x.dtype)


def _hardswish(x: torch.Tensor) -> torch.Tensor:
    """Multiplies in PyTorch's order, so that large numbers become infinity as there."""
    wide = widened(x)
    return (wide * _clamp(wide + 3, 0.0, 6.0) * SIXTH).to(x.dtype)


def _clamp(x: torch.Tensor, least: float | None = None, greatest: float | None = None) -> Any:
    """Clamps floats and keeps NaN; a limit that is NaN makes all elements NaN. NotImplemented: integers."""
    if not x.is_floating_point():
        return NotImplemented
    if least != least or greatest != greatest:
        return x * math.nan
    if least is not None:
        x = torch.where(x < least, number_like(x, least), x)
    if greatest is not None:
        x = torch.where(x > greatest, number_like(x, greatest), x)
    return x


def _clamp_by_tensors(
    x: torch.Tensor, least: torch.Tensor | None = None, greatest: torch.Tensor | None = None
) -> torch.Tensor:
    """Keeps NaN, and compares booleans without a sign, which torch-mlir does not."""
    x = x if least is None else torch.maximum(x, least)
    if greatest is None:
        return x
    return torch.minimum(x, greatest)


def _maximum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Returns the greater of two elements, NaN if one of them is NaN; compares in the type of the result.

    A 0-d i64 does not change this type.
    """
    dtype = torch.result_type(x, y)
    x = x.to(dtype)
    y = y.to(dtype)
    return torch.where((x > y) | (x != x), x, y)


def _minimum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    dtype = torch.result_type(x, y)
    x = x.to(dtype)
    y = y.to(dtype)
    return torch.where((x < y) | (x != x), x, y)


def _threshold(x: torch.Tensor, least: float, number: float) -> torch.Tensor:
    """Computes threshold.

    In an integer tensor both numbers are truncated, and narrow floats are compared in f32.
    """
    if not x.is_floating_point():
        return torch.where(x <= int(least), int(number), x)
    return torch.where(widened(x) <= least, number_like(x, number), x)


def _softplus(x: torch.Tensor, beta: float = 1, threshold: float = 20) -> torch.Tensor:
    wide = widened(x)
    scaled = wide * beta
    return torch.where(scaled > threshold, wide, torch.log1p(torch.exp(scaled)) / beta).to(x.dtype)


def _reciprocal(x: torch.Tensor) -> Any:
    wide = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    return ATEN.div.Tensor(number_like(wide, 1.0), wide)


def _power(x: torch.Tensor, exponent: float) -> Any:
    """Computes powers as PyTorch does: x**0.5, x**-0.5 and x**-2 not by ``pow``, which differs at -inf.

    sqrt(-inf) is NaN, pow(-inf, 0.5) is inf. Powers of integers are products, which lose their high bits. A
    tensor of another type than the result's is converted first. Returns NotImplemented, which leaves the
    operator as it is, for all other exponents, for f16, and for negative exponents of integers.
    """
    result_type = torch.result_type(x, exponent)
    if result_type is not x.dtype:
        return ATEN.pow.Tensor_Scalar(x.to(result_type), exponent)
    if not x.is_floating_point():
        return _integer_power(x, int(exponent))
    if float(exponent) != exponent and exponent == exponent:  # an odd one becomes even, as in PyTorch
        return ATEN.pow.Tensor_Scalar(x, float(exponent))
    if x.dtype is torch.float16 or exponent not in SPECIAL_POWERS:
        return NotImplemented
    return SPECIAL_POWERS[exponent](widened(x)).to(x.dtype)


def _integer_power(x: torch.Tensor, exponent: int) -> Any:
    if exponent < 0:  # an error of PyTorch
        return NotImplemented
    if exponent == 0:
        return (x ^ x) + 1
    power = x.clone()
    for digit in f"{exponent:b}"[1:]:
        power = power * power
        if digit == "1":
            power = power * x
    return power


def _power_by_tensor(power: Any) -> Callable[..., Any]:
    """Returns a power that converts operands to floats where the result has floats, or torch-mlir crashes."""

    def computed(x: Any, exponent: torch.Tensor) -> Any:
        result_type = torch.result_type(x, exponent)
        operands = [value for value in (x, exponent) if isinstance(value, torch.Tensor)]
        if all(operand.dtype is result_type for operand in operands) or not result_type.is_floating_point:
            return NotImplemented
        if isinstance(x, torch.Tensor):
            x = x.to(result_type)
        return power(x, exponent.to(result_type))

    return computed
