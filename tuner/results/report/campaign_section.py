"""A report's section about a campaign: the map of times, the curve of portfolios, the worst choices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuner.analysis.portfolio import (
    HeldOutChoice,
    choose_portfolio,
    held_out_choices,
    regret_held_out,
    regret_in_sample,
    usable_columns,
)
from tuner.analysis.time_matrix import TimeMatrix
from tuner.core.candidate import Candidate
from tuner.core.problem import Problem
from tuner.core.reliability import Reliability, reliability_of_all
from tuner.core.requests import Campaign
from tuner.results.output.formatting import knobs_text
from tuner.results.report.content import HEIGHT, WIDTH, ReportedCampaign, Ticks, line

SIZE_LIMIT = 10  # of a portfolio on the plot
STEP = 0.05  # of the axis of shares, whose ticks are multiples
CELL = 14.0  # units
SHADES = (0.5, 0.75, 0.9, 0.95, 0.99)  # shares of the best speed from which on a cell is one shade darker
LETTER = 7.0  # width of a letter in units, at most
CHOICES_SHOWN = 10  # the worst


@dataclass(frozen=True)
class PortfolioPoint:
    """The efficiency of a portfolio of ``size`` configurations: best known time / its time, 0 to 1."""

    size: int
    in_sample: float | None  # geometric mean over the problems; None, as below: not known
    held_out: float | None  # geometric mean, each problem held out once
    worst: float | None  # the worst problem, in sample


@dataclass(frozen=True)
class PortfolioCurve:
    """The plot of the efficiency of portfolios over their number of configurations, in SVG units."""

    points: tuple[PortfolioPoint, ...]  # by size

    @property
    def bottom(self) -> float:
        """Returns the efficiency at the lower edge: the largest multiple of 0.05 below all points."""
        shares: list[float | None] = []
        for point in self.points:
            shares += [point.in_sample, point.held_out, point.worst]
        known = [share for share in shares if share is not None]
        return max(0.0, STEP * int((min(known, default=1.0) - 1e-9) / STEP))

    @property
    def up(self) -> Ticks:
        """Returns the ticks of the axis of efficiency: (y, label)."""
        count = round((1 - self.bottom) / STEP)
        step = max(1, -(-count // 5))
        shares = [self.bottom + STEP * index for index in range(0, count + 1, step)]
        return tuple((self.y(share), f"{100 * share:.0f}%") for share in shares)

    @property
    def across(self) -> Ticks:
        """Returns the ticks of the axis of sizes: (x, label)."""
        return tuple((self.x(point.size), str(point.size)) for point in self.points)

    @property
    def paths(self) -> tuple[tuple[str, str], ...]:
        """Returns (field of PortfolioPoint, SVG path) of each curve with two or more known points."""
        drawn = []
        for name in ("in_sample", "held_out", "worst"):
            known = [(p.size, share) for p in self.points if (share := getattr(p, name)) is not None]
            if len(known) > 1:
                drawn.append((name, line((self.x(size), self.y(share)) for size, share in known)))
        return tuple(drawn)

    def x(self, size: int) -> float:
        """Returns the x coordinate of portfolios of ``size`` configurations."""
        return WIDTH * (size - 0.5) / len(self.points)

    def y(self, share: float) -> float:
        """Returns the y coordinate of an efficiency, 0 to 1."""
        if self.bottom < 1:
            return HEIGHT * (1 - share) / (1 - self.bottom)
        return 0.0


def portfolio_curve_of(matrix: TimeMatrix) -> PortfolioCurve | None:
    """Returns the plot for portfolios of 1 to 10 configurations; None with fewer than 2 usable ones."""
    sizes = range(1, min(SIZE_LIMIT, len(usable_columns(matrix))) + 1)
    if len(sizes) < 2:
        return None
    points = []
    for size in sizes:
        inside = regret_in_sample(matrix, choose_portfolio(matrix, size))
        held_out = regret_held_out(matrix, size).geomean if len(matrix.problems) > 1 else None
        points.append(PortfolioPoint(size, inside.geomean, held_out, inside.worst))
    return PortfolioCurve(tuple(points))


@dataclass(frozen=True)
class TimedCell:
    """A cell of the map: one problem with one configuration, its position in SVG units and its efficiency."""

    x: float
    y: float
    problem: str
    column: int
    efficiency: float | None  # best time of the problem / time; None: not timed
    applies: bool
    reliability: Reliability  # of the problem's times

    @property
    def shade(self) -> str:
        """Returns the cell's shade, "0" (slow) to "5" (fastest); "none" if it has no reliable time."""
        if self.efficiency is None or self.reliability.unreliable:
            return "none"
        return str(sum(self.efficiency >= bound for bound in SHADES))

    @property
    def text(self) -> str:
        """Returns the cell's tooltip: ``of_best_text``, "not timed" or "does not apply"."""
        if self.efficiency is not None:
            return of_best_text(self.efficiency, self.reliability)
        if self.applies:
            return "not timed"
        return "does not apply"


