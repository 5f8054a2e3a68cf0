"""The roofline plot of a report: a machine's limits, with the best trial of a run and the baseline.

Williams et al., 2009, https://doi.org/10.1145/1498765.1498785.
"""

import math
from dataclasses import dataclass

from tuner.analysis.selected_result import timed
from tuner.core.roofline import Roofline
from tuner.core.runs import Run
from tuner.core.trials import StoredTrial
from tuner.results.report.content import HEIGHT, WIDTH, Ticks, line, powers_of_ten

ROOM = 10.0, 3.0  # factors by which the axes of intensity and speed extend beyond the data
DECADES = 2.0  # of speed shown below the roof, at least


@dataclass(frozen=True)
class RooflinePlot:
    """A roofline plot: the machine's limits, the best trial and the baseline at the problem's intensity."""

    roof: Roofline
    intensity: float  # of the problem, flop/byte
    speeds: tuple[float, ...]  # flop/s: of the best trial, then of the baseline if there is one
    share: float  # the roofline's least time, divided by the best trial's time
    objection: str  # why ``share`` may not be printed; "" if it may
    is_held: bool  # the problem fits into the last-level cache

    @property
    def ridge(self) -> float:
        """Returns the ridge point: the intensity (flop/byte) above which arithmetic is the bound."""
        return self.roof.flop_per_s / self.roof.bytes_per_s

    @property
    def up(self) -> Ticks:
        """Returns the ticks of the axis of speed: (y, label in GFLOP/s)."""
        return tuple((self.y(speed), f"{speed / 1e9:g}") for speed in powers_of_ten(*self._speed_range))

    @property
    def across(self) -> Ticks:
        """Returns the ticks of the axis of intensity: (x, label in flop/byte)."""
        return tuple((self.x(power), f"{power:g}") for power in powers_of_ten(*self._intensity_range))

    @property
    def roofs(self) -> str:
        """Returns the SVG path of the machine's limits: the slope of memory, then the level of arithmetic."""
        start = max(self._intensity_range[0], self._speed_range[0] / self.roof.bytes_per_s)
        level = self.roof.flop_per_s
        points = (
            (start, start * self.roof.bytes_per_s),
            (self.ridge, level),
            (self._intensity_range[1], level),
        )
        return line((self.x(intensity), self.y(speed)) for intensity, speed in points)

    def x(self, intensity: float) -> float:
        """Returns the x coordinate of an intensity in flop/byte; the axis is logarithmic."""
        return WIDTH * _share(intensity, *self._intensity_range)

    def y(self, speed: float) -> float:
        """Returns the y coordinate of a speed in flop/s; the axis is logarithmic."""
        return HEIGHT * (1 - _share(speed, *self._speed_range))

    @property
    def _intensity_range(self) -> tuple[float, float]:
        low, high = sorted((self.intensity, self.ridge))
        return low / ROOM[0], high * ROOM[0]

    @property
    def _speed_range(self) -> tuple[float, float]:
        level = self.roof.flop_per_s
        return min(*self.speeds, level / 10**DECADES) / ROOM[1], max(*self.speeds, level) * ROOM[1]


def roofline_of(run: Run, roof: Roofline, best: StoredTrial) -> RooflinePlot:
    """Returns the plot of a roofline with the best trial and the baseline.

    The roofline is first raised to the speed of the faster of both, where it was measured too low.
    """
    problem = run.settings.problem
    median_s = timed(best).median_s
    work = problem.flop, problem.bytes, run.machine.l3_bytes
    times = [median_s] if run.baseline is None else [median_s, run.baseline.measurement.median_s]
    roof = roof.raised(*work, min(times))
    return RooflinePlot(
        roof=roof,
        intensity=problem.flop / problem.bytes,
        speeds=tuple(problem.flop / time for time in times),
        share=roof.share(*work, median_s),
        objection=best.reliability.reason,
        is_held=problem.bytes <= run.machine.l3_bytes,
    )


def _share(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)
