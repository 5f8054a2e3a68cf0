"""Types of elements: floats of 16 bits, and Python's numbers as elements of a tensor.

PyTorch computes floats of 16 bits in f32, and rounds once.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

NARROW = (torch.float16, torch.bfloat16)
NARROW_INTEGERS = (torch.int8, torch.uint8, torch.int16)


def widened(x: torch.Tensor) -> torch.Tensor:
    """Returns ``x`` in the type that PyTorch computes it in: bf16 and f16 in f32, other types as they are."""
    if x.dtype in NARROW:
        return x.float()
    return x


def number_like(x: torch.Tensor, number: float) -> torch.Tensor:
    """Returns a number as a 0-d tensor of the type of ``x``."""
    return torch.full((), number, dtype=x.dtype)


def rounded_to(number: float, dtype: torch.dtype) -> float:
    """Returns the number of a float type that PyTorch rounds a Python number to, or infinity."""
    number = rounded_to(number, torch.float32) if dtype in NARROW else number  # twice, as PyTorch
    if dtype is torch.float64 or not math.isfinite(number):
        return float(number)
    info = torch.finfo(dtype)
    if abs(number) >= info.max / (2 - info.eps) * (2 - info.eps / 2):
        return math.copysign(math.inf, number)  # from half a step beyond the largest number on
    exponent = max(math.frexp(number)[1], math.frexp(info.tiny)[1]) - round(-math.log2(info.eps)) - 1
    return math.ldexp(round(math.ldexp(number, -exponent)), exponent)


def wrapped_to(number: int, dtype: torch.dtype) -> int:
    """Returns the integer of a type that has the low bits of a number: of int8, 300 is 44."""
    least = int(torch.iinfo(dtype).min)
    bits = int(torch.iinfo(dtype).bits)
    return (number - least) % (1 << bits) + least


def integer_like(x: torch.Tensor, number: Any) -> Any:
    """Returns a Python integer as a 0-d tensor of the type of ``x``, if ``x`` is of narrow integers.

    torch-mlir 20261001 crashes for such an operand otherwise. Another ``number`` is returned as it is.
    """
    if isinstance(number, int) and isinstance(x, torch.Tensor) and x.dtype in NARROW_INTEGERS:
        return number_like(x, wrapped_to(number, x.dtype))
    return number


def is_wider_number(number: Any, x: Any) -> bool:
    """Returns whether ``x * number`` and ``x / number`` are computed in f32 and rounded at the end.

    True only for an f16 or bf16 tensor ``x`` where ``number`` is a Python float that this type cannot
    represent, or a 0-d f32 or f64 tensor while ``x`` has a dimension. Else ``number`` is rounded to the type
    of ``x`` first.
    """
    if not isinstance(x, torch.Tensor) or x.dtype not in NARROW:
        return False
    if isinstance(number, float):
        return rounded_to(number, x.dtype) != number
    if not isinstance(number, torch.Tensor) or number.dim() or not x.dim():
        return False
    return number.dtype in (torch.float32, torch.float64)


def is_float(x: Any) -> bool:
    """Returns whether ``x`` is a float of Python, or a tensor of floats."""
    return isinstance(x, float) or (isinstance(x, torch.Tensor) and x.is_floating_point())


def computed_in_f32(operation: Any) -> Callable[..., Any]:
    """Returns an operation that computes narrow floats in f32 and rounds the result; leaves other types."""

    def computed(x: torch.Tensor, *arguments: Any, dtype: torch.dtype | None = None, **keywords: Any) -> Any:
        if x.dtype not in NARROW or (dtype or x.dtype) not in NARROW:
            return NotImplemented
        return operation(x.float(), *arguments, **keywords).to(dtype or x.dtype)

    return computed
