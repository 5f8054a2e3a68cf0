"""Shared parts of plots: the size of a plotting area, numbers as text, round numbers for axes."""

import math
from collections.abc import Iterable

WIDTH, HEIGHT = 720.0, 240.0  # of a plotting area, in SVG units
TICKS = 5  # approximate number on an axis

Ticks = tuple[tuple[float, str], ...]  # coordinates along an axis, with their labels


def number(value: float) -> str:
    """Returns a coordinate as text for SVG, rounded to a tenth of a unit."""
    return f"{round(value, 1):.10g}"


def line(points: Iterable[tuple[float, float]]) -> str:
    """Returns the SVG path of a polyline through points (x, y)."""
    return "M" + " ".join(f"{number(x)} {number(y)}" for x, y in points)


def round_numbers(top: float) -> list[float]:
    """Returns 3 to 5 equidistant round numbers for an axis: 0, and multiples of a step below ``top`` > 0."""
    raw = top / TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    return [round(step * index, 12) for index in range(math.ceil(top / step))]


def powers_of_ten(low: float, high: float) -> list[float]:
    """Returns the powers of ten from ``low`` to ``high``, both inclusive and above 0."""
    return [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
