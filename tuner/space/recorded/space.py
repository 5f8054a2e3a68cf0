"""A search space that was measured before: the outcome of every configuration, and the machine."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuner.core.errors import Failure, UsageError
from tuner.core.machine import Compiler, Machine
from tuner.core.problem import Problem
from tuner.core.record import Measurement, Verdict
from tuner.core.runs import Baseline
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob

UNLIKE = 10.0  # factor: no mean, median or minimum of samples differs from all samples by so much


@dataclass(frozen=True, slots=True)
class RecordedTime:
    """The recorded time of a configuration that worked, with samples and verdict where there are any."""

    time_s: float  # the recording's statistic: the median in this tuner's records, the mean in Kernel Tuner's
    samples_s: tuple[float, ...] = ()  # () where the recording keeps none
    measurement: Measurement | None = None  # complete, in this tuner's records
    verdict: Verdict | None = None  # None: the recording has no verdict

    def __post_init__(self) -> None:
        """Raises UsageError where time and samples cannot be in the same unit."""
        if not self.samples_s:
            return
        least_s, most_s = min(self.samples_s), max(self.samples_s)
        if not least_s / UNLIKE < self.time_s < most_s * UNLIKE:
            raise UsageError(
                f"time: {self.time_s:g} s does not fit samples of {least_s:g} to {most_s:g} s: "
                "both need one unit"
            )


@dataclass(frozen=True, eq=False)
class RecordedSpace:
    """The configurations that a recording tried, as a feasible set, with their outcomes and the machine."""

    name: str  # of the file, without its suffixes
    sha256: str  # of the file
    feasible: FeasibleSet  # without configurations that the recording lists as forbidden
    outcomes: tuple[RecordedTime | Failure, ...]  # by row
    codes: tuple[int, ...]  # by row: equal numbers for equal machine code
    machine: Machine
    compiler: Compiler
    problem: Problem | None = None  # None: a problem of another tuner
    threads: int = 1
    baseline: Baseline | None = None  # the baseline of the runs
    constraints: tuple[str, ...] = ()  # constraints that rejected other points, where they are known
    forbidden: int = 0  # number of points that the recording lists as forbidden

    @property
    def rows(self) -> int:
        """Returns the number of different configurations that were tried."""
        return len(self.outcomes)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Returns the knobs of all strategies, one strategy after another."""
        return tuple(knob for space in self.feasible.spaces for knob in space.knobs)

    @cached_property
    def times_s(self) -> npt.NDArray[np.float64]:
        """Returns the seconds of each configuration, in the order of ``feasible``; NaN for a failure."""
        return np.array([one.time_s if isinstance(one, RecordedTime) else np.nan for one in self.outcomes])
