"""Bars next to their names and figures; the drawing stretches, the words do not."""

from dataclasses import dataclass

WIDTH = 1000.0  # of the drawing, in its own units
WHISKER = 2.0  # units that an interval has at least, to be seen


@dataclass(frozen=True)
class Bar:
    """One quantity: a share of the longest, perhaps with the interval that it lies in."""

    name: str
    share: float  # 0 to 1
    figure: str
    kind: str = "ours"  # its colour
    interval: tuple[float, float] | None = None  # shares

    @property
    def length(self) -> float:
        """Returns how long it is drawn."""
        return WIDTH * self.share

    @property
    def whisker(self) -> tuple[float, float] | None:
        """Returns the left end and the width of the interval as drawn."""
        if self.interval is None:
            return None
        low, high = self.interval
        width = max(WHISKER, WIDTH * (high - low))
        return min(WIDTH - width, WIDTH * (low + high) / 2 - width / 2), width
