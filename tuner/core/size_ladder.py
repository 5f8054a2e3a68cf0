"""Sizes at which code of static shapes is compiled, for a dimension whose size changes from call to call.

A call of any size in the range uses the code of the next greater size, with its operands padded. Four sizes
for each doubling keep the padding below a quarter of a call's size, and below a sixth on average.
"""

from bisect import bisect_left

from tuner.core.errors import UsageError

SIZES_OF_DOUBLING = 4


def size_ladder(least: int, greatest: int) -> tuple[int, ...]:
    """Returns the sizes to compile for calls of ``least`` to ``greatest``, the last, ascending.

    Below 8 these are the powers of two; from there, all multiples of a quarter of the power of two below.
    Raises UsageError where the range is empty or begins below 1.
    """
    if not 1 <= least <= greatest:
        raise UsageError(
            f"sizes {least} to {greatest}: a range begins at 1 or more and ends where it begins or later"
        )
    sizes = [greatest]
    while sizes[-1] > least:
        sizes.append(_next_smaller(sizes[-1]))
    return tuple(reversed([max(size, least) for size in sizes]))


def ladder_size(ladder: tuple[int, ...], size: int) -> int:
    """Returns the least size of a ladder that holds ``size``. Raises UsageError where none does."""
    place = bisect_left(ladder, size)
    if size < 1 or place == len(ladder):
        raise UsageError(f"size {size} is out of the range, which ends at {ladder[-1]}")
    return ladder[place]


def _next_smaller(size: int) -> int:
    """Returns the greatest step of the ladder below ``size``."""
    below = size - 1
    power = 1 << (below.bit_length() - 1)
    step = max(power // SIZES_OF_DOUBLING, 1) if power >= 8 else power
    return below // step * step
