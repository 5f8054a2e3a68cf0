"""Tree-structured Parzen estimator over the feasible rows: the ratio of two densities, at every unseen row.

Bergstra et al., 2011, https://papers.nips.cc/paper/4443; here the densities are joint over all knobs and the
ratio is taken at all unseen rows instead of a few samples, which is what makes constraints cost nothing.
"""

import math

import numpy as np
import numpy.typing as npt

from tuner.feasible import FeasibleSet
from tuner.samplers.kernel import PRIOR, Kernel
from tuner.samplers.method import AbstractMethod
from tuner.samplers.pool import Pool

STARTUP = 10  # rows proposed before the densities decide, and at least
STARTUP_OF_STRATEGY = 5  # for each strategy: one unlucky row must not end it
GOOD_SHARE = 0.15  # of the told rows, the fastest, that make up the good density
GOOD_MIN = 2
EXPLORE = 0.05  # probability of a random row: a way out of a wrong model


class Tpe(AbstractMethod):
    """Chooses the row with the largest ratio of the density of good rows to that of the others.

    Pending rows and failures are among the others: asks in flight spread out (constant liar).
    """

    def __init__(self, feasible: FeasibleSet, pool: Pool, seed: int, first: tuple[int, ...]) -> None:
        AbstractMethod.__init__(self, feasible, pool, seed, first)
        self._kernel = Kernel(feasible.matrix())
        self._good = _Density(feasible.rows)
        self._other = _Density(feasible.rows)

    def choose(self, rng: np.random.Generator) -> int:
        if len(self.pool.proposed) < max(STARTUP, STARTUP_OF_STRATEGY * len(self.feasible.index)):
            return self._start(rng)
        if rng.random() < EXPLORE:
            return int(rng.choice(np.flatnonzero(self.pool.unseen)))
        good = self._good_rows()
        self._good.set_rows(good, self._kernel)
        self._other.set_rows(self.pool.proposed - good, self._kernel)
        ratio = (self._good.sum + PRIOR) / (self._other.sum + PRIOR)
        ratio[~self.pool.unseen] = -1.0
        return int(rng.choice(np.flatnonzero(ratio == ratio.max())))

    def _start(self, rng: np.random.Generator) -> int:
        """Draws from the strategy with the fewest proposals that has a row left."""
        ends = np.cumsum([len(index) for index in self.feasible.index])
        starts = [0, *ends[:-1]]
        seen = [np.count_nonzero(~self.pool.unseen[a:b]) for a, b in zip(starts, ends, strict=True)]
        for place in np.argsort(seen, kind="stable"):
            row = self.pool.draw(rng, int(starts[place]), int(ends[place]))
            if row is not None:
                return row
        raise AssertionError("asked with no row left")

    def _good_rows(self) -> set[int]:
        """Returns the fastest rows told; equal times go by row, so that the order of tells means nothing."""
        told = self.pool.outcomes
        timed = sorted((value, row) for row, value in told.items() if value is not None)
        return {row for _, row in timed[: max(GOOD_MIN, math.ceil(GOOD_SHARE * len(told)))]}


class _Density:
    """The sum of the kernels of some rows, kept up as rows come and go."""

    def __init__(self, rows: int) -> None:
        self.sum: npt.NDArray[np.int64] = np.zeros(rows, np.int64)
        self._members: set[int] = set()

    def set_rows(self, rows: set[int], kernel: Kernel) -> None:
        for row in rows - self._members:
            self.sum += kernel.around(row)
        for row in self._members - rows:
            self.sum -= kernel.around(row)
        self._members = set(rows)
