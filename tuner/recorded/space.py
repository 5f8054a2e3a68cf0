"""A search space that was measured before: what every point of it became, on which machine."""

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

UNLIKE = 10.0  # times: no mean, median or least of samples is so far from all of them


@dataclass(frozen=True, slots=True)
class RecordedTime:
    """The time of a point that worked."""

    time_s: float  # as the recording judges it: the median of our records, the mean of Kernel Tuner's
    samples_s: tuple[float, ...] = ()  # () where the recording keeps none
    measurement: Measurement | None = None  # whole, of our own records
    verdict: Verdict | None = None  # None: the recording does not say how right it was

    def __post_init__(self) -> None:
        """Raises UsageError for samples that a time in the same unit cannot be of."""
        if not self.samples_s:
            return
        least_s, most_s = min(self.samples_s), max(self.samples_s)
        if not least_s / UNLIKE < self.time_s < most_s * UNLIKE:
            raise UsageError(
                f"time: found {self.time_s:g} s beside samples of {least_s:g} to {most_s:g} s, "
                "allowed one unit for both"
            )


@dataclass(frozen=True, eq=False)
class RecordedSpace:
    """The points that were tried, as rows of a feasible set, and what became of each."""

    name: str  # of the file, without its suffixes
    sha256: str  # of the file
    feasible: FeasibleSet  # without what the recording says is not allowed
    outcomes: tuple[RecordedTime | Failure, ...]  # by row
    codes: tuple[int, ...]  # by row: equal numbers are the same machine code
    machine: Machine
    compiler: Compiler
    problem: Problem | None = None  # None: another tuner's, which this one has no word for
    threads: int = 1
    baseline: Baseline | None = None  # the baseline, timed beside
    constraints: tuple[str, ...] = ()  # what rejected the points that are no rows, where it is known
    forbidden: int = 0  # points that the recording lists as not allowed

    @property
    def rows(self) -> int:
        """Returns the number of points that were tried."""
        return len(self.outcomes)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Returns the knobs of all strategies, those of the first one first."""
        return tuple(knob for space in self.feasible.spaces for knob in space.knobs)

    @cached_property
    def times_s(self) -> npt.NDArray[np.float64]:
        """Returns the seconds by row; nan for a failure."""
        return np.array([one.time_s if isinstance(one, RecordedTime) else np.nan for one in self.outcomes])
