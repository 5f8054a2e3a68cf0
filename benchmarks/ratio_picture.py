"""Draws the ratios of the results files as ``docs/concepts/ratios.svg``.

    python -m benchmarks.ratio_picture docs/concepts/ratios.svg

The picture follows the reader's light or dark theme and fetches nothing.
"""

import argparse
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from benchmarks.ratios import (
    BF16_1_THREAD,
    F32_1_THREAD,
    LARGE,
    Ratio,
    RatioPair,
    coverage,
    f32_pairs,
    geometric_mean,
    machine,
    mean_of_pairs,
    ratios_in,
)

TEMPLATE = Path(__file__).with_name("ratios.svg.j2")
ROW = 24.0  # height of a line
TOP = 96.0  # of the first line
PLOT_LEFT, PLOT_WIDTH = 104.0, 204.0  # within a panel
FIGURES = (PLOT_LEFT + PLOT_WIDTH + 44, PLOT_LEFT + PLOT_WIDTH + 88)  # where figures end: one thread, two
PANEL_LEFTS = (20.0, 442.0)
APART = 4.5  # of the marks from the middle of their line


@dataclass(frozen=True)
class RatioAxis:
    """A logarithmic axis of ratios."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def x(self, ratio: float) -> float:
        """Returns the horizontal position of a ratio in a panel of the picture."""
        share = math.log(ratio / self.low) / math.log(self.high / self.low)
        return round(PLOT_LEFT + PLOT_WIDTH * share, 1)


@dataclass(frozen=True)
class RatioMark:
    """A ratio with its interval, as drawn."""

    kind: str  # class in the style sheet: one thread, two threads
    x: float
    ends: tuple[float, float] | None  # of the interval; a mean has none
    y: float
    is_hollow: bool
    figure: str
    figure_x: float
    title: str


@dataclass(frozen=True)
class RatioLine:
    """A line of a panel: a shape, or a heading without marks."""

    label: str
    y: float
    marks: tuple[RatioMark, ...] = ()
    kind: str = "shape"


@dataclass(frozen=True)
class RatioPanel:
    """A list of lines over one axis."""

    title: str
    left: float
    axis: RatioAxis
    lines: tuple[RatioLine, ...]

    @property
    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Returns place and text of each tick."""
        return tuple((self.axis.x(tick), f"{tick:g}x") for tick in self.axis.ticks)


def svg() -> str:
    """Returns the picture; the same results files give the same text."""
    pairs, bf16 = f32_pairs(), ratios_in(BF16_1_THREAD)
    large = [pair for pair in pairs if pair.one.is_large]
    others = [pair for pair in pairs if not pair.one.is_large]
    panels = (
        _panel(
            f"Large: every size {LARGE} or more",
            PANEL_LEFTS[0],
            RatioAxis(0.95, 1.3, (1, 1.1, 1.2)),
            large,
            bf16,
        ),
        _panel("Small or skinny", PANEL_LEFTS[1], RatioAxis(0.85, 2.8, (1, 1.5, 2, 2.5)), others, ()),
    )
    bottom = max(panel.lines[-1].y for panel in panels)
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=True
    )
    return environment.from_string(TEMPLATE.read_text()).render(
        panels=panels,
        top=TOP - ROW,
        bottom=bottom,
        row=ROW,
        figures=FIGURES,
        notes=_notes(pairs, bf16),
        f32_baseline=_library(pairs[0].one),
        machine=machine(F32_1_THREAD),
    )


def _panel(
    title: str, left: float, axis: RatioAxis, pairs: Sequence[RatioPair], bf16: Sequence[Ratio]
) -> RatioPanel:
    lines = [_pair_line(pair, axis, TOP + ROW * index) for index, pair in enumerate(pairs)]
    lines.append(_mean_line(mean_of_pairs(pairs), axis, TOP + ROW * len(lines)))
    if bf16:
        lines.append(
            RatioLine(f"bf16, against {_library(bf16[0])}, 1 thread", TOP + ROW * len(lines), kind="heading")
        )
        for each in bf16:
            y = TOP + ROW * len(lines)
            lines.append(RatioLine(each.shape, y, (_mark("one", each, axis, y),)))
        lines.append(_mean_line((geometric_mean(bf16),), axis, TOP + ROW * len(lines)))
    return RatioPanel(title, left, axis, tuple(lines))


def _pair_line(pair: RatioPair, axis: RatioAxis, y: float) -> RatioLine:
    two = _mark("two", pair.two, axis, y + APART, is_hollow=pair.is_disturbed)
    return RatioLine(pair.one.shape, y, (_mark("one", pair.one, axis, y - APART), two))


def _mean_line(means: Iterable[float], axis: RatioAxis, y: float) -> RatioLine:
    marks = (
        RatioMark(kind, axis.x(mean), None, y, False, f"{mean:.2f}", figure_x, f"geometric mean {mean:.2f}")
        for kind, mean, figure_x in zip(("one", "two"), means, FIGURES, strict=False)
    )
    return RatioLine("geometric mean", y, tuple(marks), kind="mean")


def _mark(kind: str, ratio: Ratio, axis: RatioAxis, y: float, is_hollow: bool = False) -> RatioMark:
    title = f"{ratio.shape}: {ratio.ratio:.3f}, {ratio.low:.3f} to {ratio.high:.3f}"
    ends = (axis.x(ratio.low), axis.x(ratio.high))
    figure_x = FIGURES[0] if kind == "one" else FIGURES[1]
    return RatioMark(kind, axis.x(ratio.ratio), ends, y, is_hollow, f"{ratio.ratio:.2f}", figure_x, title)


def _library(ratio: Ratio) -> str:
    """Returns the name and version of a library."""
    name, version, *_ = ratio.baseline.replace("(", "").replace(")", "").replace(",", "").split()
    if version == "torch":
        return f"{name} of PyTorch {ratio.baseline.split()[2].split('+')[0]}"
    return f"{name.replace('openblas', 'OpenBLAS')} {'.'.join(version.split('.')[:3])}"


def _notes(pairs: Sequence[RatioPair], bf16: Sequence[Ratio]) -> tuple[str, ...]:
    disturbed = ", ".join(pair.two.shape for pair in pairs if pair.is_disturbed)
    hollow = f"Hollow ({disturbed}): kernel and library both ran at the speed of one thread; not in the mean."
    (rounds,) = {
        each.rounds for each in (*bf16, *(pair.one for pair in pairs), *(pair.two for pair in pairs))
    }
    bars = f"Bars: {coverage(rounds):.0%} confidence intervals of the median of {rounds} interleaved rounds."
    return (
        f"{bars} Logarithmic axes, one per panel.",
        *((hollow,) if disturbed else ()),
        "Other libraries and processors, and a GPU: further down the page.",
    )


def main() -> None:
    """Writes the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, help="the file to write")
    parser.parse_args().output.write_text(svg())


if __name__ == "__main__":
    main()
