"""Arrays with a bound of their rounding errors: running error analysis.

Each operation computes in float64 what a kernel computes in a narrower type, and how far the kernel's result
may be from it: the errors of the operands, carried over to first order, plus half a unit in the last place of
the result's type for each rounding (Wilkinson, "Error analysis revisited", 1986; Higham, "Accuracy and
Stability of Numerical Algorithms", section 3.3). A sum of n numbers may be off by (2 + sqrt(n)) times that of
the sum of their magnitudes: less than the worst case of n, more than what independent errors in any order of
additions give.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.element_types import number_type

Float64 = npt.NDArray[np.float64]
Axes = tuple[int, ...]
FORMULA_ULPS = 8.0  # half units: the formulas' 3 units, and the rounding of the argument
SUBNORMAL = {"f32": 2.0**-149, "f64": 2.0**-1074, "f16": 2.0**-24, "bf16": 2.0**-133}
LARGEST = {"f32": float(np.finfo(np.float32).max), "f16": 65504.0, "bf16": 3.3895313892515355e38}


@dataclass(frozen=True)
class Bounded:
    """Values in float64, and the most by which a kernel's may differ; 0 where a value is not finite."""

    value: Float64
    error: Float64  # absolute, broadcast with ``value``
    element: str  # type in which a kernel has the values: "f32"

    @classmethod
    def exact(cls, value: Any, element: str) -> "Bounded":
        """Returns values without errors, such as inputs and constants."""
        array = np.asarray(value, dtype=np.float64)
        return cls(array, np.zeros_like(array), element)

    def reshaped(self, view: Callable[[Float64], Float64]) -> "Bounded":
        """Returns the values and errors after a change of shape, such as a transpose."""
        shape = np.broadcast_shapes(self.value.shape, self.error.shape)
        return Bounded(view(self.value), view(np.broadcast_to(self.error, shape)), self.element)


@dataclass(frozen=True)
class Truth:
    """Results of comparisons, and where errors of the operands may have inverted them."""

    value: npt.NDArray[np.bool_]
    is_uncertain: npt.NDArray[np.bool_]


def rounded(value: Float64, error: Float64, element: str, ulps: float = 1.0) -> Bounded:
    """Returns a result that a kernel rounds to ``element``: ``ulps`` half units in the last place are added.

    Numbers above the largest of the type become infinite.
    """
    with np.errstate(all="ignore"):
        largest = LARGEST.get(element)
        if largest is not None:
            value = np.where(np.abs(value) > largest, np.copysign(np.inf, value), value)
        unit = number_type(element).epsilon / 2 if element in SUBNORMAL else 0.0
        total = error + ulps * unit * np.abs(value) + SUBNORMAL.get(element, 0.0)
        return Bounded(value, np.where(np.isfinite(value) & np.isfinite(total), total, 0.0), element)


def add(a: Bounded, b: Bounded) -> Bounded:
    """Returns a + b."""
    with np.errstate(all="ignore"):
        return rounded(a.value + b.value, a.error + b.error, a.element)


def subtract(a: Bounded, b: Bounded) -> Bounded:
    """Returns a - b."""
    with np.errstate(all="ignore"):
        return rounded(a.value - b.value, a.error + b.error, a.element)


def multiply(a: Bounded, b: Bounded) -> Bounded:
    """Returns a * b."""
    with np.errstate(all="ignore"):
        error = np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error
        return rounded(a.value * b.value, np.nan_to_num(error, nan=0.0, posinf=0.0), a.element)


def divide(a: Bounded, b: Bounded) -> Bounded:
    """Returns a / b."""
    with np.errstate(all="ignore"):
        quotient = a.value / b.value
        least = np.maximum(np.abs(b.value) - b.error, 0.0)  # 0: the divisor's sign is not known
        error = (a.error + np.abs(quotient) * b.error) / least
        return rounded(quotient, np.where(np.isnan(error), 0.0, error), a.element)


def angle(a: Bounded, b: Bounded) -> Bounded:
    """Returns the angle of the point (b, a), C's atan2."""
    with np.errstate(all="ignore"):
        distance = np.hypot(a.value, b.value)
        error = np.where(distance > 0, (a.error + b.error) / distance, 0.0)
        return rounded(np.arctan2(a.value, b.value), error, a.element, FORMULA_ULPS)


def chosen(truth: Truth, a: Bounded, b: Bounded) -> Bounded:
    """Returns ``a`` where a comparison is true, else ``b``; where it is uncertain, either is allowed."""
    with np.errstate(all="ignore"):
        value = np.where(truth.value, a.value, b.value)
        error = np.where(truth.value, a.error, b.error)
        either = np.abs(a.value - b.value) + np.maximum(a.error, b.error)
        error = np.where(truth.is_uncertain & np.isfinite(either), either, error)
        return Bounded(value, error, a.element)


def extreme(choose: Callable[[Float64, Float64], Float64]) -> Callable[[Bounded, Bounded], Bounded]:
    """Returns the maximum or minimum of two arrays, by numpy's function."""

    def of(a: Bounded, b: Bounded) -> Bounded:
        return Bounded(choose(a.value, b.value), np.maximum(a.error, b.error), a.element)

    return of


def function(
    of: Callable[[Float64], Float64], slope: Callable[[Float64, Float64], Float64], ulps: float = FORMULA_ULPS
) -> Callable[[Bounded], Bounded]:
    """Returns an elementary function of an array with its error; ``slope(x, y)`` is its derivative."""

    def apply(x: Bounded) -> Bounded:
        with np.errstate(all="ignore"):
            y = of(x.value)
            steepness = np.abs(slope(x.value, y))
            error = np.where(x.error > 0, steepness * x.error, 0.0)
            return rounded(y, np.where(np.isnan(error), 0.0, error), x.element, ulps)

    return apply


def step(of: Callable[[Float64], Float64]) -> Callable[[Bounded], Bounded]:
    """Returns a function with jumps of 1, such as floor; where an error may cross one, 1 more is allowed."""

    def apply(x: Bounded) -> Bounded:
        with np.errstate(all="ignore"):
            y = of(x.value)
            is_near = (of(x.value - x.error) != y) | (of(x.value + x.error) != y)
            error = np.where(is_near & np.isfinite(y), 1.0, 0.0)
            return Bounded(y, error, x.element)

    return apply


def total(x: Bounded, axes: Axes) -> Bounded:
    """Returns sums along axes, added up in any order."""
    count = int(np.prod([x.value.shape[axis] for axis in axes]))
    with np.errstate(all="ignore"):
        size = np.sum(np.abs(x.value), axis=axes)
        shape = np.broadcast_shapes(x.value.shape, x.error.shape)
        error = np.sum(np.broadcast_to(x.error, shape), axis=axes)
        unit = number_type(x.element).epsilon / 2
        error = np.nan_to_num(error + (2 + np.sqrt(count)) * unit * size, nan=0.0, posinf=0.0)
        return rounded(np.sum(x.value, axis=axes), error, x.element)


def product_of_matrices(a: Bounded, b: Bounded, element: str) -> Bounded:
    """Returns A B of matrices or batches of matrices, with sums in the type ``element``."""
    unit = number_type(element).epsilon / 2
    with np.errstate(all="ignore"):
        size_a, size_b = np.abs(a.value), np.abs(b.value)
        error = (2 + np.sqrt(a.value.shape[-1])) * unit * (size_a @ size_b)
        if np.any(a.error):
            error = error + a.error @ (size_b + b.error)
        if np.any(b.error):
            error = error + size_a @ b.error
        return rounded(a.value @ b.value, np.nan_to_num(error, nan=0.0, posinf=0.0), element)
