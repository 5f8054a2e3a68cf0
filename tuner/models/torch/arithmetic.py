"""Sums, products, comparisons and shifts in the types in which PyTorch computes them.

torch-mlir 20261001 rounds numbers to narrow floats before it adds or multiplies; comparisons with a Python
number are in float64; isclose loses NaN; integers of fewer than 32 bits crash it.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from tuner.models.torch.element_types import (
    NARROW,
    integer_like,
    is_wider_number,
    number_like,
    rounded_to,
    widened,
    wrapped_to,
)

ATEN = torch.ops.aten
COMPARISONS = (ATEN.eq, ATEN.ne, ATEN.lt, ATEN.le, ATEN.gt, ATEN.ge)
SHIFTS = (
    *(ATEN.__lshift__.Scalar, ATEN.__lshift__.Tensor, ATEN.bitwise_left_shift.Tensor),
    *(ATEN.__rshift__.Scalar, ATEN.__rshift__.Tensor, ATEN.bitwise_right_shift.Tensor),
)


def arithmetic(table: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """Returns a table operator -> function for ``run_decompositions``: sums, products, comparisons, shifts.

    A function that returns NotImplemented leaves its operator to torch-mlir. ``table``: torch-mlir's own.
    """
    return {
        ATEN.mul.Tensor: _of_narrow_types(ATEN.mul.Tensor),
        ATEN.div.Tensor: _of_narrow_types(ATEN.div.Tensor),
        ATEN.add.Tensor: _sum_of_narrow_types(ATEN.add.Tensor),
        ATEN.sub.Tensor: _sum_of_narrow_types(ATEN.sub.Tensor),
        ATEN.rsub.Scalar: _difference_from(table[ATEN.rsub.Scalar]),
        ATEN.addcdiv.default: _with_quotient,
        ATEN.neg.default: _negated,
        **{shift: _shifted(shift) for shift in SHIFTS},
        **{comparison.Scalar: _compared(comparison.Scalar) for comparison in COMPARISONS},
        ATEN.bitwise_or.Scalar: _with_tensor(ATEN.bitwise_or.Tensor),
        ATEN.bitwise_xor.Scalar: _with_tensor(ATEN.bitwise_xor.Tensor),
        ATEN.isclose.default: _is_close,
        ATEN.isfinite.default: _is_finite,
    }


def _negated(x: torch.Tensor) -> Any:
    """Negates integers by their bits: torch-mlir would compute ``aten.neg`` of them as floats."""
    if x.is_floating_point():
        return NotImplemented
    return ATEN.bitwise_not(x) + 1


def _of_narrow_types(operation: Any) -> Callable[..., Any]:
    """Returns the decomposition of ``mul`` or ``div`` by a number, in f32 if the type cannot hold the number.

    torch-mlir rounds it to narrow floats, unlike PyTorch; for an integer of fewer than 32 bits it crashes,
    but not for a tensor of this integer.
    """

    def computed(x: torch.Tensor, number: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return NotImplemented
        if is_wider_number(number, x):
            return operation(x.float(), number).to(x.dtype)
        if operation is ATEN.div.Tensor or integer_like(x, number) is number:
            return NotImplemented
        return operation(x, integer_like(x, number))

    return computed


def _sum_of_narrow_types(operation: Any) -> Callable[..., Any]:
    """Returns the decomposition of x + alpha y or x - alpha y: narrow floats are rounded as by PyTorch.

    PyTorch rounds numbers to the narrow type, and the result once. With an integer of fewer than 32 bits
    torch-mlir crashes, but not with a tensor of this integer.
    """

    def computed(x: Any, y: Any, *, alpha: float = 1) -> Any:
        dtype = torch.result_type(x, y)
        if dtype in NARROW and alpha != 1:
            wide = [_widened_as(dtype, operand) for operand in (x, y)]
            return operation(wide[0], rounded_to(alpha, dtype) * wide[1]).to(dtype)
        if dtype is torch.bool and isinstance(y, bool):  # torch-mlir's sum of True and True is False
            return x | number_like(x, y)
        if operation is ATEN.add.Tensor or integer_like(x, y) is y:
            return NotImplemented
        return operation(x, integer_like(x, y * alpha))

    return computed


def _widened_as(dtype: torch.dtype, operand: Any) -> Any:
    """Returns an operand as PyTorch reads it next to 16-bit floats: rounded to ``dtype``, then as f32."""
    if isinstance(operand, torch.Tensor):
        return operand.to(dtype).float()
    return rounded_to(operand, dtype)


def _with_quotient(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, *, value: float = 1) -> torch.Tensor:
    dtype = torch.result_type(x, y / z)
    x, y, z = (widened(operand.to(dtype)) for operand in (x, y, z))
    return (x + value * y / z).to(dtype)


def _difference_from(decomposed: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the decomposition of ``rsub``, number - alpha x.

    torch-mlir converts a whole number per element. ``decomposed``: torch-mlir's own, called for integers of
    at least 32 bits.
    """

    def computed(x: torch.Tensor, number: float, alpha: float = 1) -> Any:
        operand = integer_like(x, number)
        if operand is not number:
            return ATEN.sub.Tensor(operand, x, alpha=alpha)
        if not x.is_floating_point():
            return decomposed(x, number, alpha)
        wide = widened(x)
        minuend = number_like(wide, rounded_to(float(number), x.dtype))
        factor = alpha
        if x.dtype in NARROW:
            factor = rounded_to(alpha, x.dtype)
        return ATEN.sub.Tensor(minuend, wide, alpha=factor).to(x.dtype)

    return computed


