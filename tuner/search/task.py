"""The input of a search method: feasible set, state and seed; Optuna parameters; the first proposals."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from tuner.core.candidate import Candidate, Value
from tuner.search.configurations import Floats, Pool, Rows, RowTable, Scope, sampled, whole
from tuner.space.feasible_set import FeasibleSet

STRATEGY = "strategy"  # a parameter in addition to the knobs; a trial has the knobs of its strategy

Distributions = dict[str, BaseDistribution]  # by parameter, over all strategies


def parameters(candidate: Candidate) -> dict[str, Value]:
    """Returns a candidate as Optuna parameters by name: "strategy", then its knobs."""
    return {STRATEGY: candidate.strategy, **dict(candidate.choices)}


def distributions_of_rows(feasible: FeasibleSet) -> Distributions:
    """Returns each parameter's distribution: a range for an integer knob, else a list of values."""
    pairs: list[tuple[str, Value]] = []
    for space, index in zip(feasible.spaces, feasible.index, strict=True):
        pairs.append((STRATEGY, space.strategy))
        for number, knob in enumerate(space.knobs):
            picks = np.flatnonzero(np.bincount(index[:, number]))
            pairs.extend((knob.name, knob.choices[pick]) for pick in picks)
    return _distributions(pairs)


def distributions_of_candidates(candidates: Iterable[Candidate]) -> Distributions:
    """Returns each parameter's distribution over candidates: a range of integers, else a list of values."""
    return _distributions(pair for candidate in candidates for pair in parameters(candidate).items())


def _distributions(pairs: Iterable[tuple[str, Value]]) -> Distributions:
    values_of: dict[str, set[Value]] = {}
    for name, value in pairs:
        values_of.setdefault(name, set()).add(value)
    distributions: Distributions = {}
    for name, values in values_of.items():
        numbers = [value for value in values if isinstance(value, int)]
        if len(numbers) == len(values):
            distributions[name] = IntDistribution(min(numbers), max(numbers))
        else:
            distributions[name] = CategoricalDistribution(sorted(values, key=str))
    return distributions


SCORED_LIMIT = 1 << 15  # rows up to which all are scored for every proposal: 20 ms; more are sampled
BEST_ROWS = 4  # fastest rows whose neighbours belong to every sample


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The configurations that differ from one in a single knob, computed at first use and kept."""

    feasible: FeasibleSet
    _known: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def of(self, row: int) -> tuple[int, ...]:
        """Returns the neighbours of ``row``, in ascending order and of the same strategy."""
        if row in self._known:
            return self._known[row]
        candidate = self.feasible.candidate(row)
        values = dict(candidate.choices)
        space = next(one for one in self.feasible.spaces if one.strategy == candidate.strategy)
        moves = (
            Candidate.of(space.strategy, {**values, knob.name: choice})
            for knob in space.knobs
            for choice in knob.choices
            if choice != values[knob.name]
        )
        rows = (self.feasible.row_of(move) for move in moves)
        self._known[row] = tuple(sorted(near for near in rows if near is not None))
        return self._known[row]


@dataclass(frozen=True, eq=False)
class SearchTask:
    """What search methods work on: a feasible set, the state of its search, and the random seed."""

    feasible: FeasibleSet
    pool: Pool
    seed: int

    def part(self, is_in: npt.NDArray[np.bool_]) -> "SearchTask":  # rows where True, with a new pool
        feasible = self.feasible.part(is_in)
        return SearchTask(feasible, Pool(feasible.rows), self.seed)

    @cached_property
    def table(self) -> RowTable:
        return RowTable.of(self.feasible)

    @cached_property
    def neighbours(self) -> Neighbours:
        return Neighbours(self.feasible)

    @cached_property
    def _whole(self) -> Scope:
        return whole(self.table)

    def scope(self, rng: np.random.Generator) -> Scope:
        """Returns the configurations to score for one proposal: all, or a random sample of a large set.

        Above SCORED_LIMIT (32768): random ones and neighbours of the 4 fastest; if all of these are proposed,
        the first unproposed ones instead.
        """
        if self.feasible.rows <= SCORED_LIMIT:
            return self._whole
        near = [row for best in self.pool.fastest()[:BEST_ROWS] for row in self.neighbours.of(best)]
        return sampled(self.table, self.pool, rng, near)

    def best_unseen(self, scope: Scope, score: Floats, rng: np.random.Generator) -> int:
        """Returns the unproposed configuration of ``scope`` with the highest score; ties at random."""
        unseen = self.pool.unseen[scope.rows]
        top = score[unseen].max()
        best: Rows = scope.rows[unseen & (score >= top)]
        return int(rng.choice(best))


# The rows proposed before a model is fitted: the median of each strategy, then rows far from earlier ones.
# A random configuration of a large space is usually far from good, and two distant ones tell more than two
# near ones. The farthest row of all would be a corner, where extreme values meet: the farthest of a few
# random rows usually is not (best-candidate sampling, Mitchell 1991, https://doi.org/10.1145/122718.122736).

START_ROWS = 6
START_ROWS_OF_STRATEGY = 3  # one slow row must not exclude a strategy
DRAWN = 16  # rows of which the farthest is taken


def is_starting(task: SearchTask) -> bool:
    """Returns whether there are fewer than 6 proposals, or than 3 times the number of strategies."""
    return len(task.pool.order) < max(START_ROWS, START_ROWS_OF_STRATEGY * len(task.feasible.index))


def start_row(task: SearchTask, rng: np.random.Generator) -> int:
    """Returns a row to propose before a model is fitted, of the strategy with the fewest proposals."""
    ends = np.cumsum([len(index) for index in task.feasible.index]).tolist()
    starts = [0, *ends[:-1]]
    seen = [
        sum(start <= row < end for row in task.pool.order) for start, end in zip(starts, ends, strict=True)
    ]
    left = [strategy for strategy, count in enumerate(seen) if starts[strategy] + count < ends[strategy]]
    strategy = min(left, key=seen.__getitem__)
    start, end = starts[strategy], ends[strategy]
    if seen[strategy]:
        rows = task.pool.draw(rng, DRAWN, start, end)
        table = task.table.part(rows)
        # later rows of a strategy: of some drawn, the one farthest from all proposals
        far = np.min([table.differences(task.table.codes[row]) for row in task.pool.order], axis=0)
        return int(rows[np.argmax(far)])
    rows = np.arange(start, end)
    if len(rows) > SCORED_LIMIT:
        rows = np.sort(rng.choice(rows, SCORED_LIMIT, replace=False))
    table = task.table.part(rows)
    # a strategy's first row: one nearest to the median choice of each knob
    far = table.differences(np.median(table.codes, axis=0).astype(table.codes.dtype))
    return int(rng.choice(rows[far <= far.min()]))
