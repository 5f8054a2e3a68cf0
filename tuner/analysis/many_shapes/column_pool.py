"""The pool of a group of problems: configurations to try, projected onto every problem."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Candidate
from tuner.core.problem import Problem


@dataclass(frozen=True)
class ColumnPool:
    """One set of configurations, and what each becomes on every problem of a group."""

    problems: tuple[Problem, ...]
    counts: tuple[int, ...]  # how often each problem occurs in what is tuned, at least 1
    columns: tuple[Candidate, ...]  # unprojected, each once
    # [problem][column]: the projection; None: it does not apply
    candidates: tuple[tuple[Candidate | None, ...], ...]
    costs: tuple[tuple[float, ...], ...]  # [problem][column], of the cost model; inf where there is none
    is_demoted: tuple[tuple[bool, ...], ...]  # [problem][column]: it breaks a preference, so it comes last

    def __post_init__(self) -> None:
        """Raises ValueError for tables of other sizes, a count below 1, and a cost that is not positive."""
        if len(self.counts) != len(self.problems) or any(count < 1 for count in self.counts):
            raise ValueError(f"counts: found {self.counts}, allowed one of at least 1 for each problem")
        for name, table in (
            ("candidates", self.candidates),
            ("costs", self.costs),
            ("is_demoted", self.is_demoted),
        ):
            if len(table) != len(self.problems) or any(len(row) != len(self.columns) for row in table):
                raise ValueError(
                    f"{name}: found another size, allowed a row per problem, an entry per column"
                )
        if any(cost <= 0 or math.isnan(cost) for row in self.costs for cost in row):
            raise ValueError("costs: found a cost that is not positive")

    def equal_columns(self, problem: int, candidate: Candidate) -> list[int]:
        """Returns the columns whose projection onto ``problem``, an index, is ``candidate``."""
        return [column for column, each in enumerate(self.candidates[problem]) if each == candidate]

    def octaves(self) -> npt.NDArray[np.float64]:
        """Returns log2 of (m, n, k) per problem [problem, 3]."""
        sizes = np.array([problem.sizes for problem in self.problems], np.float64)
        octaves: npt.NDArray[np.float64] = np.log2(sizes.reshape(len(self.problems), 3))
        return octaves
