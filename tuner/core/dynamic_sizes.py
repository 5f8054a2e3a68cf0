"""Sizes n, or n and m, that are known only at a call: what depends on them, and for which code is compiled.

Code of static shapes is compiled for some n of a range, a ladder. A call of any size in the range uses the
code of the next greater size, with its operands padded. Four sizes for each doubling keep the padding below a
quarter of a call's size, and below a sixth on average. Of two sizes, each has its ladder.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TypeVar

from tuner.core.errors import UsageError

SIZES_OF_DOUBLING = 4
GREATEST_SIZE = 1 << 20
TUNED_SIZES = 4  # of a range: with the fallback to a similar fusion the sizes between them are near
CHECKED_MIDDLES = (6, 1)  # of one size, of each of two
NAMES = ("n", "m")
MOST_SIZES = len(NAMES)
SIGNS = {"": "1", "+": "1", "-": "-1"}  # factors of n and m that are not written
_TEXT = re.compile(r"([0-9]{1,7})(?:\.\.([0-9]{1,7}))?")
_TERM = re.compile(r"(?P<factor>[+-]?[0-9]*)(?P<of>[nm]?)")
_TERMS = re.compile(r"[+-]?[^+-]+")
Sizes = int | tuple[int, int]  # the value of n, or of n and m
T = TypeVar("T")


def numbers_of(sizes: Sizes) -> tuple[int, ...]:
    """Returns the values of n and m: one where there is no m."""
    return (sizes,) if isinstance(sizes, int) else sizes


def sizes_text(sizes: Sizes) -> str:
    """Returns sizes as people write them after "n = ": ``8``, or ``8, m = 2``."""
    return ", m = ".join(map(str, numbers_of(sizes)))


@dataclass(frozen=True)
class LinearSize:
    """An integer that is linear in the sizes of a call: ``of_n * n + of_m * m + constant``."""

    of_n: int = 0
    constant: int = 0
    of_m: int = 0

    @classmethod
    def parse(cls, text: str) -> "LinearSize":
        """Returns the function of a text such as ``n``, ``2n+m+1`` or ``8``, as ``text`` writes it.

        Raises UsageError for another text.
        """
        factors = {"n": 0, "m": 0, "": 0}
        for term in _TERMS.findall(text) or [""]:
            match = _TERM.fullmatch(term)
            if match is None or not (match["of"] or match["factor"].strip("+-")):
                raise UsageError(f"found the size {text[:40]!r}, allowed one such as n, 2n+1, m or 8")
            number = SIGNS.get(match["factor"], match["factor"])
            factors[match["of"]] += int(number)
        return cls(factors["n"], factors[""], factors["m"])

    @property
    def is_static(self) -> bool:
        """Returns whether the number depends neither on n nor on m."""
        return not self.of_n and not self.of_m

    def is_of(self, name: str) -> bool:
        """Returns whether the number depends on n, or on m, as ``name`` says, and not on the other one."""
        if name == NAMES[0]:
            return bool(self.of_n) and not self.of_m
        return bool(self.of_m) and not self.of_n

    @property
    def text(self) -> str:
        """Returns the function as people write it: ``n``, ``2n+1``, ``8``."""
        if self.is_static:
            return str(self.constant)
        terms = (_term(self.of_n, "n"), _term(self.of_m, "m"), _term(self.constant))
        return "".join(terms).removeprefix("+")

    def at(self, sizes: Sizes) -> int:
        """Returns the value of the function for the sizes of a call."""
        if isinstance(sizes, int):
            return self.of_n * sizes + self.constant
        n, m = sizes
        return self.of_n * n + self.of_m * m + self.constant

    def size_for(self, number: int) -> int:
        """Returns the n, or the m, rounded down, for which the value of the function is ``number``.

        Raises ZeroDivisionError if the value is static. Of a function of both sizes, m counts as 0.
        """
        return (number - self.constant) // (self.of_n or self.of_m)

    def plus(self, other: "LinearSize") -> "LinearSize":
        return LinearSize(self.of_n + other.of_n, self.constant + other.constant, self.of_m + other.of_m)

    def minus(self, other: "LinearSize") -> "LinearSize":
        return self.plus(other.scaled(-1))

    def scaled(self, factor: int) -> "LinearSize":
        return LinearSize(self.of_n * factor, self.constant * factor, self.of_m * factor)

    def times(self, other: "LinearSize") -> "LinearSize | None":
        """Returns the product of two functions; None where it is not linear."""
        if self.is_static:
            return other.scaled(self.constant)
        if other.is_static:
            return self.scaled(other.constant)
        return None

    def divided(self, other: "LinearSize") -> "LinearSize | None":
        """Returns this value divided by ``other``.

        None unless ``other`` is a positive constant that divides all factors and the constant.
        """
        divisor = other.constant
        if not other.is_static or divisor <= 0:
            return None
        if any(number % divisor for number in (self.of_n, self.constant, self.of_m)):
            return None
        return LinearSize(self.of_n // divisor, self.constant // divisor, self.of_m // divisor)


def _term(factor: int, name: str = "") -> str:
    """Returns a term of a sum with its sign, such as ``+2n`` or ``-1``; "" where it is 0."""
    if not factor:
        return ""
    if name and abs(factor) == 1:
        return f"{factor:+d}".replace("1", name)
    return f"{factor:+d}{name}"


SIZE_N = LinearSize(1)
Shape = tuple[LinearSize, ...]  # of a tensor


def static_size(number: int) -> LinearSize:
    """Returns a size that does not depend on n."""
    return LinearSize(0, number)


def shape_at(shape: Shape, sizes: Sizes) -> tuple[int, ...]:
    """Returns a shape for the sizes of a call."""
    return tuple(dimension.at(sizes) for dimension in shape)


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


def ladder_size(ladder: Sequence[int], size: int) -> int:
    """Returns the least size of a ``ladder``, ascending, that is ``size`` or more.

    Raises UsageError for a size below 1 or above the last of the ladder.
    """
    place = bisect_left(ladder, size)
    if size < 1 or place == len(ladder):
        raise UsageError(f"size {size} is out of the range, which ends at {ladder[-1]}")
    return ladder[place]


def compiled_sizes_for(ladder: Iterable[Sizes], sizes: Sizes) -> Sizes:
    """Returns the least sizes of a ladder that are ``sizes`` or more, n as well as m.

    ``ladder``: all pairs of some n and some m, or some n. Raises UsageError as ``ladder_size``.
    """
    steps = zip(*map(numbers_of, ladder), strict=True)
    chosen = map(ladder_size, map(sorted, map(set, steps)), numbers_of(sizes))
    return sizes_of(list(chosen))


def sizes_of(numbers: Sequence[int]) -> Sizes:
    """Returns the sizes of one or two numbers: n, or n and m. Raises ValueError for another count."""
    if len(numbers) == 1:
        return numbers[0]
    n, m = numbers
    return n, m


def _next_smaller(size: int, of_doubling: int) -> int:
    """Returns the greatest step of the ladder below ``size``."""
    below = size - 1
    power = 1 << (below.bit_length() - 1)
    step = power // of_doubling if power >= 8 else power
    return below // step * step


@dataclass(frozen=True)
class SizeRange:
    """The sizes from ``least`` to ``greatest`` at which a program is called; of n and m, a range of each.

    Raises UsageError for a range that is empty, begins below 1 or ends beyond 2**20.
    """

    least: Sizes
    greatest: Sizes

    def __post_init__(self) -> None:
        if not all(1 <= least <= greatest <= GREATEST_SIZE for least, greatest in self._ends):
            raise UsageError(
                f"sizes: found {self.text}, allowed a range of 1 to {GREATEST_SIZE}", "--sizes 1..4096"
            )

    @classmethod
    def parse(cls, text: str) -> "SizeRange":
        """Returns the range of a text such as ``1..4096`` or ``300``; ``1..512,1..8`` is one of n and of m.

        Raises UsageError for text of another form, and for a range that is not allowed.
        """
        ends: list[tuple[int, int]] = []
        for part in text.split(","):
            match = _TEXT.fullmatch(part)
            if match is None or len(ends) == MOST_SIZES:
                raise UsageError(
                    f"sizes: found {text[:40]!r}, allowed a size or a range, or two", "--sizes 1..4096"
                )
            ends.append((int(match[1]), int(match[2] or match[1])))
        least, greatest = zip(*ends, strict=True)
        return cls(sizes_of(least), sizes_of(greatest))

    @property
    def _ends(self) -> tuple[tuple[int, int], ...]:
        return tuple(zip(numbers_of(self.least), numbers_of(self.greatest), strict=True))

    @property
    def text(self) -> str:
        """Returns the range as the command line takes it: ``1..4096``, or ``300`` for one size."""
        texts = []
        for least, greatest in self._ends:
            texts.append(str(least) if least == greatest else f"{least}..{greatest}")
        return ",".join(texts)

    @property
    def named_text(self) -> str:
        """Returns the range of n, and of m where there is one: ``n = 1..512, m = 1..8``."""
        return "n = " + self.text.replace(",", ", m = ")

    @property
    def is_of_two(self) -> bool:
        """Returns whether there are two sizes, n and m."""
        return len(self._ends) == MOST_SIZES

    def __contains__(self, sizes: Sizes) -> bool:
        """Returns whether a call of ``sizes`` is in the range."""
        ends = zip(numbers_of(sizes), self._ends, strict=True)
        return all(least <= size <= greatest for size, (least, greatest) in ends)

    @property
    def ladder(self) -> tuple[Sizes, ...]:
        """Returns the sizes that are compiled, ascending; of two sizes all pairs."""
        return _pairs([size_ladder(least, greatest) for least, greatest in self._ends])

    @property
    def tuned_sizes(self) -> tuple[Sizes, ...]:
        """Returns up to TUNED_SIZES (4) sizes to tune, the greatest first.

        They are spread evenly over the ladder by index, both ends included; of two sizes they are the pairs
        of ends.
        """
        count = TUNED_SIZES // len(self._ends)
        return _pairs([_spread(size_ladder(*ends), count) for ends in self._ends])[::-1]

    @property
    def checked_sizes(self) -> tuple[Sizes, ...]:
        """Returns the sizes to check, ascending: both ends, and middles between two adjacent compiled sizes.

        There are up to 6 middles, spread evenly over the ladder; of two sizes one of each.
        """
        count = CHECKED_MIDDLES[len(self._ends) - 1]
        checked = []
        for least, greatest in self._ends:
            sizes = {least, greatest}
            for below, above in _spread(tuple(pairwise(size_ladder(least, greatest))), count):
                sizes.add((below + above) // 2)
            checked.append(tuple(sorted(sizes)))
        return _pairs(checked)


def _pairs(sizes: Sequence[tuple[int, ...]]) -> tuple[Sizes, ...]:
    """Returns the sizes of n, or all pairs of those of n and of m, ascending."""
    return tuple(map(sizes_of, product(*sizes)))


def _spread(items: tuple[T, ...], count: int) -> tuple[T, ...]:
    """Returns up to ``count`` items, evenly spaced by index: the first and the last; of one the last."""
    if len(items) <= count:
        return items
    if count == 1:
        return items[-1:]
    last = len(items) - 1
    return tuple(items[round(index * last / (count - 1))] for index in range(count))
