"""One session of a run: the search, then the final re-measurement of the best trials, within one budget.

``TuningSession.run`` works until the end of the run; ``search`` is its loop of proposals and outcomes.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from tuner.core.candidate import Candidate
from tuner.core.errors import Failure
from tuner.core.interfaces import FINAL_EFFORT, AbstractRunner, AbstractSampler, BoundRecord, Effort
from tuner.core.records import Record
from tuner.space.feasible_set import FeasibleSet
from tuner.tuning.budget import TOP_TRIALS, Pace, in_flight_s, is_short, is_spent, search_effort
from tuner.tuning.events import FailedAlike, RoundDisturbed, SpaceExhausted
from tuner.tuning.remeasurement import is_disturbed, is_kept
from tuner.tuning.request import searched_s
from tuner.tuning.run_steps import RunSteps, Session
from tuner.tuning.search_loop import SearchSteps, search_trials
from tuner.tuning.tuned_run import TunedRun, tuned_run

MOST_ROUNDS = 3  # final re-measurements of one session: disturbed ones are repeated
REPEATED_AFTER = 1.1  # of the time of a disturbed one must be left of the budget


class Proposed(NamedTuple):
    """A trial that the sampler has proposed."""

    number: int  # 0, 1, ... in the order of proposals
    row: int  # index of the configuration in the feasible set


def search(
    sampler: AbstractSampler,
    candidate_of: Callable[[int], Candidate],
    runner: AbstractRunner,
    is_over: Callable[[int], bool],  # (trials proposed so far) -> whether the budget is spent
    on_proposal: Callable[[int, int, Candidate], None],  # (number, row, candidate), before it runs
    pending_limit: int = 1,  # proposals in flight
    stored: tuple[int, ...] = (),  # rows that earlier sessions of the run proposed, by number
) -> Iterator[tuple[Proposed, BoundRecord]]:
    """Runs the search loop of a sampler; yields each trial with its outcome, in the order of proposals.

    ``search_trials`` says which outcomes the sampler has at a proposal.
    """
    incumbent_s: float | None = None

    def row_of_trial(number: int) -> int | None:
        if number >= len(stored):
            return sampler.ask(number)
        sampler.replay(number, stored[number])
        return stored[number]

    def start(number: int) -> Proposed | None:
        row = row_of_trial(number)
        if row is None:
            return None
        candidate = candidate_of(row)
        on_proposal(number, row, candidate)
        runner.start(number, candidate, search_effort(incumbent_s))
        return Proposed(number, row)

    def tell(proposed: Proposed, bound: BoundRecord) -> None:
        nonlocal incumbent_s
        median_s = bound.record.median_s
        sampler.tell(proposed.row, median_s)
        incumbent_s = min(filter(None, (incumbent_s, median_s)), default=None)

    return search_trials(SearchSteps(is_over, start, lambda _: runner.finish(), tell), pending_limit)


class TuningSession:
    """Works on one session of a run until its end: search, final re-measurement, selected result."""

    def __init__(
        self,
        session: Session,
        feasible: FeasibleSet,
        sampler: AbstractSampler,
        *,
        retime: bool = False,  # re-measure although a round is stored
        before_s: float = 0.0,  # seconds of the command before this session, which its budget includes
    ) -> None:
        run = session.run
        self._session = session
        self._settings = run.settings
        self._feasible = feasible
        self._sampler = sampler
        self._must_time = self._is_retimed = retime
        self._is_timed = session.target.is_timed()  # read once: each call describes the processor anew
        self._must_time_baseline = run.baseline is None and self._is_timed
        if is_short(run.settings.budget_s):
            self._must_time_baseline = False  # the final re-measurement times it
        self._before_s = before_s
        self._steps = RunSteps(session)
        self._roofline_s = self._steps.roofline_s  # read once: it asks the database
        self._elapsed_before_s = run.seconds or 0.0  # of earlier sessions, by the monotonic clock
        self._stored_s = self._elapsed_before_s  # those that the database has
        self._started_s = session.clock()
        self._start_s: float | None = None  # of the child processes; None: not known
        # their start need not be timed: it was over when the baseline was timed, or is on another machine
        self._has_started_children = self._must_time_baseline or not session.target.needs_local_resources

    def run(self) -> TunedRun:
        """Works until the run's end and returns it with its result.

        An interruption gives status "interrupted". Raises UsageError if another process works on the run.
        """
        run = self._session.run
        store = self._session.store
        status = "interrupted"
        self._end_waiting(self._kept_s(TOP_TRIALS))
        try:
            with self._opened_runner() as runner:
                status = self._work(runner)
        except KeyboardInterrupt:
            pass  # the status says so
        finally:
            store.finish_run(run.id, status, self._elapsed_s() - self._stored_s)
        return tuned_run(store, run.id)

    @contextlib.contextmanager
    def _opened_runner(self) -> Iterator[AbstractRunner]:
        """Context manager: gives the runner, whose child processes are started.

        On a CPU the baseline is timed before they start, unless each of them has a core of its own.
        """
        target = self._session.target
        children = self._settings.workers + 1  # they compile, and one measures
        cores = self._session.run.machine.physical_cores - self._settings.threads
        if target.times_processors and children > cores:
            self._measure_baseline()
        settings = self._steps.runner_settings
        if self._settings.trials is not None:
            settings = replace(settings, workers=max(1, min(settings.workers, self._settings.trials)))
        runner = self._steps.replaying(target.runner(self._steps.order, settings))
        try:
            yield runner
        finally:
            runner.close()

    def _end_waiting(self, kept_s: float) -> None:
        """Lets the budget, less ``kept_s`` seconds, end the wait for other tuners."""
        budget_s = self._settings.budget_s
        if budget_s is not None and not self._is_retimed:
            self._steps.lock_wait.end_in(budget_s - kept_s - self._searched_s())

    def _measure_baseline(self) -> None:
        if self._must_time_baseline:
            self._must_time_baseline = False
            self._steps.measure_baseline()

    def _work(self, runner: AbstractRunner) -> str:
        self._measure_baseline()
        self._search(runner)
        if self._session.interruption.is_asked:
            return "interrupted"
        self._end_waiting(self._before_s)
        must_time = self._must_time or not self._steps.has_round()
        if must_time and self._is_timed:
            self._steps.measure_roofline()
        if must_time:
            self._remeasure(runner)
        self._steps.report_waited(self._spent_s())
        return "done"

    # The search.

    def _search(self, runner: AbstractRunner) -> None:
        session = self._session
        progress = self._steps.progress
        started_s = session.clock()
        before_s = self._steps.lock_wait.waited_s
        tried: set[int] = set()
        try:
            for proposed, bound in search(
                self._sampler,
                self._feasible.candidate,
                runner,
                self._is_over,
                self._propose,
                # one is timed while the workers compile the next ones
                pending_limit=self._settings.workers + 1,
                stored=tuple(proposal.row for proposal in session.stored),
            ):
                elapsed_s = self._elapsed_s()
                tried.add(proposed.row)
                if self._steps.store_outcome(proposed.number, bound, elapsed_s):
                    self._must_time = True
                    self._stored_s = elapsed_s
                    self._note_start(bound.record, session.clock() - started_s)
        finally:
            search_s = session.clock() - started_s
            waited_s = self._steps.lock_wait.waited_s - before_s
            idle_s = max(0.0, search_s - progress.evaluated_s - waited_s)
            session.store.add_search(session.run.id, search_s, idle_s)
        failure = self._same_failure
        if failure is not None:
            session.observe(FailedAlike(len(tried), failure))
        elif len(tried) == self._feasible.rows:
            session.observe(SpaceExhausted(len(tried), self._feasible.is_sample))

    @property
    def _same_failure(self) -> Failure | None:
        """Returns the failure of all trials so far, in a run of a user's one script; None if they differ."""
        strategies = self._settings.strategies
        if len(strategies) != 1 or strategies[0].path is None:
            return None
        return self._steps.progress.same_failure

    def _is_over(self, proposed: int) -> bool:
        if proposed < len(self._session.stored):
            return False
        if self._same_failure is not None:
            return True
        spent_s = self._searched_s() + self._kept_s(proposed + 1) + in_flight_s((self._steps.progress,))
        return self._session.interruption.is_asked or is_spent(self._settings, proposed, spent_s)

    def _propose(self, number: int, row: int, candidate: Candidate) -> None:
        elapsed_s = self._elapsed_s()
        if self._steps.propose(number, row, candidate, elapsed_s):
            self._stored_s = elapsed_s

    def _note_start(self, record: Record, search_s: float) -> None:
        """Stores how long the child processes took to start, when the first outcome is known.

        ``search_s``: seconds from the begin of the search to that outcome.
        """
        if self._steps.progress.evaluated == 1 and not self._has_started_children:
            self._start_s = max(0.0, search_s - sum(seconds for _, seconds in record.stage_s))

    # The final re-measurement.

    def _remeasure(self, runner: AbstractRunner) -> None:
        """Times the best trials again; repeats a disturbed round while the budget has time for another."""
        for further in reversed(range(MOST_ROUNDS)):
            started_s = self._searched_s()
            quality = self._steps.remeasure_top_trials(runner, *self._planned_final())
            round_s = self._searched_s() - started_s
            has_time = further and self._left_s >= REPEATED_AFTER * round_s
            if not has_time or not is_disturbed(quality):
                break
            self._session.observe(RoundDisturbed(is_repeated=True))
        if is_kept(quality):
            self._session.observe(RoundDisturbed())
        elif quality is not None and not quality.is_lost:
            self._steps.store_roofline()

    def _planned_final(self) -> tuple[Effort, int]:
        if self._is_retimed:
            return FINAL_EFFORT, TOP_TRIALS
        budget_s = self._settings.budget_s
        top_trials = min(TOP_TRIALS, self._steps.progress.counts.measured)
        return self._pace.planned_final(budget_s, self._searched_s(), self._left_s, top_trials)

    # The budget: seconds of the command before this session (``_before_s``), those that the run has used of
    # it (``_searched_s``), and those that are left (``_left_s``).

    @property
    def _left_s(self) -> float:
        """Returns the seconds left of the budget; 0 without a budget, and if the user asked for a round."""
        if self._settings.budget_s is None or self._is_retimed:
            return 0.0
        return self._settings.budget_s - self._before_s - self._searched_s()

    def _kept_s(self, trials: int) -> float:
        """Returns the seconds of the budget that are not for the search: before it, and for the final round.

        ``trials``: number of trials of the search, which limits how many are timed again.
        """
        kept_s = self._before_s + self._roofline_s
        budget_s = self._settings.budget_s
        if self._is_timed and budget_s is not None:
            kept_s += self._pace.kept_s(budget_s, self._searched_s(), min(TOP_TRIALS, trials))
        return kept_s

    @property
    def _pace(self) -> Pace:
        pace = Pace.of(self._steps.progress, self._start_s, self._before_s)
        if self._session.target.times_processors:
            return pace
        return replace(pace, slowness=1.0)  # of a GPU: there a time has other parts

    def _spent_s(self) -> float:
        """Returns the seconds of this session so far."""
        return self._session.clock() - self._started_s

    def _elapsed_s(self) -> float:
        """Returns the seconds of all sessions of the run so far."""
        return self._elapsed_before_s + self._spent_s()

    def _searched_s(self) -> float:
        """Returns the seconds of its budget that the run has used, in earlier sessions and in this one."""
        return searched_s(self._session.run) + self._spent_s()
