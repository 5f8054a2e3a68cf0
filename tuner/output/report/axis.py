"""Round numbers for the axes of drawings."""

import math

TICKS = 5  # about so many on an axis


def round_numbers(top: float) -> list[float]:
    """Returns about TICKS round numbers from 0 on, below ``top``."""
    raw = top / TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    return [round(step * index, 12) for index in range(math.ceil(top / step))]


def powers_of_ten(low: float, high: float) -> list[float]:
    """Returns the powers of ten from ``low`` to ``high``."""
    return [10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
