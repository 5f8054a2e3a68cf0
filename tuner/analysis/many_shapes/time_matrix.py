"""Times of one set of configurations on many problems: problems x configurations."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Candidate
from tuner.core.problem import Problem

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class TimeMatrix:
    """The median times of one set of configurations on many problems, where they were measured.

    A row is a problem. A column is an unprojected configuration: the knob values as they were chosen for one
    problem, which ``tuner.space.projection.projected`` turns into what is compiled for another one.
    """

    problems: tuple[Problem, ...]
    counts: tuple[int, ...]  # how often each problem occurs in what is tuned, at least 1
    columns: tuple[Candidate, ...]  # unprojected, each once
    times_s: tuple[tuple[float | None, ...], ...]  # [problem][column]; None: no time
    applies: tuple[tuple[bool, ...], ...]  # [problem][column]; False: the strategy cannot do the problem
    costs: tuple[tuple[float, ...], ...]  # [problem][column], of the cost model; inf where there is none

    def __post_init__(self) -> None:
        """Raises ValueError for tables of other sizes, repeated problems or columns, and bad numbers."""
        if len(set(self.problems)) != len(self.problems) or len(set(self.columns)) != len(self.columns):
            raise ValueError("found a problem or a column twice")
        if len(self.counts) != len(self.problems) or any(count < 1 for count in self.counts):
            raise ValueError(f"counts: found {self.counts}, allowed one of at least 1 for each problem")
        for name, table in (("times_s", self.times_s), ("applies", self.applies), ("costs", self.costs)):
            self._require_size(name, table)
        times = [time for row in self.times_s for time in row if time is not None]
        if not all(math.isfinite(time) and time > 0 for time in times):
            raise ValueError("times_s: found a time that is not a positive number of seconds")
        if not all(cost > 0 for row in self.costs for cost in row):
            raise ValueError("costs: found a cost that is not positive")
        if bool((self.is_timed() & ~self.is_applicable()).any()):
            raise ValueError("times_s: found a time of a configuration that does not apply")

    def _require_size(self, name: str, table: Sequence[Sequence[object]]) -> None:
        if len(table) != len(self.problems) or any(len(row) != len(self.columns) for row in table):
            rows, columns = len(self.problems), len(self.columns)
            raise ValueError(f"{name}: found another size, allowed {rows} rows of {columns}")

    def times(self) -> Numbers:
        """Returns the median times in seconds [problem, column]; nan where there is none."""
        filled = [[np.nan if time is None else time for time in row] for row in self.times_s]
        return np.array(filled, np.float64).reshape(self._shape)

    def is_timed(self) -> Flags:
        """Returns whether there is a time [problem, column]."""
        found: Flags = np.isfinite(self.times())
        return found

    def is_applicable(self) -> Flags:
        """Returns whether the strategy of the column can do the problem [problem, column]."""
        return np.array(self.applies, np.bool_).reshape(self._shape)

    def model_costs(self) -> Numbers:
        """Returns what the cost model expects [problem, column]; inf where it says nothing."""
        return np.array(self.costs, np.float64).reshape(self._shape)

    def log_sizes(self) -> Numbers:
        """Returns log2 of (m, n, k) per problem [problem, 3], for distances in octaves."""
        sizes = [problem.sizes for problem in self.problems]
        octaves: Numbers = np.log2(np.array(sizes, np.float64).reshape(len(sizes), 3))
        return octaves

    def best_s(self) -> Numbers:
        """Returns the least time of each problem in seconds; nan where it has none."""
        times = np.where(self.is_timed(), self.times(), np.inf)
        least = times.min(axis=1, initial=np.inf)
        best: Numbers = np.where(np.isfinite(least), least, np.nan)
        return best

    def efficiency(self) -> Numbers:
        """Returns best time of the problem / time [problem, column]: at most 1; nan without a time."""
        shares: Numbers = self.best_s()[:, None] / self.times()
        return shares

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.problems), len(self.columns)
