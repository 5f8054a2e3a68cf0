"""Search methods: the task that they work on (feasible set, state, seed), and their Optuna study.

A method (``AbstractMethod``) proposes configurations of a ``SearchTask``; a ``StudySampler`` makes it a
sampler of Optuna, whose study stores proposals and outcomes.
"""

import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import Any, final

import numpy as np
import numpy.typing as npt
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, InMemoryStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial
from threadpoolctl import ThreadpoolController

from tuner.core.candidate import Candidate, Value
from tuner.core.errors import Failure
from tuner.core.interfaces import AbstractSampler
from tuner.core.runs import Run
from tuner.core.trials import StoredTrial
from tuner.search.configurations import Floats, Pool, Rows, RowTable, Scope, sampled, whole
from tuner.space.feasible_set import FeasibleSet

# The input of a search method: feasible set, state and seed; Optuna parameters; the first proposals.

STRATEGY = "strategy"  # a parameter in addition to the knobs; a trial has the knobs of its strategy

Distributions = dict[str, BaseDistribution]  # by parameter, over all strategies
EXACT_LIMIT = 1 << 53  # Optuna computes with the bounds of a range as floats
SCORED_LIMIT = 1 << 15  # rows up to which all are scored for every proposal: 20 ms; more are sampled
BEST_ROWS = 4  # fastest rows whose neighbours belong to every sample
START_ROWS = 6
START_ROWS_OF_STRATEGY = 3  # one slow row must not exclude a strategy
DRAWN = 16  # rows of which the farthest is taken


def parameters(candidate: Candidate) -> dict[str, Value]:
    """Returns a candidate as Optuna parameters: name -> value, first "strategy", then its knobs."""
    return {STRATEGY: candidate.strategy, **dict(candidate.choices)}


def distributions_of_rows(feasible: FeasibleSet) -> Distributions:
    """Returns name -> Optuna distribution of each parameter, over a feasible set.

    A range, from the least value to the greatest, for a knob with integers only, else a list of values.
    """
    pairs: list[tuple[str, Value]] = []
    for space, index in zip(feasible.spaces, feasible.index, strict=True):
        pairs.append((STRATEGY, space.strategy))
        for knob_index, knob in enumerate(space.knobs):
            picks = np.flatnonzero(np.bincount(index[:, knob_index]))
            pairs.extend((knob.name, knob.choices[pick]) for pick in picks)
    return _distributions(pairs)


def distributions_of_candidates(candidates: Iterable[Candidate]) -> Distributions:
    """Returns name -> Optuna distribution of each parameter, over candidates.

    A range, from the least value to the greatest, for a knob with integers only, else a list of values.
    """
    return _distributions(pair for candidate in candidates for pair in parameters(candidate).items())


def _distributions(pairs: Iterable[tuple[str, Value]]) -> Distributions:
    values_of: dict[str, set[Value]] = {}
    for name, value in pairs:
        values_of.setdefault(name, set()).add(value)
    distributions: Distributions = {}
    for name, values in values_of.items():
        numbers = [value for value in values if isinstance(value, int) and abs(value) <= EXACT_LIMIT]
        if len(numbers) == len(values):
            distributions[name] = IntDistribution(min(numbers), max(numbers))
        else:
            distributions[name] = CategoricalDistribution(sorted(values, key=str))
    return distributions


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The configurations that differ from a given one in a single knob, computed at first use and kept."""

    feasible: FeasibleSet
    _known: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def of(self, row: int) -> tuple[int, ...]:
        """Returns the indices of the configurations that differ from ``row`` in one knob, ascending."""
        if row in self._known:
            return self._known[row]
        candidate = self.feasible.candidate(row)
        values = dict(candidate.choices)
        space = next(own for own in self.feasible.spaces if own.strategy == candidate.strategy)
        neighbours = []
        for knob in space.knobs:
            for choice in knob.choices:
                moved = Candidate.of(space.strategy, {**values, knob.name: choice})
                near = self.feasible.row_of(moved)
                if near is not None and near != row:
                    neighbours.append(near)
        self._known[row] = tuple(sorted(neighbours))
        return self._known[row]


@dataclass(frozen=True, eq=False)
class SearchTask:
    """The task of a search method: a feasible set, the state of its search, and the random seed."""

    feasible: FeasibleSet
    pool: Pool
    seed: int
    # by row: how slow on other machines, 0 to 1, NaN: unknown; None: nothing is known of any row
    prior: npt.NDArray[np.float64] | None = None

    def part(self, is_in: npt.NDArray[np.bool_]) -> "SearchTask":  # rows where True, with a new pool
        feasible = self.feasible.part(is_in)
        prior = None if self.prior is None else self.prior[is_in]
        return SearchTask(feasible, Pool(feasible.rows), self.seed, prior)

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

        Above SCORED_LIMIT (32768) configurations: random ones and the neighbours of the 4 fastest. If all of
        these are proposed already, the first ones that are not.
        """
        if self.feasible.rows <= SCORED_LIMIT:
            return self._whole
        near = list(chain.from_iterable(map(self.neighbours.of, self.pool.fastest()[:BEST_ROWS])))
        return sampled(self.table, self.pool, rng, near)

    def best_unseen(self, scope: Scope, score: Floats, rng: np.random.Generator) -> int:
        """Returns the row of ``scope`` with the highest score that is not proposed yet.

        Among equals a random one.
        """
        unseen = self.pool.unseen[scope.rows]
        top = score[unseen].max()
        best: Rows = scope.rows[unseen & (score >= top)]
        return int(rng.choice(best))


