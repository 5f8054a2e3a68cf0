"""Quotients that are rounded to whole numbers, and remainders of divisions, exactly as PyTorch has them.

torch-mlir 20261001 rounds the quotient of floats before the remainder is known; of integers only a division
towards zero is exact.
"""

from typing import Any

import torch

from tuner.models.torch.element_types import NARROW, integer_like, is_float, is_wider_number, wrapped_to


def rounded_quotient(x: torch.Tensor, y: Any, *, rounding_mode: str | None = None) -> Any:
    """Computes ``aten.div.Tensor_mode``; NotImplemented where torch-mlir's own lowering is right.

    Rounded down, integers are divided towards zero, which torch-mlir does exactly, and corrected. For "trunc"
    and None only a number that needs another type than ``x`` is computed here.
    """
    x = _operand(x, y)
    divisor = integer_like(x, y)
    if rounding_mode == "trunc" and is_wider_number(y, x):
        return torch.div(x.float(), y, rounding_mode=rounding_mode).to(x.dtype)
    if rounding_mode != "floor" and divisor is not y:
        return torch.div(x, divisor, rounding_mode=rounding_mode)
    if rounding_mode != "floor":
        return NotImplemented
    y = divisor
    if is_float(x) or is_float(y):
        return _floor_of_floats(x, y)
    towards_zero = torch.div(x, y, rounding_mode="trunc")
    is_smaller = (towards_zero * y != x) & ((x < 0) != (y < 0))
    return (towards_zero - is_smaller.to(towards_zero.dtype)).to(towards_zero.dtype)


def _floor_of_floats(x: torch.Tensor, y: Any) -> torch.Tensor:
    """Divides x less its remainder, as PyTorch does: 1 // 0.1 is 9, though 1 / 0.1 rounds to 10.

    A zero has the sign of x / y.
    """
    dtype = torch.result_type(x, y)
    wide = torch.float32 if dtype in NARROW else dtype
    if is_wider_number(y, x):
        return _floor_of_floats(x.float(), y).to(dtype)
    y = y if isinstance(y, torch.Tensor) else torch.full((), y, dtype=dtype)
    x = x.to(dtype).to(wide)
    y = y.to(dtype).to(wide)
    rest = fmod(x, y)
    whole = (x - rest) / y
    whole = torch.where(((rest > 0) & (y < 0)) | ((rest < 0) & (y > 0)), whole - 1, whole)
    below = torch.floor(whole)
    below = torch.where(whole - below > 0.5, below + 1, below)
    return torch.where(y == 0, x / y, torch.where(whole == 0, (x / y) * 0, below)).to(dtype)


def fmod(x: torch.Tensor, y: Any) -> Any:
    """Computes ``aten.fmod``: the remainder with the sign of the dividend, exactly."""
    dtype = torch.result_type(x, y)
    if not isinstance(y, torch.Tensor):
        y = _operand(y, x)
    if not dtype.is_floating_point:
        return x - torch.div(x, y, rounding_mode="trunc") * y
    rest = torch.remainder(x.to(dtype).abs(), y.to(dtype).abs())
    rest = torch.where(x == 0, rest * x, rest)  # -0.0 stays -0.0
    return torch.where(x < 0, -rest, rest)


def _operand(number: Any, other: Any) -> torch.Tensor:
    """Returns a Python number as a tensor of the type of its operation with ``other``."""
    if isinstance(number, torch.Tensor):
        return number
    dtype = torch.result_type(number, other)
    if not dtype.is_floating_point:
        number = wrapped_to(number, dtype)
    return torch.full((), number, dtype=dtype)


def remainder(x: torch.Tensor, y: Any) -> Any:
    """Computes ``aten.remainder`` of integers, with the sign of the divisor; NotImplemented for floats."""
    if not isinstance(x, torch.Tensor):
        return torch.remainder(_operand(x, y), y)
    if is_float(x) or is_float(y):
        return NotImplemented
    y = integer_like(x, y)
    rest = x - torch.div(x, y, rounding_mode="trunc") * y
    return torch.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)
