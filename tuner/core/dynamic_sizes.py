"""A size n that is known only at a call: sizes that depend on it, and at which n code is compiled.

Code of static shapes is compiled for some n of a range, a ladder. A call of any size in the range uses the
code of the next greater size, with its operands padded. Four sizes for each doubling keep the padding below a
quarter of a call's size, and below a sixth on average.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from tuner.core.errors import UsageError

SIZES_OF_DOUBLING = 4
GREATEST_SIZE = 1 << 20
TUNED_SIZES = 4  # of a range: with the fallback to a similar fusion the sizes between them are near
CHECKED_SIZES = 6
_TEXT = re.compile(r"([0-9]{1,7})(?:\.\.([0-9]{1,7}))?")
_LINEAR = re.compile(r"(?P<factor>-?[0-9]*)n(?P<constant>[+-][0-9]+)?|(?P<static>-?[0-9]+)")
T = TypeVar("T")


@dataclass(frozen=True)
class LinearSize:
    """An integer that is linear in the size n of a call: ``of_n * n + constant``."""

    of_n: int = 0
    constant: int = 0

    @classmethod
    def parse(cls, text: str) -> "LinearSize":
        """Returns the function of a text such as ``n``, ``2n+1`` or ``8``, as ``text`` writes it.

        Raises UsageError for another text.
        """
        match = _LINEAR.fullmatch(text)
        if match is None:
            raise UsageError(f"found the size {text[:40]!r}, allowed one such as n, 2n+1 or 8")
        if match["static"]:
            return cls(0, int(match["static"]))
        factor = {"": 1, "-": -1}.get(match["factor"]) or int(match["factor"])
        return cls(factor, int(match["constant"] or 0))

    @property
    def is_static(self) -> bool:
        """Returns whether the number does not depend on n."""
        return self.of_n == 0

    @property
    def text(self) -> str:
        """Returns the function as people write it: ``n``, ``2n+1``, ``8``."""
        if self.is_static:
            return str(self.constant)
        factor = {1: "", -1: "-"}.get(self.of_n, str(self.of_n))
        if self.constant == 0:
            return f"{factor}n"
        return f"{factor}n{self.constant:+d}"

    def at(self, size: int) -> int:
        """Returns the value of the function at n = ``size``."""
        return self.of_n * size + self.constant

    def size_for(self, number: int) -> int:
        """Returns the n, rounded down, for which ``at(n)`` is ``number``.

        Raises ZeroDivisionError if the value is static.
        """
        return (number - self.constant) // self.of_n

    def plus(self, other: "LinearSize") -> "LinearSize":
        return LinearSize(self.of_n + other.of_n, self.constant + other.constant)

    def minus(self, other: "LinearSize") -> "LinearSize":
        return self.plus(other.scaled(-1))

    def scaled(self, factor: int) -> "LinearSize":
        return LinearSize(self.of_n * factor, self.constant * factor)

    def times(self, other: "LinearSize") -> "LinearSize | None":
        """Returns the product of two functions of n; None where it is not linear in n."""
        if self.is_static:
            return other.scaled(self.constant)
        if other.is_static:
            return self.scaled(other.constant)
        return None

    def divided(self, other: "LinearSize") -> "LinearSize | None":
        """Returns this value divided by ``other``.

        None unless ``other`` is a positive constant that divides both ``of_n`` and ``constant``.
        """
        divisor = other.constant
        if not other.is_static or divisor <= 0 or self.of_n % divisor or self.constant % divisor:
            return None
        return LinearSize(self.of_n // divisor, self.constant // divisor)


SIZE_N = LinearSize(1)
Shape = tuple[LinearSize, ...]  # of a tensor


def static_size(number: int) -> LinearSize:
    """Returns a size that does not depend on n."""
    return LinearSize(0, number)


def shape_at(shape: Shape, size: int) -> tuple[int, ...]:
    """Returns a shape for n = ``size``."""
    return tuple(dimension.at(size) for dimension in shape)


def shape_text(shape: Shape) -> str:
    """Returns a shape as text: ``n x 32``."""
    return " x ".join(dimension.text for dimension in shape) or "one number"


def size_ladder(least: int, greatest: int, of_doubling: int = SIZES_OF_DOUBLING) -> tuple[int, ...]:
    """Returns the sizes to compile for calls of ``least`` to ``greatest``: ascending, up to ``greatest``.

    Below 8 these are the powers of two; from 8 on there are ``of_doubling``, at most 8, in each doubling: by
    default all multiples of a quarter of the power of two below. Raises UsageError for a range that is empty
    or begins below 1.
    """
    if not 1 <= least <= greatest:
        raise UsageError(
            f"sizes {least} to {greatest}: a range begins at 1 or more and ends where it begins or later"
        )
    sizes = [greatest]
    while sizes[-1] > least:
        sizes.append(_next_smaller(sizes[-1], of_doubling))
    return tuple(reversed([max(size, least) for size in sizes]))


def ladder_size(ladder: tuple[int, ...], size: int) -> int:
    """Returns the least size of a ``ladder``, ascending, that is ``size`` or more.

    Raises UsageError for a size below 1 or above the last of the ladder.
    """
    place = bisect_left(ladder, size)
    if size < 1 or place == len(ladder):
        raise UsageError(f"size {size} is out of the range, which ends at {ladder[-1]}")
    return ladder[place]


def _next_smaller(size: int, of_doubling: int) -> int:
    """Returns the greatest step of the ladder below ``size``."""
    below = size - 1
    power = 1 << (below.bit_length() - 1)
    step = power // of_doubling if power >= 8 else power
    return below // step * step


@dataclass(frozen=True)
class SizeRange:
    """The sizes from ``least`` to ``greatest`` at which a program is called.

    Raises UsageError for a range that is empty, begins below 1 or ends beyond 2**20.
    """

    least: int
    greatest: int

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.greatest <= GREATEST_SIZE:
            raise UsageError(
                f"sizes: found {self.text}, allowed a range of 1 to {GREATEST_SIZE}", "--sizes 1..4096"
            )

    @classmethod
    def parse(cls, text: str) -> "SizeRange":
        """Returns the range of a text such as ``1..4096`` or ``300``.

        Raises UsageError for text of another form, and for a range that is not allowed.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise UsageError(f"sizes: found {text[:40]!r}, allowed a size or a range", "--sizes 1..4096")
        return cls(int(match[1]), int(match[2] or match[1]))

    @property
    def text(self) -> str:
        """Returns the range as the command line takes it: ``1..4096``, or ``300`` for one size."""
        if self.least == self.greatest:
            return str(self.least)
        return f"{self.least}..{self.greatest}"

    @property
    def ladder(self) -> tuple[int, ...]:
        """Returns the sizes that are compiled, ascending."""
        return size_ladder(self.least, self.greatest)

    @property
    def tuned_sizes(self) -> tuple[int, ...]:
        """Returns up to TUNED_SIZES (4) sizes to tune, the greatest first.

        They are spread evenly over the ladder by index, both ends included.
        """
        return _spread(self.ladder, TUNED_SIZES)[::-1]

    @property
    def checked_sizes(self) -> tuple[int, ...]:
        """Returns the sizes to check, ascending: both ends, and middles between two adjacent compiled sizes.

        There are up to CHECKED_SIZES (6) middles, spread evenly over the ladder.
        """
        sizes = {self.least, self.greatest}
        for below, above in _spread(tuple(pairwise(self.ladder)), CHECKED_SIZES):
            sizes.add((below + above) // 2)
        return tuple(sorted(sizes))


def _spread(items: tuple[T, ...], count: int) -> tuple[T, ...]:
    """Returns up to ``count`` of the items, evenly spaced by index, the first and the last included."""
    if len(items) <= count:
        return items
    last = len(items) - 1
    return tuple(items[round(index * last / (count - 1))] for index in range(count))