# The rows proposed before a model is fitted: the median of each strategy, then rows far from earlier ones.
# A random configuration of a large space is usually far from good, and two distant ones tell more than two
# near ones. The farthest row of all would be a corner, where extreme values meet: the farthest of a few
# random rows usually is not (best-candidate sampling, Mitchell 1991, https://doi.org/10.1145/122718.122736).


def is_starting(task: SearchTask) -> bool:
    """Returns whether too few configurations were proposed to fit a model.

    Fewer than 6, or than 3 times the number of strategies.
    """
    return len(task.pool.order) < max(START_ROWS, START_ROWS_OF_STRATEGY * len(task.feasible.index))


def start_row(task: SearchTask, rng: np.random.Generator) -> int:
    """Returns a row to propose before a model is fitted, of the strategy with the fewest proposals.

    A strategy's first row is near its median choices, each later one far from the rows proposed before.
    """
    ends = np.cumsum(list(map(len, task.feasible.index))).tolist()
    starts = [0, *ends[:-1]]
    seen = [
        sum(start <= row < end for row in task.pool.order) for start, end in zip(starts, ends, strict=True)
    ]
    left = [strategy for strategy, count in enumerate(seen) if starts[strategy] + count < ends[strategy]]
    strategy = min(left, key=seen.__getitem__)
    start = starts[strategy]
    end = ends[strategy]
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


class AbstractMethod(BaseSampler):
    """A search method, as an Optuna sampler: a subclass implements ``choose``, the next configuration.

    Configurations that wait in the pool are proposed first. A choice depends on the pool and on
    ``np.random.default_rng((seed, number))`` alone. A pool belongs to one study.
    """

    def __init__(self, task: SearchTask) -> None:
        self.task = task
        self._threads = ThreadpoolController()

    @abc.abstractmethod
    def choose(self, rng: np.random.Generator) -> int:
        """Returns the index of a configuration that is not proposed yet.

        Call it only while there is one. ``rng``: the only source of random numbers of the choice.
        """

    def propose(self, number: int) -> Distributions:
        """Chooses the configuration of trial ``number`` and marks it as proposed.

        Returns parameter name -> Optuna distribution, for the strategy and its knobs.
        """
        row = self.task.pool.next_waiting()
        if row is None:
            # one thread: sums of floats keep their order, and the measured kernel keeps its cores
            with self._threads.limit(limits=1, user_api="blas"):
                row = self.choose(np.random.default_rng((self.task.seed, number)))
        self.task.pool.propose(row)
        return self._parameters_of(number)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> Distributions:
        return self._parameters_of(trial.number)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: Distributions
    ) -> dict[str, Any]:
        return dict(parameters(self._candidate(trial.number)))

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        raise ValueError(f"trial {trial.number}: its strategy has no knob {param_name!r}")

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        self.task.pool.tell(self.task.pool.order[trial.number], values[0] if values else None)

    def _parameters_of(self, number: int) -> Distributions:
        return {name: self.distributions[name] for name in parameters(self._candidate(number))}

    @cached_property
    def distributions(self) -> Distributions:
        return distributions_of_rows(self.task.feasible)

    def _candidate(self, number: int) -> Candidate:
        return self.task.feasible.candidate(self.task.pool.order[number])


# Two searches in sequence: over the rows that meet all preferences, then over the rows that break one.
# A method fits a model to what it observes: rows that are expected to be slow would distract it. So each
# search has a method and a pool of its own, and the second search begins when the first has no row left.


@dataclass(frozen=True, eq=False)
class _Search:
    rows: Rows  # of the whole set, in ascending order: the method's row n is `rows[n]`
    method: AbstractMethod

    @property
    def pool(self) -> Pool:
        return self.method.task.pool

    def number_of(self, row: int) -> int:
        return int(np.searchsorted(self.rows, row))


