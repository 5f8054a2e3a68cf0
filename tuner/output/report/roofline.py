"""The roofline of a machine with the best of a run under it.

Williams et al., 2009, https://doi.org/10.1145/1498765.1498785.
"""

import math

from tuner.analysis.answer import timed
from tuner.analysis.run_comparison import distrust
from tuner.core.machine import Roofline
from tuner.core.problem import Problem
from tuner.core.runs import Run, StoredTrial
from tuner.output.formatting import count_text, speed_text
from tuner.output.report.axis import powers_of_ten
from tuner.output.report.element import Markup, element, number

WIDTH, HEIGHT = 720.0, 240.0  # of the plotting area, in the drawing's own units
ROOM = 10.0, 3.0  # times that intensity and speed go beyond what is drawn
DECADES = 2.0  # of speed below the roof, at least


def roofline(run: Run, roof: Roofline, best: StoredTrial) -> Markup:
    """Draws both roofs, the best schedule and the baseline at the problem's intensity."""
    problem, median_s = run.settings.problem, timed(best).median_s
    intensity, ridge = problem.flop / problem.bytes, roof.flop_per_s / roof.bytes_per_s
    times = [median_s] if run.baseline is None else [median_s, run.baseline.measurement.median_s]
    speeds = [problem.flop / each for each in times]
    plot = _Plot(
        (min(intensity, ridge) / ROOM[0], max(intensity, ridge) * ROOM[0]),
        (min(*speeds, roof.flop_per_s / 10**DECADES) / ROOM[1], max(*speeds, roof.flop_per_s) * ROOM[1]),
    )
    names = ("best", "baseline")
    drawing = element(
        "svg",
        element("title", f"Roofline of run {run.id}"),
        plot.axes(),
        element("path", class_="roof", d=plot.roofs(roof)),
        element("line", class_="grid", x1=plot.x(intensity), x2=plot.x(intensity), y1=0.0, y2=HEIGHT),
        *(plot.point(intensity, speed, name) for speed, name in zip(speeds, names, strict=False)),
        viewBox=f"-76 -30 {WIDTH + 88:g} 322",
        role="img",
        class_="plot",
    )
    return element(
        "figure",
        element("div", drawing, class_="wide"),
        element("figcaption", _caption(run, problem, roof, best)),
    )


class _Plot:
    """Axes of intensity and speed, both logarithmic."""

    def __init__(self, intensities: tuple[float, float], speeds: tuple[float, float]) -> None:
        self._intensities = intensities
        self._speeds = speeds

    def x(self, intensity: float) -> float:
        return WIDTH * _share(intensity, *self._intensities)

    def y(self, speed: float) -> float:
        return HEIGHT * (1 - _share(speed, *self._speeds))

    def roofs(self, roof: Roofline) -> str:
        """Returns the path of the slope that memory sets, then the level that arithmetic sets."""
        low, high = self._intensities
        ridge = roof.flop_per_s / roof.bytes_per_s
        start = max(low, self._speeds[0] / roof.bytes_per_s)
        points = (
            (start, start * roof.bytes_per_s),
            (ridge, roof.flop_per_s),
            (high, roof.flop_per_s),
        )
        return "M" + " ".join(f"{number(self.x(x))} {number(self.y(y))}" for x, y in points)

    def point(self, intensity: float, speed: float, name: str) -> Markup:
        x, y = self.x(intensity), self.y(speed)
        is_best = name == "best"  # to the left of its point; the baseline to the right, at whatever height
        words = element(
            "text",
            f"{name} {speed / 1e9:.4g}",
            x=x - 10 if is_best else x + 10,
            y=y + 4,
            text_anchor="end" if is_best else "start",
            class_="halo",
        )
        return element("g", element("circle", class_=f"point {name}", cx=x, cy=y, r=5.0), words)

    def axes(self) -> Markup:
        lines = []
        for speed in powers_of_ten(*self._speeds):
            y = self.y(speed)
            lines.append(element("line", class_="grid", x1=0.0, x2=WIDTH, y1=y, y2=y))
            lines.append(element("text", f"{speed / 1e9:g}", x=-8.0, y=y + 4, text_anchor="end"))
        for intensity in powers_of_ten(*self._intensities):
            x, under = self.x(intensity), HEIGHT + 20
            lines.append(element("text", f"{intensity:g}", x=x, y=under, text_anchor="middle"))
        unit = {"class_": "unit"}
        lines.append(element("text", "GFLOP/s", x=-72.0, y=-12.0, **unit))
        lines.append(element("text", "flop/byte", x=WIDTH / 2, y=HEIGHT + 46, text_anchor="middle", **unit))
        return element("g", *lines)


def _share(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)


def _caption(run: Run, problem: Problem, roof: Roofline, best: StoredTrial) -> str:
    least_s = roof.least_s(problem.flop, problem.bytes, run.machine.l3_bytes)
    who = "this GPU" if run.machine.chip else count_text(run.settings.threads, "thread")
    fits = problem.bytes <= run.machine.l3_bytes
    held = "The last cache holds the problem: only the level roof bounds it. " if fits else ""
    arithmetic = f"{speed_text(roof.flop_per_s / 1e9)} ({roof.flop_source})"
    memory = f"{roof.bytes_per_s / 1e9:.4g} GB/s (measured)"
    reason = distrust(run, best)
    share = f"{least_s / timed(best).median_s:.1%} of what {who} can do"
    reached = f"No share of the roofs: {reason}." if reason else f"The best reaches {share}."
    return f"{reached} {held}Roofs: {arithmetic}, {memory}."
