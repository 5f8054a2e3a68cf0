"""The range of a program's dynamic size, and which of its sizes are compiled, tuned and checked."""

import re
from dataclasses import dataclass

from tuner.core.errors import UsageError
from tuner.core.size_ladder import size_ladder

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
        """Returns the sizes to check: both ends, and sizes that lie one or more below a compiled one."""
        ends = {self.least, self.greatest}
        inner = (max(self.least, size - size // 8 - 1) for size in _spread(self.ladder, CHECKED_SIZES))
        return tuple(sorted(ends.union(inner)))


def _spread(sizes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Returns up to ``count`` of ascending sizes, evenly by their number in the list, with both ends."""
    if len(sizes) <= count:
        return sizes
    last = len(sizes) - 1
    return tuple(sizes[round(number * last / (count - 1))] for number in range(count))
