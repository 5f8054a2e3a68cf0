"""A search space whose every time is known: recorded or synthetic."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tuner.core.errors import UsageError
from tuner.space.feasible_set import FeasibleSet
from tuner.space.recorded.reading import read_recorded

CLOSE = 0.05  # of the way from the optimum to the median: where random search is let go
STEPS_LIMIT = 4096  # evaluations after which random search counts as there


@dataclass(frozen=True, eq=False)
class ReplaySpace:
    """Rows and their seconds."""

    name: str
    feasible: FeasibleSet
    times_s: npt.NDArray[np.float64]  # by row; nan: failed

    @classmethod
    def read(cls, path: Path) -> "ReplaySpace":
        """Reads a recording. Raises UsageError for anything else, and where no point is the fastest."""
        recorded = read_recorded(path)
        space = cls(recorded.name, recorded.feasible, recorded.times_s)
        if len(set(space.ordered_s)) < 2:
            found = len(set(space.ordered_s))
            raise UsageError(
                f"{path}: found {found} different times, allowed 2 or more: else nothing is best"
            )
        return space

    @cached_property
    def ordered_s(self) -> npt.NDArray[np.float64]:
        """Returns the times in ascending order, without failures."""
        return np.sort(self.times_s[~np.isnan(self.times_s)])

    @cached_property
    def random_s(self) -> npt.NDArray[np.float64]:
        """Returns by number of evaluations the best time that random search is expected to have found.

        Exact: the expectation of the minimum of n draws without replacement from all times.
        """
        times, count = self.ordered_s, len(self.ordered_s)
        left = np.arange(count, 0.0, -1)  # times that are as slow as each, or slower
        all_slower = np.ones(count)  # probability that every draw was
        expected = []
        for drawn in range(min(count, STEPS_LIMIT)):
            all_slower *= np.maximum(left - drawn, 0) / (count - drawn)
            expected.append(times[0] + float(np.diff(times) @ all_slower[1:]))
        return np.array(expected)

    @property
    def steps(self) -> int:
        """Returns the number of evaluations in which random search comes close to the optimum."""
        optimum, median = self.ordered_s[0], float(np.median(self.ordered_s))
        is_close = self.random_s <= optimum + CLOSE * (median - optimum)
        return int(np.argmax(is_close)) + 1 if is_close.any() else len(self.random_s)

    def score(self, found_s: npt.NDArray[np.float64]) -> float:
        """Returns P of one search: 0 is random search, 1 the optimum at once.

        ``found_s`` is the best time by number of evaluations, inf before the first. Willemsen et al., 2024,
        https://doi.org/10.1016/j.future.2024.05.021, equation 3.
        """
        optimum = self.ordered_s[0]
        unsure = int(
            np.count_nonzero(self.random_s > optimum)
        )  # draws after which random may lack the optimum
        steps = min(self.steps, len(found_s), unsure)
        random_s = self.random_s[:steps]
        found = np.minimum(found_s[:steps], self.ordered_s[-1])
        return float(np.mean((random_s - found) / (random_s - optimum)))
