"""Bars next to their names and figures; the bars scale with the page, the texts do not."""

from dataclasses import dataclass

WIDTH = 1000.0  # of the drawing, in SVG units
WHISKER = 2.0  # least drawn width of an interval, in units, so that it stays visible


@dataclass(frozen=True)
class Bar:
    """A bar of a chart: a quantity as a share of the longest bar, optionally with its confidence interval."""

    name: str
    share: float  # 0 to 1
    figure: str
    kind: str = "ours"  # its colour
    interval: tuple[float, float] | None = None  # shares

    @property
    def length(self) -> float:
        """Returns the drawn length of the bar, in SVG units."""
        return WIDTH * self.share

    @property
    def whisker(self) -> tuple[float, float] | None:
        """Returns (left end, width) of the drawn interval in SVG units; None without an interval."""
        if self.interval is None:
            return None
        low, high = self.interval
        width = max(WHISKER, WIDTH * (high - low))
        return min(WIDTH - width, WIDTH * (low + high) / 2 - width / 2), width
