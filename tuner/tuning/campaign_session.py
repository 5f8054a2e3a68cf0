"""One session of a campaign: one search over all problems, then the final re-measurement of each.

``CampaignSession.run`` searches, with a ``Scheduler`` that chooses the problem and the configuration of each
trial, then times the best trials of each problem again. ``LateSampler`` is the sampler of one problem.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.analysis.scheduler import QUIET, REST, SMALL, ColumnPool, Scheduler
from tuner.core.candidate import Candidate
from tuner.core.interfaces import AbstractRunner, AbstractSampler, BoundRecord, Effort
from tuner.core.requests import Campaign, CampaignProposal
from tuner.core.roofline import Roofline
from tuner.space.feasible_set import FeasibleSet
from tuner.targets.target import Target
from tuner.tuning.budget import (
    final_effort,
    in_flight_s,
    is_spent,
    reserved_s,
    search_effort,
    untimed_factor,
)
from tuner.tuning.events import CampaignObserver, Event, Interruption, Observer, RoundDisturbed, RunEvent
from tuner.tuning.remeasurement import is_kept
from tuner.tuning.run_steps import RunSteps, Session
from tuner.tuning.search_loop import SearchSteps, search_trials
from tuner.tuning.tuned_run import TunedCampaign, tuned_campaign

if TYPE_CHECKING:
    from tuner.db.store import Store


NOTHING_LEFT = (
    f"nothing is left to gain: what has gained {SMALL:.0%} in its last {QUIET} trials, or had fewer, "
    f"could save {REST:.0%} of the time at most"
)
TOP_TRIALS_OF_CAMPAIGN = 4  # of each problem: it has some eight trials, a run of its own a hundred


@dataclass(frozen=True)
class CampaignPlan:
    """What a campaign may try: common configurations, and a feasible set and a sampler for each problem."""

    pool: ColumnPool
    feasible: tuple[FeasibleSet, ...]
    samplers: tuple[AbstractSampler, ...]


@dataclass(frozen=True)
class _Started:
    index: int  # of its run in the campaign
    number: int  # within its run
    row: int
    candidate: Candidate


class CampaignSession:
    """One session of a stored campaign, new or resumed: search, final re-measurements, selected results."""

    def __init__(
        self,
        campaign: Campaign,
        plan: CampaignPlan,
        stored: tuple[CampaignProposal, ...],  # of earlier sessions, by number
        target: Target,
        store: "Store",
        interruption: Interruption,
        observe: CampaignObserver,
        before_s: float = 0.0,  # seconds of the command before this session, which its budget includes
        *,
        ends_early: bool = True,  # where nothing is left to gain; False: the campaign was extended
    ) -> None:
        self._ends_early = ends_early
        self._ended = ""
        self._campaign = campaign
        self._plan = plan
        self._stored = stored
        budget_s = campaign.settings.budget_s
        problems = len(campaign.runs)
        is_timed = target.is_timed()
        self._before_s = before_s
        self._reserved_s = before_s
        if is_timed:
            are_fusions = campaign.settings.are_fusions
            self._reserved_s += reserved_s(
                budget_s, problems, TOP_TRIALS_OF_CAMPAIGN, are_fusions=are_fusions
            )
        self._target = target
        self._store = store
        self._interruption = interruption
        self._observe = observe
        self._indices = {run.id: index for index, run in enumerate(campaign.runs)}
        self._steps = tuple(
            RunSteps(
                Session(
                    run,
                    tuple(proposal.proposal for proposal in stored if proposal.run == run.id),
                    target,
                    store,
                    interruption,
                    self._observer(index),
                )
            )
            for index, run in enumerate(campaign.runs)
        )
        by_dtype = {step.run.settings.problem.multiplied_dtype: step for step in self._steps}
        self._reserved_s += sum(steps.roofline_s for steps in by_dtype.values())
        self._scheduler = Scheduler(
            plan.pool, campaign.settings.seed, campaign.settings.floors_s, tries_all=budget_s is None
        )
        self._taken = [0] * len(campaign.runs)  # trials of each run
        self._least_s: list[float | None] = [None] * len(campaign.runs)
        self._proposed = len(stored)
        self._run_s = [run.seconds or 0.0 for run in campaign.runs]
        self._started_s = self._charged_s = time.monotonic()
        self._search_ended_s: float | None = None  # by the monotonic clock

    def run(self) -> TunedCampaign:
        """Works until the campaign's end and returns it; an interruption ends it with status "interrupted".

        Raises UsageError if another process works on the campaign.
        """
        runners = self._runners()
        status = "interrupted"
        self._end_waiting(self._reserved_s)
        try:
            status = self._work(runners)
        except KeyboardInterrupt:
            pass  # the status says so
        finally:
            for runner in runners:
                runner.close()
            self._store.set_campaign_status(self._campaign.id, status)
            self._store_seconds()
        return replace(tuned_campaign(self._store, self._campaign.id), ended_early=self._ended)

    def _observer(self, index: int) -> Observer:
        def observe(event: Event) -> None:
            self._observe(RunEvent(index, event, self._proposed, self._elapsed_s()))

        return observe

    def _runners(self) -> tuple[AbstractRunner, ...]:
        orders = tuple(steps.order for steps in self._steps)
        how = tuple(steps.runner_settings for steps in self._steps)
        runners = self._target.runners(orders, how)
        return tuple(steps.replaying(runner) for steps, runner in zip(self._steps, runners, strict=True))

    def _work(self, runners: tuple[AbstractRunner, ...]) -> str:
        self._search(runners)
        self._search_ended_s = time.monotonic()
        if self._interruption.is_asked:
            return "interrupted"
        self._end_waiting(self._before_s)
        rooflines: dict[tuple[str, int], Roofline] = {}  # by dtype and number of threads
        for index, (steps, runner) in enumerate(zip(self._steps, runners, strict=True)):
            effort = self._final_effort(index)
            if not steps.has_round():
                quality = steps.remeasure_top_trials(runner, effort, TOP_TRIALS_OF_CAMPAIGN)
                if is_kept(quality):
                    self._observer(index)(RoundDisturbed())
                elif quality is not None and not quality.is_lost:
                    self._store_roofline(steps, rooflines)
            self._charge(index)
            # from now on the run can be resumed, extended and timed again as a run of its own
            self._store.extend_run(steps.run.id, self._taken[index], None)
        for steps in self._steps:
            steps.report_waited(time.monotonic() - self._started_s)
        return "done"

    def _end_waiting(self, kept_s: float) -> None:
        """Lets the budget, less ``kept_s`` seconds, end the wait for other tuners."""
        budget_s = self._campaign.settings.budget_s
        if budget_s is None:
            return
        used_s = self._campaign.search_s + time.monotonic() - self._started_s
        for steps in self._steps:
            steps.lock_wait.end_in(budget_s - kept_s - used_s)

    def _final_effort(self, index: int) -> Effort:
        budget_s = self._campaign.settings.budget_s
        problems = len(self._campaign.runs)
        left_s = None
        if budget_s is not None:
            used_s = self._before_s + self._campaign.search_s + time.monotonic() - self._started_s
            left_s = (budget_s - used_s) / (problems - index)
        steps = self._steps[index]
        untimed = untimed_factor(steps.run.settings.problem, steps.progress.best_s)
        return final_effort(self._searched_s() / problems, left_s, TOP_TRIALS_OF_CAMPAIGN, untimed)

    def _store_roofline(self, steps: RunSteps, known: dict[tuple[str, int], Roofline]) -> None:
        key = (steps.run.settings.problem.multiplied_dtype, steps.run.settings.threads)
        if key in known:
            steps.set_roofline(known[key])
            return
        steps.store_roofline()
        roofline = self._store.run(steps.run.id).roofline
        if roofline is not None:
            known[key] = roofline

    def _search(self, runners: tuple[AbstractRunner, ...]) -> None:
        limit = self._campaign.runs[0].settings.workers + 1  # one is timed while the workers compile the next
        steps = SearchSteps(
            self._is_over,
            lambda number: self._start(number, runners),
            lambda started: self._finish(started, runners),
            self._tell,
        )
        for _ in search_trials(steps, limit):
            pass

    def _is_over(self, proposed: int) -> bool:
        if proposed < len(self._stored):
            # an earlier session went on here: it was asked for more
            self._ends_early = self._ends_early and not self._scheduler.has_nothing_left
            return False
        spent_s = self._searched_s() + self._reserved_s
        spent_s += in_flight_s([step.progress for step in self._steps])
        if self._interruption.is_asked or is_spent(self._campaign.settings, proposed, spent_s):
            self._ended = ""
            return True
        self._ended = NOTHING_LEFT if self._ends_early and self._scheduler.has_nothing_left else ""
        return bool(self._ended)

    def _start(self, number: int, runners: tuple[AbstractRunner, ...]) -> _Started | None:
        # a resumed campaign first replays the trials that are stored
        chosen = self._stored_trial(number) if number < len(self._stored) else self._next_trial(number)
        if chosen is None:
            return None
        started, unprojected = chosen
        index = started.index
        self._scheduler.take(index, started.candidate)
        self._taken[index] += 1
        if self._taken[index] == self._plan.feasible[index].rows:
            self._scheduler.end_sampler(index)
        self._proposed = max(self._proposed, number + 1)
        is_new = self._steps[index].propose(
            started.number, started.row, started.candidate, self._run_s[index], (number, unprojected)
        )
        if is_new:
            self._store_seconds()
        effort = search_effort(self._least_s[index])
        runners[index].start(started.number, started.candidate, effort)
        return started

    def _stored_trial(self, number: int) -> tuple[_Started, Candidate]:
        stored = self._stored[number]
        index = self._indices[stored.run]
        proposal = stored.proposal
        self._plan.samplers[index].replay(proposal.number, proposal.row)
        return _Started(index, proposal.number, proposal.row, proposal.candidate), stored.column

    def _next_trial(self, number: int) -> tuple[_Started, Candidate] | None:
        suggestion = self._scheduler.suggest(number)
        if suggestion is None:
            return None
        index = suggestion.problem
        sampler = self._plan.samplers[suggestion.problem]
        feasible = self._plan.feasible[index]
        own_number = self._taken[index]
        if suggestion.column is None:
            row = sampler.ask(own_number)
            if row is None:
                self._scheduler.end_sampler(index)
                return self._next_trial(number)
            candidate = feasible.candidate(row)
            return _Started(index, own_number, row, candidate), candidate
        projection = self._plan.pool.candidates[index][suggestion.column]
        assert projection is not None
        row = feasible.row_of(projection)
        assert row is not None
        sampler.replay(own_number, row)  # so that it does not propose the configuration again
        return _Started(index, own_number, row, projection), self._plan.pool.columns[suggestion.column]

    def _finish(self, started: _Started, runners: tuple[AbstractRunner, ...]) -> BoundRecord:
        index = started.index
        bound = runners[index].finish()
        self._charge(index)
        if self._steps[index].store_outcome(started.number, bound, self._run_s[index]):
            self._store_seconds()
        return bound

    def _tell(self, started: _Started, bound: BoundRecord) -> None:
        index = started.index
        median_s = bound.record.median_s
        self._scheduler.tell(index, started.candidate, median_s)
        self._plan.samplers[index].tell(started.row, median_s)
        self._least_s[index] = min(filter(None, (self._least_s[index], median_s)), default=None)

    def _charge(self, index: int) -> None:
        # the time since the last outcome goes to the run that has one now
        now_s = time.monotonic()
        self._run_s[index] += now_s - self._charged_s
        self._charged_s = now_s

    def _store_seconds(self) -> None:
        self._store.set_campaign_seconds(self._campaign.id, self._elapsed_s(), self._searched_s())

    def _elapsed_s(self) -> float:
        return self._campaign.seconds + time.monotonic() - self._started_s

    def _searched_s(self) -> float:
        end_s = time.monotonic() if self._search_ended_s is None else self._search_ended_s
        return self._campaign.search_s + end_s - self._started_s


class LateSampler(AbstractSampler):
    """A sampler for one problem of a campaign that is made when it first proposes a configuration.

    It then gets all outcomes of the problem so far.
    """

    def __init__(self, make: Callable[[], AbstractSampler]) -> None:
        self._make = make
        self._sampler: AbstractSampler | None = None
        self._earlier: list[Callable[[AbstractSampler], None]] = []  # calls before the first question

    def ask(self, number: int) -> int | None:
        if self._sampler is None:
            self._sampler = self._make()
            for call in self._earlier:
                call(self._sampler)
            self._earlier.clear()
        return self._sampler.ask(number)

    def tell(self, row: int, value: float | None) -> None:
        self._call(lambda sampler: sampler.tell(row, value))

    def replay(self, number: int, row: int) -> None:
        self._call(lambda sampler: sampler.replay(number, row))

    def _call(self, call: Callable[[AbstractSampler], None]) -> None:
        if self._sampler is None:
            self._earlier.append(call)
        else:
            call(self._sampler)
