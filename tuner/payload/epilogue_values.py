"""Epilogues in float64, with the error that an implementation in another type may have.

The error of each step is that of its operands, to first order, and that of its own rounding.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from tuner.core.epilogues import SUM, Epilogue

Float64 = npt.NDArray[np.float64]
APPROXIMATED = 2.0  # times the error of an addition: functions as polynomials
WHOLE: Final[Mapping[str, Callable[..., Float64]]] = {"add": np.add, "max": np.maximum}


@dataclass(frozen=True)
class Arithmetic:
    """The type in which an implementation computes an epilogue."""

    unit: float  # allowed relative error of one addition or multiplication; 0.0 for integers
    added: float  # the same of an array added to sums of products, or of sums that begin with its elements
    largest: float  # what is larger overflows to infinity
    smallest: float  # the least positive number; 0.0 for integers


@dataclass(frozen=True)
class BoundedValue:
    """A value of each element in float64, and the error that an implementation may have."""

    value: Float64
    error: Float64
    is_sum: bool = False  # of products, and of arrays from which an implementation may have begun to add


def _of_sum(left: BoundedValue, right: BoundedValue, type_: Arithmetic) -> BoundedValue:
    """Returns left + right; what is added to sums of products may be in each of their partial sums."""
    value = left.value + right.value
    error = left.error + right.error + np.abs(value) * type_.unit
    if left.is_sum:
        error = error + np.abs(right.value) * type_.added
    if right.is_sum:
        error = error + np.abs(left.value) * type_.added
    return BoundedValue(value, error, left.is_sum or right.is_sum)


def _of_product(left: BoundedValue, right: BoundedValue, type_: Arithmetic) -> BoundedValue:
    value = left.value * right.value
    error = np.abs(left.value) * right.error + np.abs(right.value) * left.error + left.error * right.error
    return BoundedValue(value, error + np.abs(value) * type_.unit + type_.smallest)


def _of_quotient(left: BoundedValue, right: BoundedValue, type_: Arithmetic) -> BoundedValue:
    value = left.value / right.value
    error = (left.error + np.abs(value) * right.error) / np.abs(right.value)
    error = np.where(np.isinf(right.value), 0.0, error) + np.abs(value) * type_.unit + type_.smallest
    # where the divisor overflows the quotient is 0, and otherwise at most this
    return BoundedValue(
        value, error + np.where(np.isfinite(left.value), np.abs(left.value), 0.0) / type_.largest
    )


def _of_largest(left: BoundedValue, right: BoundedValue, _type: Arithmetic) -> BoundedValue:
    return BoundedValue(np.maximum(left.value, right.value), np.maximum(left.error, right.error))


def _of_exponential(operand: BoundedValue, type_: Arithmetic) -> BoundedValue:
    value = np.exp(operand.value)
    error = value * (operand.error + APPROXIMATED * type_.unit)
    return BoundedValue(value, np.where(np.isinf(value), 0.0, error) + type_.smallest)


def _of_tanh(operand: BoundedValue, type_: Arithmetic) -> BoundedValue:
    value = np.tanh(operand.value)
    error = (1.0 - value**2) * operand.error
    return BoundedValue(value, error + np.abs(value) * (APPROXIMATED * type_.unit) + type_.smallest)


def _of_erf(operand: BoundedValue, type_: Arithmetic) -> BoundedValue:
    numbers = operand.value
    value = np.array(list(map(math.erf, numbers.flat)), np.float64).reshape(numbers.shape)
    slope = np.exp(-(numbers**2)) * (2.0 / math.sqrt(math.pi))
    error = np.where(slope > 0.0, slope * operand.error, 0.0)
    return BoundedValue(value, error + np.abs(value) * (APPROXIMATED * type_.unit) + type_.smallest)


EVALUATIONS: Final[
    Mapping[str, Callable[..., BoundedValue]]
] = {  # by name in tuner.core.epilogues.OPERATIONS
    "add": _of_sum,
    "mul": _of_product,
    "div": _of_quotient,
    "max": _of_largest,
    "exp": _of_exponential,
    "tanh": _of_tanh,
    "erf": _of_erf,
}


def evaluate(
    epilogue: Epilogue, sums: BoundedValue, arguments: Mapping[str, Float64], type_: Arithmetic
) -> tuple[Float64, Float64]:
    """Returns (values, errors): the epilogue of sums of products, and how far another evaluation may be off.

    Args:
        epilogue: a row of ``tuner.core.epilogues.EPILOGUES``.
        sums: the products' sums, of any shape, with the error that each may have.
        arguments: elements of the extra arguments by name, of shapes that broadcast to that of ``sums``.
        type_: in which the steps are computed.

    Returns:
        Two arrays of the shape of ``sums``. NaN and infinity follow IEEE 754, as in the type of the steps.
    """
    nothing = np.zeros(())
    if not type_.unit:
        return _whole_numbers(epilogue, sums.value, arguments), sums.error
    known = {name: BoundedValue(elements, nothing) for name, elements in arguments.items()}
    known[SUM] = replace(sums, is_sum=True)
    with np.errstate(all="ignore"):  # infinities and NaN are among the numbers
        for step in epilogue.steps:
            operands = (
                known[operand] if isinstance(operand, str) else BoundedValue(np.array(operand), nothing)
                for operand in step.operands
            )
            known[step.name] = EVALUATIONS[step.operation](*operands, type_)
    result = known[epilogue.result]
    return result.value, result.error


def _whole_numbers(epilogue: Epilogue, sums: Float64, arguments: Mapping[str, Float64]) -> Float64:
    known: dict[str, Float64] = {**arguments, SUM: sums}
    for step in epilogue.steps:
        operands = (known[operand] if isinstance(operand, str) else operand for operand in step.operands)
        known[step.name] = WHOLE[step.operation](*operands)
    return known[epilogue.result]
