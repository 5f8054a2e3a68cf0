"""One session of a campaign: one search over all problems, then the final re-measurement of each.

``projected_pool`` projects configurations onto every problem; ``GroupSession`` chooses the next trial,
and has a ``LateSampler`` per problem, which is built when it is first asked.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tuner.analysis.scheduler import ColumnPool, Scheduler
from tuner.core.candidate import Candidate
from tuner.core.interfaces import AbstractBench, AbstractSampler, Effort
from tuner.core.machine import Machine, Roofline
from tuner.core.problem import Problem
from tuner.core.requests import GroupProposal, RunGroup
from tuner.search.cost_model.configurations import model_of
from tuner.space.enumeration import Indices, first_broken_preference
from tuner.space.feasible_set import FeasibleSet
from tuner.space.projection import Projection
from tuner.space.search_space import SearchSpace
from tuner.targets.interface import BenchSettings, OutcomeSource
from tuner.tuning.events import (
    Event,
    GroupObserver,
    Interruption,
    Observer,
    RunEvent,
    WaitsForLock,
    WaitsForNode,
)
from tuner.tuning.run_steps import RunSteps, final_effort
from tuner.tuning.session import EARLY_STOPPED
from tuner.tuning.tuned_run import TunedGroup, tuned_group

if TYPE_CHECKING:
    from tuner.db.store import Store


# ------------------------------------------------------------------------------
# One session of a group of runs: one search over all problems, then the final re-measurement of each.


TOP_TRIALS_OF_GROUP = 4  # of each problem: it has some six trials, a run of its own a hundred


@dataclass(frozen=True)
class GroupPlan:
    """What a group may try: the pool, and each problem's feasible set and sampler."""

    pool: ColumnPool
    feasible: tuple[FeasibleSet, ...]
    samplers: tuple[AbstractSampler, ...]


@dataclass(frozen=True)
class _Started:
    """A trial in flight."""

    place: int  # of its run in the group
    number: int  # within its run
    row: int
    candidate: Candidate


