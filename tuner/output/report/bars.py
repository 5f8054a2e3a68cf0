"""Bars beside their names and figures; the drawing stretches, the words do not."""

from dataclasses import dataclass

from tuner.output.report.element import Markup, element

WIDTH, HEIGHT = 1000.0, 14.0  # of a bar's own units
WHISKER = 2.0  # units that an interval has at least, to be seen


@dataclass(frozen=True)
class Bar:
    """One quantity: a share of the longest, perhaps with the interval that it lies in."""

    name: str
    share: float  # 0 to 1
    figure: str
    kind: str = "ours"  # its colour
    interval: tuple[float, float] | None = None  # shares


def bars(rows: tuple[Bar, ...]) -> Markup:
    """Draws bars below one another."""
    return element("div", *(_row(row) for row in rows), class_="bars")


def _row(bar: Bar) -> Markup:
    drawing = element(
        "svg",
        element("rect", class_="track", width=WIDTH, height=HEIGHT),
        element("rect", class_=bar.kind, width=WIDTH * bar.share, height=HEIGHT),
        None if bar.interval is None else _whisker(*bar.interval),
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
    name, figure = element("span", bar.name, class_="name"), element("span", bar.figure, class_="figure")
    return element("div", name, drawing, figure, class_="bar")


def _whisker(low: float, high: float) -> Markup:
    width = max(WHISKER, WIDTH * (high - low))
    x = min(WIDTH - width, WIDTH * (low + high) / 2 - width / 2)
    return element("rect", class_="interval", x=x, width=width, height=HEIGHT)
