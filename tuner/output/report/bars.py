"""Bars next to their names and figures; the bars scale with the page, the texts do not."""

from dataclasses import dataclass

WIDTH = 1000.0  # of the drawing, in SVG units
WHISKER = 2.0  # least drawn width of an interval, in units, so that it stays visible


@dataclass(frozen=True)
class Bar:
    """One quantity as a share of the longest bar, optionally with its confidence interval."""

    name: str
    share: float  # 0 to 1
    figure: str
    kind: str = "ours"  # its colour
    interval: tuple[float, float] | None = None  # shares

    @property
    def length(self) -> float:
        """Returns the drawn length, in units."""
        return WIDTH * self.share

    @property
    def whisker(self) -> tuple[float, float] | None:
        """Returns the left end and the width of the drawn interval, in units; None without an interval."""
        if self.interval is None:
            return None
        low, high = self.interval
        width = max(WHISKER, WIDTH * (high - low))
        return min(WIDTH - width, WIDTH * (low + high) / 2 - width / 2), width