class GroupSession:
    """One session of a stored group, new or resumed: search, final re-measurements, selected results."""

    def __init__(
        self,
        group: RunGroup,
        plan: GroupPlan,
        stored: tuple[GroupProposal, ...],  # of earlier sessions, by number
        source: OutcomeSource,
        store: "Store",
        interruption: Interruption,
        observe: GroupObserver,
    ) -> None:
        self._group = group
        self._plan = plan
        self._stored = stored
        self._source = source
        self._store = store
        self._interruption = interruption
        self._observe = observe
        self._places = {run.id: place for place, run in enumerate(group.runs)}
        self._steps = tuple(self._steps_of(place) for place in range(len(group.runs)))
        self._scheduler = Scheduler(plan.pool, group.settings.seed, group.settings.floors_s)
        self._taken = [0] * len(group.runs)  # trials of each run
        self._least_s: list[float | None] = [None] * len(group.runs)
        self._proposed = len(stored)
        self._run_s = [run.seconds or 0.0 for run in group.runs]
        self._started_s = self._charged_s = time.monotonic()
        self._search_ended_s: float | None = None  # by the monotonic clock

    def run(self) -> TunedGroup:
        """Works until the group's end or until the user interrupts; returns it with its selected results.

        The search ends when the budget is spent or everything is tried. Each outcome is stored as soon as it
        is known. An interruption raises nothing: the status of the group says so. Raises UsageError, and
        changes nothing, while another process drives one of the runs.
        """
        benches = self._benches()
        status = "interrupted"
        try:
            status = self._work(benches)
        except KeyboardInterrupt:
            pass  # the status says so
        finally:
            for bench in benches:
                bench.close()
            self._store.set_group_status(self._group.id, status)
            self._store_seconds()
        return tuned_group(self._store, self._group.id)

    def _steps_of(self, place: int) -> RunSteps:
        run = self._group.runs[place]
        stored = tuple(each.proposal for each in self._stored if each.run == run.id)
        observe = self._observer(place)
        return RunSteps(run, stored, self._source, self._store, self._interruption, observe)

    def _observer(self, place: int) -> Observer:
        def observe(event: Event) -> None:
            self._observe(RunEvent(place, event, self._proposed, self._elapsed_s()))

        return observe

    def _benches(self) -> tuple[AbstractBench, ...]:
        orders = tuple(steps.order for steps in self._steps)
        how = tuple(self._bench_settings(place) for place in range(len(orders)))
        if self._source.benches is not None:
            benches = self._source.benches(orders, how)
        else:
            benches = tuple(self._source.bench(*pair) for pair in zip(orders, how, strict=True))
        return tuple(steps.replaying(bench) for steps, bench in zip(self._steps, benches, strict=True))

    def _bench_settings(self, place: int) -> BenchSettings:
        run, observe = self._group.runs[place], self._observer(place)
        settings = run.settings
        return BenchSettings(
            settings.threads,
            settings.workers,
            settings.seed,
            lambda who: observe(WaitsForLock(who)),
            run.uuid,
            lambda why: observe(WaitsForNode(why)),
        )

    def _work(self, benches: tuple[AbstractBench, ...]) -> str:
        """Searches and re-measures; returns the status of the group."""
        self._search(benches)
        self._search_ended_s = time.monotonic()
        if self._interruption.is_asked:
            return "interrupted"
        rooflines: dict[str, Roofline] = {}  # by dtype
        effort = final_effort(self._searched_s() / len(self._group.runs))
        for place, (steps, bench) in enumerate(zip(self._steps, benches, strict=True)):
            if not steps.has_round() and steps.remeasure_top_trials(bench, effort, TOP_TRIALS_OF_GROUP):
                self._bound_by_roofline(steps, rooflines)
            self._charge(place)
            # from now on it can be resumed, extended and timed again as a run of its own
            self._store.extend_run(steps.run.id, self._taken[place], None)
        return "done"

    def _bound_by_roofline(self, steps: RunSteps, known: dict[str, Roofline]) -> None:
        """Stores the roofline of a run, measured once per type of the inputs."""
        dtype = steps.run.settings.problem.dtype
        if dtype in known:
            steps.set_roofline(known[dtype])
            return
        steps.bound_by_roofline()
        found = self._store.run(steps.run.id).roofline
        if found is not None:
            known[dtype] = found

    def _search(self, benches: tuple[AbstractBench, ...]) -> None:
        """Tries candidates until the budget is spent.

        At proposal ``n`` the scheduler and the samplers know the outcomes of the proposals up to
        ``n - pending``, and no later ones, so that a resumed group proposes what an uninterrupted one does.
        """
        limit = self._group.runs[0].settings.workers + 1  # one is timed while the workers compile the next
        pending: deque[_Started] = deque()
        number = 0
        while True:
            while len(pending) < limit and not self._is_over(number):
                started = self._start(number, benches)
                if started is None:
                    break
                pending.append(started)
                number += 1
            if not pending:
                return
            self._finish(pending.popleft(), benches)

    def _is_over(self, proposed: int) -> bool:
        settings = self._group.settings
        if proposed < len(self._stored):
            return False
        if self._interruption.is_asked or (settings.trials is not None and proposed >= settings.trials):
            return True
        return settings.budget_s is not None and self._searched_s() >= settings.budget_s

    def _start(self, number: int, benches: tuple[AbstractBench, ...]) -> _Started | None:
        """Proposes trial ``number`` of the group, or the stored one, and starts it; None: nothing is left."""
        chosen = self._stored_trial(number) if number < len(self._stored) else self._next_trial(number)
        if chosen is None:
            return None
        started, column = chosen
        place = started.place
        self._scheduler.take(place, started.candidate)
        self._taken[place] += 1
        if self._taken[place] == self._plan.feasible[place].rows:
            self._scheduler.end_sampler(place)
        self._proposed = max(self._proposed, number + 1)
        is_new = self._steps[place].propose(
            started.number, started.row, started.candidate, self._run_s[place], (number, column)
        )
        if is_new:
            self._store_seconds()
        least_s = self._least_s[place]
        effort = Effort(stop_above_s=None if least_s is None else EARLY_STOPPED * least_s)
        benches[place].start(started.number, started.candidate, effort)
        return started

    def _stored_trial(self, number: int) -> tuple[_Started, Candidate]:
        each = self._stored[number]
        place, proposal = self._places[each.run], each.proposal
        self._plan.samplers[place].replay(proposal.number, proposal.row)
        return _Started(place, proposal.number, proposal.row, proposal.candidate), each.column

    def _next_trial(self, number: int) -> tuple[_Started, Candidate] | None:
        suggestion = self._scheduler.suggest(number)
        if suggestion is None:
            return None
        place, sampler = suggestion.problem, self._plan.samplers[suggestion.problem]
        feasible, own_number = self._plan.feasible[place], self._taken[place]
        if suggestion.column is None:
            row = sampler.ask(own_number)
            if row is None:
                self._scheduler.end_sampler(place)
                return self._next_trial(number)
            candidate = feasible.candidate(row)
            return _Started(place, own_number, row, candidate), candidate
        projection = self._plan.pool.candidates[place][suggestion.column]
        assert projection is not None
        found = feasible.row_of(projection)
        assert found is not None
        sampler.replay(own_number, found)
        return _Started(place, own_number, found, projection), self._plan.pool.columns[suggestion.column]

    def _finish(self, started: _Started, benches: tuple[AbstractBench, ...]) -> None:
        """Waits for a trial; stores and reports its outcome unless an earlier session stored it."""
        place = started.place
        finished = benches[place].finish()
        median_s = finished.record.median_s
        self._scheduler.tell(place, started.candidate, median_s)
        self._plan.samplers[place].tell(started.row, median_s)
        least_s = self._least_s[place]
        if median_s is not None and (least_s is None or median_s < least_s):
            self._least_s[place] = median_s
        self._charge(place)
        if self._steps[place].keep(started.number, finished, self._run_s[place]):
            self._store_seconds()

    def _charge(self, place: int) -> None:
        """Adds the seconds since the last call to those of a run: so the runs' seconds are the group's."""
        now_s = time.monotonic()
        self._run_s[place] += now_s - self._charged_s
        self._charged_s = now_s

    def _store_seconds(self) -> None:
        self._store.set_group_seconds(self._group.id, self._elapsed_s(), self._searched_s())

    def _elapsed_s(self) -> float:
        return self._group.seconds + time.monotonic() - self._started_s

    def _searched_s(self) -> float:
        """Returns the seconds that count for the budget, over all sessions."""
        end_s = time.monotonic() if self._search_ended_s is None else self._search_ended_s
        return self._group.search_s + end_s - self._started_s


