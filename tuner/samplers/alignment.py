"""Which powers of two divide the values of a knob: what vectors, banks and cache lines care about.

By rank alone 48 lies between 32 and 64; by alignment it stands apart from both. A model that weighs columns
is given both, and finds out which of them matters.
"""

import numpy as np

ALIGNED_LEVELS_MIN = 3  # values that a knob has: of two, the rank tells all


def alignments(values: tuple[int | str, ...]) -> tuple[int, ...]:
    """Returns the rank of each value's largest power of two; nothing where it only grows with the value."""
    numbers = [value for value in values if isinstance(value, int) and value >= 0]
    if len(numbers) < len(values) or len(values) < ALIGNED_LEVELS_MIN:
        return ()
    _, ranks = np.unique([_zeros(number) for number in numbers], return_inverse=True)
    return () if (np.diff(ranks) >= 0).all() else tuple(ranks.tolist())


def _zeros(number: int) -> int:
    """Returns how many zeros a number ends with in binary; 0, which means "off", counts as odd."""
    return (number & -number).bit_length() - 1 if number else 0