def _with_tensor(operator: Any) -> Callable[..., Any]:
    """Returns an operator of two tensors as one of a tensor and a Python number."""

    def computed(x: torch.Tensor, number: int) -> Any:
        return operator(x, torch.full((), number, dtype=torch.result_type(x, number)))

    return computed


def _is_finite(x: torch.Tensor) -> Any:
    if x.is_floating_point():
        return x.abs() < math.inf
    return NotImplemented if x.is_complex() else torch.ones_like(x, dtype=torch.bool)


def _shifted(shift: Any) -> Callable[..., Any]:
    """Returns the decomposition of a shift by any number: 0 if the number is negative or at least the bits.

    To the right of signed integers it is their sign then, 0 or -1.
    """
    is_right = shift in SHIFTS[3:]

    def computed(x: torch.Tensor, y: Any) -> Any:
        dtype = torch.result_type(x, y)
        last = torch.iinfo(dtype).bits - 1
        if not isinstance(y, torch.Tensor):
            if 0 <= y <= last:
                return NotImplemented
            if is_right and dtype.is_signed:
                return shift(x, last)
            return x ^ x
        x = x.to(dtype)
        y = y.to(dtype)
        is_within = (y >= 0) & (y <= last)
        y = torch.where(is_within, y, last)
        for bit in range(last.bit_length()):  # by 1, 2, 4 and so on, where y has this bit
            shifted = x >> (1 << bit) if is_right else x << (1 << bit)
            x = torch.where(((y >> bit) & 1) == 1, shifted, x)
        if is_right and dtype.is_signed:
            return x
        return torch.where(is_within, x, 0)

    return computed


def _compared(comparison: Any) -> Callable[..., Any]:
    """Returns a comparison with a Python number in the type that PyTorch uses; torch-mlir's is in float64."""

    def computed(x: torch.Tensor, number: int | float) -> Any:
        if x.dtype is torch.bool:
            is_small = isinstance(number, float) or wrapped_to(number, torch.int32) == number
            return comparison(x.to(torch.int32 if is_small else torch.int64), number)
        if not x.is_floating_point():
            if isinstance(number, float):
                return comparison(x.to(torch.get_default_dtype()), number)
            wrapped = wrapped_to(number, x.dtype)
            if wrapped == number:
                return NotImplemented
            return comparison(x, wrapped)
        near = number if number != number else rounded_to(number, x.dtype)
        # A float that x's type has is left to torch-mlir. Another number is rounded to such a float: the new
        # comparison comes here again, and stays.
        is_exact = isinstance(number, float) and (near == number or near != near)
        if is_exact:
            return NotImplemented
        return comparison(x, near)

    return computed


def _is_close(
    x: torch.Tensor, y: torch.Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    """Compares infinities and NaN as PyTorch does, where torch-mlir calls each close to any number."""
    if not x.is_floating_point():
        return NotImplemented
    is_equal = x == y
    if equal_nan:
        is_equal = is_equal | ((x != x) & (y != y))
    error = (x - y).abs()
    return is_equal | ((error < math.inf) & (error <= atol + (rtol * y).abs()))
