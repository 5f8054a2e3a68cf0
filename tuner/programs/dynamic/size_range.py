"""The range of a program's dynamic size, and which of its sizes are compiled, tuned and checked."""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.core.size_ladder import size_ladder

T = TypeVar("T")
GREATEST_SIZE = 1 << 20
TEXT = re.compile(r"([0-9]{1,7})(?:\.\.([0-9]{1,7}))?")
TUNED_SIZES = 4  # of a range: with the fallback to a similar fusion the sizes between them are near
CHECKED_SIZES = 6


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
        """Returns the range of a text such as ``1..4096`` or ``300``. Raises UsageError for other texts."""
        match = TEXT.fullmatch(text)
        if match is None:
            raise UsageError(f"sizes: found {text[:40]!r}, allowed a size or a range", "--sizes 1..4096")
        return cls(int(match[1]), int(match[2] or match[1]))

    @property
    def text(self) -> str:
        """Returns the range as the command line takes it."""
        if self.least == self.greatest:
            return str(self.least)
        return f"{self.least}..{self.greatest}"

    @property
    def ladder(self) -> tuple[int, ...]:
        """Returns the sizes that are compiled, ascending."""
        return size_ladder(self.least, self.greatest)

    @property
    def tuned_sizes(self) -> tuple[int, ...]:
        """Returns the sizes to tune, the greatest first: both ends, and powers of the ladder between them."""
        return _spread(self.ladder, TUNED_SIZES)[::-1]

    @property
    def checked_sizes(self) -> tuple[int, ...]:
        """Returns the sizes to check: both ends, and sizes between two compiled ones."""
        sizes = {self.least, self.greatest}
        for below, above in _spread(tuple(pairwise(self.ladder)), CHECKED_SIZES):
            sizes.add((below + above) // 2)
        return tuple(sorted(sizes))


def require_on_cpu(target: TargetName, sizes: SizeRange) -> None:
    """Raises UsageError for a range of sizes on another target than a CPU."""
    if not target.is_on_cpu:
        line = f"sizes {sizes.text} cannot be combined with target {target}"
        raise UsageError(f"{line}: programs of a dynamic size run on a CPU", "--target cpu")


def _spread(items: tuple[T, ...], count: int) -> tuple[T, ...]:
    """Returns up to ``count`` items, evenly by their place, with both ends."""
    if len(items) <= count:
        return items
    last = len(items) - 1
    return tuple(items[round(number * last / (count - 1))] for number in range(count))
