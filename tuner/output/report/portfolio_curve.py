"""Plot of portfolios: the share of the best speed that is kept by K configurations, over K."""

from dataclasses import dataclass

from tuner.analysis.many_shapes.portfolio import choose_portfolio, usable_columns
from tuner.analysis.many_shapes.regret import regret_held_out, regret_in_sample
from tuner.analysis.many_shapes.time_matrix import TimeMatrix
from tuner.output.report.drawing import HEIGHT, WIDTH, Ticks, line

SIZE_LIMIT = 10  # of a portfolio on the plot
STEP = 0.05  # between the ticks of the share


@dataclass(frozen=True)
class PortfolioPoint:
    """What a portfolio of ``size`` configurations keeps of the best speed, 0 to 1; None: not known."""

    size: int
    in_sample: float | None  # geometric mean over the problems
    held_out: float | None  # geometric mean, each problem held out once
    worst: float | None  # the worst problem, in sample


@dataclass(frozen=True)
class PortfolioCurve:
    """The plot of portfolios; coordinates are in SVG units."""

    points: tuple[PortfolioPoint, ...]  # by size

    @property
    def bottom(self) -> float:
        """Returns the share at the lower edge, a multiple of 5 % below all points."""
        shares = [share for point in self.points for share in (point.in_sample, point.held_out, point.worst)]
        known = [share for share in shares if share is not None]
        return max(0.0, STEP * int((min(known, default=1.0) - 1e-9) / STEP))

    @property
    def up(self) -> Ticks:
        """Returns the ticks of the share axis as (y coordinate, label in percent)."""
        count = round((1 - self.bottom) / STEP)
        step = max(1, -(-count // 5))
        shares = [self.bottom + STEP * number for number in range(0, count + 1, step)]
        return tuple((self.y(share), f"{100 * share:.0f}%") for share in shares)

    @property
    def across(self) -> Ticks:
        """Returns the ticks of the axis of sizes as (x coordinate, label)."""
        return tuple((self.x(point.size), str(point.size)) for point in self.points)

    @property
    def paths(self) -> tuple[tuple[str, str], ...]:
        """Returns (name, SVG path) of the three lines; lines without two known points are left out."""
        drawn = []
        for name in ("in_sample", "held_out", "worst"):
            known = [(p.size, share) for p in self.points if (share := getattr(p, name)) is not None]
            if len(known) > 1:
                drawn.append((name, line((self.x(size), self.y(share)) for size, share in known)))
        return tuple(drawn)

    def x(self, size: int) -> float:
        """Returns the x coordinate of a size."""
        return WIDTH * (size - 0.5) / len(self.points)

    def y(self, share: float) -> float:
        """Returns the y coordinate, from the top, of a share of the best speed."""
        return HEIGHT * (1 - share) / (1 - self.bottom) if self.bottom < 1 else 0.0


def portfolio_curve_of(matrix: TimeMatrix) -> PortfolioCurve | None:
    """Returns the plot for portfolios of 1 to 10 configurations; None with fewer than 2 configurations."""
    sizes = range(1, min(SIZE_LIMIT, len(usable_columns(matrix))) + 1)
    if len(sizes) < 2:
        return None
    return PortfolioCurve(tuple(_point(matrix, size) for size in sizes))


def _point(matrix: TimeMatrix, size: int) -> PortfolioPoint:
    inside = regret_in_sample(matrix, choose_portfolio(matrix, size))
    outside = regret_held_out(matrix, size) if len(matrix.problems) > 1 else None
    return PortfolioPoint(size, inside.geomean, None if outside is None else outside.geomean, inside.worst)
