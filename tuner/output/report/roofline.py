"""The roofline of a machine with the best of a run under it.

Williams et al., 2009, https://doi.org/10.1145/1498765.1498785.
"""

import math
from dataclasses import dataclass

from tuner.analysis.run_comparison import distrust
from tuner.analysis.selected_result import timed
from tuner.core.machine import Roofline
from tuner.core.runs import Run, StoredTrial
from tuner.output.report.drawing import HEIGHT, WIDTH, Ticks, line, powers_of_ten

ROOM = 10.0, 3.0  # times that intensity and speed go beyond what is drawn
DECADES = 2.0  # of speed below the roof, at least


@dataclass(frozen=True)
class RooflinePlot:
    """Both roofs, the best schedule and the baseline at the problem's intensity; the axes are logarithmic."""

    roof: Roofline
    intensity: float  # of the problem, flop/byte
    speeds: tuple[float, ...]  # flop/s: of the best, then of the baseline where there is one
    share: float  # of the least time that the machine can do, in the time of the best
    objection: str  # why no share may be printed; "" where one may
    is_held: bool  # the last cache holds the problem

    @property
    def ridge(self) -> float:
        """Returns the intensity from which on arithmetic is the bound."""
        return self.roof.flop_per_s / self.roof.bytes_per_s

    @property
    def up(self) -> Ticks:
        """Returns the speeds on the axis, in GFLOP/s."""
        return tuple((self.y(speed), f"{speed / 1e9:g}") for speed in powers_of_ten(*self._speed_range))

    @property
    def across(self) -> Ticks:
        """Returns the intensities on the axis."""
        return tuple((self.x(each), f"{each:g}") for each in powers_of_ten(*self._intensity_range))

    @property
    def roofs(self) -> str:
        """Returns the path of the slope that memory sets, then the level that arithmetic sets."""
        start = max(self._intensity_range[0], self._speed_range[0] / self.roof.bytes_per_s)
        points = (
            (start, start * self.roof.bytes_per_s),
            *((intensity, self.roof.flop_per_s) for intensity in (self.ridge, self._intensity_range[1])),
        )
        return line((self.x(intensity), self.y(speed)) for intensity, speed in points)

    def x(self, intensity: float) -> float:
        """Returns where an intensity lies."""
        return WIDTH * _share(intensity, *self._intensity_range)

    def y(self, speed: float) -> float:
        """Returns where a speed lies, from the top."""
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
    """Returns the drawing for the best trial of a run."""
    problem, median_s = run.settings.problem, timed(best).median_s
    times = [median_s] if run.baseline is None else [median_s, run.baseline.measurement.median_s]
    return RooflinePlot(
        roof=roof,
        intensity=problem.flop / problem.bytes,
        speeds=tuple(problem.flop / each for each in times),
        share=roof.least_s(problem.flop, problem.bytes, run.machine.l3_bytes) / median_s,
        objection=distrust(run, best),
        is_held=problem.bytes <= run.machine.l3_bytes,
    )


def _share(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)