@dataclass(frozen=True)
class TimeMap:
    """The map of a campaign's times: a line per problem, a column per configuration; in SVG units."""

    problems: tuple[str, ...]  # labels of the lines
    columns: tuple[int, ...]  # indices of the configurations with a time, most timed first
    cells: tuple[TimedCell, ...]

    @property
    def cell(self) -> float:
        """Returns the width and height of a cell, with the gap to the next one."""
        return CELL

    @property
    def margin(self) -> float:
        """Returns the width of the labels, to the left of the cells."""
        return 10 + LETTER * max(map(len, self.problems))

    @property
    def width(self) -> float:
        return CELL * len(self.columns)

    @property
    def height(self) -> float:
        return CELL * len(self.problems)


def of_best_text(efficiency: float, reliability: Reliability) -> str:
    """Returns an efficiency (0 to 1) as text, "97.1% of the best"; for unreliable times "timed, unreliable".

    Times that may be unreliable are marked.
    """
    if reliability.unreliable:
        return "timed, unreliable"
    mark = "" if reliability.is_reliable else f" ({reliability.word})"
    return f"{100 * efficiency:.1f}% of the best{mark}"


def time_map_of(matrix: TimeMatrix, reliability: Sequence[Reliability]) -> TimeMap:
    """Returns the map of a matrix, which must have a time; ``reliability``: of the times of each problem."""
    timed = matrix.is_timed()
    efficiency = matrix.efficiency()
    uses = timed.sum(axis=0)
    used = [column for column in range(len(uses)) if uses[column]]
    columns = tuple(sorted(used, key=lambda column: (-uses[column], column)))
    shapes = [problem.shape for problem in matrix.problems]
    labels = []
    for problem in matrix.problems:
        is_only = shapes.count(problem.shape) == 1
        labels.append(problem.shape if is_only else problem.key.partition(" ")[2])
    cells = []
    for row, label in enumerate(labels):
        for index, column in enumerate(columns):
            share = float(efficiency[row, column]) if timed[row, column] else None
            applies = matrix.applies[row][column]
            cells.append(TimedCell(CELL * index, CELL * row, label, column, share, applies, reliability[row]))
    return TimeMap(tuple(labels), columns, tuple(cells))


@dataclass(frozen=True)
class CampaignSection:
    """The section of a report about a campaign: map of times, curve of portfolios, the worst choices."""

    campaign: Campaign
    columns: tuple[Candidate, ...]  # the configurations of the map, which shows their indices
    time_map: TimeMap | None  # None: nothing was timed
    curve: PortfolioCurve | None  # None: too little was timed, or a time is unreliable
    choices: tuple[HeldOutChoice, ...]  # the 10 least efficient with a time, the least first
    untimed_choices: int  # problems whose choice was never timed on them
    reliability: Mapping[Problem, Reliability]  # of the times of each problem

    @property
    def whole(self) -> Reliability:
        """Returns the joint reliability of the times of all problems."""
        return reliability_of_all(tuple(self.reliability.values()))

    @property
    def problems(self) -> int:
        return len(self.campaign.runs)


def campaign_section_of(reported: ReportedCampaign) -> CampaignSection:
    """Returns the section of a report about one campaign; parts without times are None or empty."""
    matrix = reported.matrix
    trusts = tuple(run.reliability for run in reported.campaign.runs)
    is_timed = bool(matrix.is_timed().any())
    choices = held_out_choices(matrix) if is_timed and len(matrix.problems) > 1 else ()
    timed = [choice for choice in choices if choice.efficiency is not None]
    timed.sort(key=lambda choice: choice.efficiency or 0.0)
    return CampaignSection(
        campaign=reported.campaign,
        columns=matrix.columns,
        time_map=time_map_of(matrix, trusts) if is_timed else None,
        curve=None if not is_timed or reliability_of_all(trusts).unreliable else portfolio_curve_of(matrix),
        choices=tuple(timed[:CHOICES_SHOWN]),
        untimed_choices=len(choices) - len(timed),
        reliability=dict(zip(matrix.problems, trusts, strict=True)),
    )


def share_text(share: float | None) -> str:
    """Returns a share of the best speed in percent, "97.1%"; "unknown" for None."""
    if share is None:
        return "unknown"
    return f"{100 * share:.1f}%"


def choice_rows(section: CampaignSection) -> tuple[tuple[str, ...], ...]:
    """Returns the table of the least efficient configurations that dispatch chooses, header first."""
    rows = [("problem", "of the best", "reliability", "chosen by", "configuration")]
    for choice in section.choices:
        trust = section.reliability[choice.problem]
        candidate = section.columns[choice.column]
        share = share_text(None if trust.unreliable else choice.efficiency)
        configuration = f"{candidate.strategy} {knobs_text(candidate.choices)}"
        rows.append((choice.problem.key, share, trust.word, choice.source, configuration))
    return tuple(rows)