@final
class DemotedLast(AbstractMethod):
    """A search that first tries configurations that meet all preferences, then the others.

    Two methods of the same kind search the two parts.
    """

    def __init__(self, task: SearchTask, made: Callable[[SearchTask], AbstractMethod]) -> None:
        AbstractMethod.__init__(self, task)
        self._preferred, self._demoted = (
            _Search(np.flatnonzero(is_in), made(task.part(is_in)))
            for is_in in (task.feasible.is_preferred, ~task.feasible.is_preferred)
        )
        self._proposed = self._reported = 0  # how much of this pool was copied to the pools of both searches

    def choose(self, rng: np.random.Generator) -> int:
        pool = self.task.pool
        for row in pool.order[self._proposed :]:
            search = self._search_of(row)
            search.pool.propose(search.number_of(row))
        for row, value in islice(pool.outcomes.items(), self._reported, None):
            search = self._search_of(row)
            search.pool.tell(search.number_of(row), value)
        self._proposed = len(pool.order)
        self._reported = len(pool.outcomes)
        search = self._demoted if self._preferred.pool.is_exhausted else self._preferred
        row = search.method.choose(rng)
        search.pool.require_unseen(row)
        return int(search.rows[row])

    def _search_of(self, row: int) -> _Search:
        if self.task.feasible.is_preferred[row]:
            return self._preferred
        return self._demoted


class StudySampler(AbstractSampler):
    """The sampler of a run: a search method with an Optuna study in memory.

    A resumed run fills the study with the stored trials first.
    """

    def __init__(
        self, method: AbstractMethod, failing: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        """``failing()``: a context manager around each call of ``method``, so that errors can name it."""
        self.study = quiet_study(method)  # its trials have the strategy and its knobs as parameters
        self._failing = failing
        self._method = method
        self._pool = method.task.pool
        self._pending: dict[int, optuna.Trial] = {}  # by row

    def ask(self, number: int) -> int | None:
        if self._pool.is_exhausted:
            return None
        if number != len(self._pool.order):
            raise ValueError(f"trial: found {number}, allowed {len(self._pool.order)}")
        with self._failing():
            trial = self.study.ask(self._method.propose(number))
        row = self._pool.order[number]
        self._pending[row] = trial
        return row

    def row_of(self, number: int) -> int:
        return self._pool.order[number]

    def tell(self, row: int, value: float | None) -> None:
        trial = self._pending.pop(row, None)
        if trial is None:
            raise ValueError(f"row {row} is not pending")
        with self._failing():
            self.study.tell(trial, value, state=optuna.trial.TrialState.FAIL if value is None else None)

    def replay(self, number: int, row: int) -> None:
        self._pool.put_first(row)
        self.ask(number)


def quiet_study(
    sampler: BaseSampler | None, storage: BaseStorage | None = None, name: str | None = None
) -> optuna.Study:
    """Returns a new Optuna study that minimizes, in memory unless ``storage`` is given; logs nothing."""
    with quietly():
        return optuna.create_study(sampler=sampler, storage=storage, study_name=name)


@contextmanager
def quietly() -> Iterator[None]:
    """Context manager: suppresses Optuna's log messages below a warning, then restores its verbosity."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(verbosity)


def stored_studies(runs: Iterable[tuple[Run, tuple[StoredTrial, ...]]]) -> BaseStorage:
    """Returns an Optuna storage with a study per run, whose values are seconds.

    Trials without a time have state FAIL.
    """
    storage = InMemoryStorage()
    for run, trials in runs:
        study = quiet_study(
            None, storage, f"run {run.id}: {run.settings.problem.key} on {run.settings.target}"
        )
        study.set_user_attr("value", "seconds per call, the median")
        study.set_user_attr("machine", run.machine.name)
        study.set_user_attr("sampler", f"{run.settings.sampler}, seed {run.settings.seed}")
        distributions = distributions_of_candidates(trial.record.candidate for trial in trials)
        study.add_trials(_trial(trial, distributions) for trial in trials)
    return storage


def _trial(trial: StoredTrial, distributions: Distributions) -> FrozenTrial:
    record = trial.record
    values = parameters(trial.record.candidate)
    attributes: dict[str, str | int] = {"trial": trial.id, "status": record.status}
    if trial.best_s is not None:
        attributes["reliability"] = trial.reliability.text
    if isinstance(record.outcome, Failure):
        attributes |= {"stage": record.outcome.stage.value, "reason": record.outcome.reason}
    made = create_trial(
        state=TrialState.FAIL if trial.best_s is None else TrialState.COMPLETE,
        value=trial.best_s,
        params=dict(values),
        distributions={name: distributions[name] for name in values},
        user_attrs=attributes,
    )
    made.datetime_start = made.datetime_complete = trial.created.replace(tzinfo=None)
    return made
