"""Draws the race: the share of the core's peak that each tuner reached, a panel for each shape."""

from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from benchmarks.race.race_file import ALIGNED, PICTURE_DTYPE, SHIFTED, Race
from benchmarks.race.rows import Row

TEMPLATE = Path(__file__).with_name("race.svg.j2")
LABELS, WIDTH = 190.0, 860.0  # of the labels at the left, and of all
APART, ROW, TOP = 22.0, 24.0, 92.0  # between panels; height of a line; of the first line
TICKS = (0.0, 0.5, 1.0)


@dataclass(frozen=True)
class ShareMark:
    """A share of the peak as drawn; hollow: operands 16 bytes past a cache line."""

    x: float
    y: float
    is_hollow: bool
    title: str


@dataclass(frozen=True)
class SharePanel:
    """The marks of a shape; texts stand where a tuner has no kernel."""

    title: str
    left: float
    width: float
    marks: tuple[ShareMark, ...]
    texts: tuple[tuple[float, str], ...]  # (y, "no kernel")

    @property
    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Returns position and text of each tick."""
        return tuple((round(self.width * tick, 1), f"{tick:.0%}") for tick in TICKS)


def svg(race: Race) -> str:
    """Returns the picture; the same results file gives the same text."""
    rows = [row for row in race.last_rows() if row["dtype"] == PICTURE_DTYPE]
    shapes = list(dict.fromkeys(row["shape"] for row in rows))
    names = list(dict.fromkeys(row["peer"] for row in rows))
    heights = {name: TOP + ROW * number for number, name in enumerate(names)}
    width = (WIDTH - LABELS - 30) / len(shapes) - APART
    panels = [
        _panel(shape, LABELS + (width + APART) * number, width, rows, heights)
        for number, shape in enumerate(shapes)
    ]
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=True
    )
    labels = [(heights[name], race.peers[name]["title"], name == "tuner") for name in names]
    return environment.from_string(TEMPLATE.read_text()).render(
        panels=panels,
        labels=labels,
        top=TOP - 14,
        bottom=TOP + ROW * len(names) - 8,
        budget=f"{race.longest_s:g} s",
        machine=race.machine,
    )


def _panel(shape: str, left: float, width: float, rows: list[Row], heights: dict[str, float]) -> SharePanel:
    marks: list[ShareMark] = []
    texts: list[tuple[float, str]] = []
    for row in rows:
        if row["shape"] != shape:
            continue
        height = heights[row["peer"]]
        shares = {offset: _share(row, offset) for offset in (SHIFTED, ALIGNED)}
        for offset, share in shares.items():
            if share is not None:
                title = f"{row['peer']} {shape} at +{offset}: {share:.1%}"
                mark = ShareMark(round(width * min(share, 1.0), 1), height, offset == SHIFTED, title)
                marks.append(mark)
        if shares[ALIGNED] is None:
            texts.append((height, "no kernel"))
    return SharePanel(shape, round(left, 1), round(width, 1), tuple(marks), tuple(texts))


def _share(row: Row, offset: str) -> float | None:
    part = row["offsets"].get(offset, {})
    share: float | None = part.get("of_peak")
    return share
