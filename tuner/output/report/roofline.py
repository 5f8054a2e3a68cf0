"""Roofline plot of a machine with the best trial of a run.

Source: Williams et al., 2009, https://doi.org/10.1145/1498765.1498785.
"""

import math
from dataclasses import dataclass

from tuner.analysis.run_comparison import distrust
from tuner.analysis.selected_result import timed
from tuner.core.machine import Roofline
from tuner.core.runs import Run, StoredTrial
from tuner.output.report.drawing import HEIGHT, WIDTH, Ticks, line, powers_of_ten

ROOM = 10.0, 3.0  # factors by which the axes of intensity and speed extend beyond the data
DECADES = 2.0  # of speed shown below the roof, at least


@dataclass(frozen=True)
class RooflinePlot:
    """A roofline plot: the machine's limits, the best trial and the baseline at the problem's intensity.

    Both axes are logarithmic: arithmetic intensity in flop/byte, speed in flop/s.
    """

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
        """Returns the ticks of the speed axis as (y coordinate, label in GFLOP/s)."""
        return tuple((self.y(speed), f"{speed / 1e9:g}") for speed in powers_of_ten(*self._speed_range))

    @property
    def across(self) -> Ticks:
        """Returns the ticks of the intensity axis as (x coordinate, label in flop/byte)."""
        return tuple((self.x(each), f"{each:g}") for each in powers_of_ten(*self._intensity_range))

    @property
    def roofs(self) -> str:
        """Returns the SVG path of both roofs: the slope of the memory bandwidth, then the peak speed."""
        start = max(self._intensity_range[0], self._speed_range[0] / self.roof.bytes_per_s)
        points = (
            (start, start * self.roof.bytes_per_s),
            *((intensity, self.roof.flop_per_s) for intensity in (self.ridge, self._intensity_range[1])),
        )
        return line((self.x(intensity), self.y(speed)) for intensity, speed in points)

    def x(self, intensity: float) -> float:
        """Returns the x coordinate in SVG units of an arithmetic intensity in flop/byte."""
        return WIDTH * _share(intensity, *self._intensity_range)

    def y(self, speed: float) -> float:
        """Returns the y coordinate in SVG units, from the top, of a speed in flop/s."""
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
    """Returns the roofline plot of a machine, ``roof``, with the best trial and the baseline of a run.

    The roofs are at least what both reached.
    """
    problem, median_s = run.settings.problem, timed(best).median_s
    work = problem.flop, problem.bytes, run.machine.l3_bytes
    times = [median_s] if run.baseline is None else [median_s, run.baseline.measurement.median_s]
    roof = roof.raised(*work, min(times))
    return RooflinePlot(
        roof=roof,
        intensity=problem.flop / problem.bytes,
        speeds=tuple(problem.flop / each for each in times),
        share=roof.share(*work, median_s),
        objection=distrust(run, best),
        is_held=problem.bytes <= run.machine.l3_bytes,
    )


def _share(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)