class LateSampler(AbstractSampler):
    """A sampler of one problem of a group; keeps the outcomes until it has to propose something."""

    def __init__(self, make: Callable[[], AbstractSampler]) -> None:
        self._make = make
        self._sampler: AbstractSampler | None = None
        self._earlier: list[Callable[[AbstractSampler], None]] = []  # calls before the first question

    def ask(self, number: int) -> int | None:
        """Returns the row of trial ``number`` of the run; None: every row was proposed."""
        if self._sampler is None:
            self._sampler = self._make()
            for call in self._earlier:
                call(self._sampler)
            self._earlier.clear()
        return self._sampler.ask(number)

    def tell(self, row: int, value: float | None) -> None:
        """Passes a row's seconds per call, None for a failed or untimed trial, to the sampler."""
        self._call(lambda sampler: sampler.tell(row, value))

    def replay(self, number: int, row: int) -> None:
        """Makes the sampler record ``row`` as the proposal of trial ``number``."""
        self._call(lambda sampler: sampler.replay(number, row))

    def _call(self, call: Callable[[AbstractSampler], None]) -> None:
        if self._sampler is None:
            self._earlier.append(call)
        else:
            call(self._sampler)


# ------------------------------------------------------------------------------
# Projects a set of configurations onto every problem of a group, with costs of the cost model.


@dataclass(frozen=True)
class PoolProblem:
    """A problem of a group, how often it occurs, and the search spaces of the strategies that can do it."""

    problem: Problem
    count: int
    spaces: tuple[SearchSpace, ...]


@dataclass(frozen=True)
class _Row:
    candidates: tuple[Candidate | None, ...]  # per column
    costs: tuple[float, ...]
    is_demoted: tuple[bool, ...]


def projected_pool(
    problems: tuple[PoolProblem, ...], columns: tuple[Candidate, ...], machine: Machine, threads: int
) -> ColumnPool:
    """Returns the pool of unprojected configurations ``columns`` for the problems of a group."""
    rows = [_row(each, columns, machine, threads) for each in problems]
    return ColumnPool(
        tuple(each.problem for each in problems),
        tuple(each.count for each in problems),
        columns,
        tuple(row.candidates for row in rows),
        tuple(row.costs for row in rows),
        tuple(row.is_demoted for row in rows),
    )


def _row(of: PoolProblem, columns: tuple[Candidate, ...], machine: Machine, threads: int) -> _Row:
    candidates: list[Candidate | None] = [None] * len(columns)
    costs, is_demoted = np.full(len(columns), np.inf), np.zeros(len(columns), np.bool_)
    for space in of.spaces:
        projection = Projection(space)
        own = [place for place, column in enumerate(columns) if column.strategy == space.strategy]
        for place in own:
            candidates[place] = projection.of(columns[place])
        there = [place for place in own if candidates[place] is not None]
        if not there:
            continue
        index = _index(space, [candidate for place in there if (candidate := candidates[place])])
        is_demoted[there] = first_broken_preference(space, index) < len(space.preferences)
        model = model_of(space, of.problem, machine, threads)
        if model is not None:
            costs[there] = model.costs(index, {})
    return _Row(tuple(candidates), tuple(costs.tolist()), tuple(is_demoted.tolist()))


def _index(space: SearchSpace, candidates: list[Candidate]) -> Indices:
    """Returns the choices of candidates [candidate, knob] as positions among the choices of each knob."""
    picks = [
        [knob.choices.index(dict(candidate.choices)[knob.name]) for knob in space.knobs]
        for candidate in candidates
    ]
    return np.array(picks, np.uint32).reshape(len(candidates), len(space.knobs))
