"""A tuning run: begins a new one, or resumes a stored one; makes the settings of a transfer run.

A run searches, then times its best trials again, interleaved (final re-measurement).
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tuner.core import queries, runs, trials
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import Failure, UsageError
from tuner.core.interfaces import FINAL_EFFORT, AbstractRunner, AbstractSampler, BoundRecord, Effort
from tuner.core.machine import Machine
from tuner.core.problem_text import tune_command
from tuner.core.records import Record
from tuner.core.round_quality import is_pressed
from tuner.core.runs import Compiler
from tuner.search.samplers import make_sampler
from tuner.space.feasible_set import FeasibleSet
from tuner.targets.backends import Backends, require_runs_here
from tuner.targets.target import Plan, Target
from tuner.tuning.budget import TOP_TRIALS, Pace, in_flight_s, is_short, is_spent
from tuner.tuning.disturbed_finals import is_disturbed, is_kept
from tuner.tuning.earlier_results import planned, rows_of_first
from tuner.tuning.events import (
    FailedAlike,
    Interruption,
    MachineBusy,
    Observer,
    RoundDisturbed,
    RunStarted,
    SpaceExhausted,
    ignore,
)
from tuner.tuning.request import (
    RunLimit,
    require_longer,
    require_memory,
    require_same_rows,
    require_threads,
    require_whole,
    require_workers,
    searched_s,
)
from tuner.tuning.run_steps import ReplayingSampler, RunSteps
from tuner.tuning.same_code import require_same_code, require_same_tools
from tuner.tuning.search_loop import SearchSteps, search_trials
from tuner.tuning.tuned_run import TunedRun, tuned_run
from tuner.version import __version__

if TYPE_CHECKING:
    from tuner.db.store import Store

# One session of a run: the ask/tell search loop, then the final re-measurement of the top trials.


ALIKE_LIMIT = 10  # equal failures, and nothing else, that end the search of one script of a user
MOST_ROUNDS = 3  # final re-measurements of one session: disturbed ones are repeated
REPEATED_AFTER = 1.1  # of the time of a disturbed one must be left of the budget
EARLY_STOPPED = 2.0  # a candidate slower than this many times the incumbent is early-stopped
SOURCE: Final = "run {}"  # source of each initial configuration


@dataclass(frozen=True)
class Trial:
    """One proposal of the sampler, with its number, its index in the feasible set, and its outcome."""

    number: int  # 0, 1, ... in the order of proposals
    row: int  # index of the configuration in the feasible set
    bound: BoundRecord


def search(
    sampler: AbstractSampler,
    candidate_of: Callable[[int], Candidate],
    runner: AbstractRunner,
    is_over: Callable[[int], bool],  # (trials proposed so far) -> whether the budget is spent
    on_proposal: Callable[[int, int, Candidate], None],  # (number, row, candidate), before it runs
    pending_limit: int = 1,  # proposals in flight
    first: int = 0,  # number of the first proposal: a resumed run continues the numbers
    effort: Effort = Effort(),
    incumbent_s: float | None = None,
) -> Iterator[Trial]:
    """Runs the search loop of a sampler; yields a trial per candidate, in the order of proposals.

    ``incumbent_s``: least seconds per call of earlier trials. ``search_trials`` says which outcomes the
    sampler has at a proposal.
    """

    def start(number: int) -> tuple[int, int] | None:
        row = sampler.ask(number)
        if row is None:
            return None
        candidate = candidate_of(row)
        on_proposal(number, row, candidate)
        stop_above_s = None if incumbent_s is None else EARLY_STOPPED * incumbent_s
        runner.start(number, candidate, replace(effort, stop_above_s=stop_above_s))
        return number, row

    def finish(started: tuple[int, int]) -> Trial:
        return Trial(*started, runner.finish())

    def tell(trial: Trial) -> None:
        nonlocal incumbent_s
        median_s = trial.bound.record.median_s
        sampler.tell(trial.row, median_s)
        incumbent_s = min(filter(None, (incumbent_s, median_s)), default=None)

    return search_trials(SearchSteps(is_over, start, finish, tell), pending_limit, first)


class TuningSession:
    """One session of a stored run, new or resumed: search, final re-measurement, selected result."""

    def __init__(
        self,
        run: runs.Run,
        stored: tuple[trials.Proposal, ...],  # of earlier sessions, by number
        feasible: FeasibleSet,
        sampler: AbstractSampler,
        target: Target,
        store: "Store",
        interruption: Interruption,
        observe: Observer,
        retime: bool = False,  # re-measure although a round is stored
        before_s: float = 0.0,  # seconds of the command before this session, which its budget includes
    ) -> None:
        self._run = run
        self._settings = run.settings
        self._feasible = feasible
        self._sampler = sampler
        self._target = target
        self._store = store
        self._interruption = interruption
        self._observe = observe
        self._must_time = self._is_retimed = retime
        self._is_timed = target.is_timed()  # read once: each call describes the processor anew
        self._must_time_baseline = run.baseline is None and self._is_timed
        if is_short(run.settings.budget_s):
            self._must_time_baseline = False  # the final re-measurement times it
        self._stored = stored
        self._before_s = before_s
        self._steps = RunSteps(run, stored, target, store, interruption, observe)
        self._roofline_s = self._steps.roofline_s  # read once: it asks the database
        self._elapsed_before_s = run.seconds or 0.0  # of earlier sessions, by the monotonic clock
        self._searched_before_s = searched_s(run)
        self._stored_s = self._elapsed_before_s
        self._started_s = time.monotonic()
        self._first_outcome_s: float | None = None  # seconds of the run at the first outcome of this session
        self._last_outcome_s = 0.0
        self._start_s: float | None = None  # of the child processes; None: not known
        # while the baseline was timed, or elsewhere
        self._has_started_children = self._must_time_baseline or not target.needs_local_resources

    def run(self) -> TunedRun:
        """Works until the run's end and returns it with its result.

        An interruption gives status "interrupted". Raises UsageError if another process works on the run.
        """
        status = "interrupted"
        self._end_waiting(self._kept_s(TOP_TRIALS))
        try:
            with self._opened_runner() as runner:
                status = self._work(runner)
        except KeyboardInterrupt:
            pass  # the status says so
        finally:
            self._store.finish_run(self._run.id, status, self._elapsed_s() - self._stored_s)
        return tuned_run(self._store, self._run.id)

    @contextlib.contextmanager
    def _opened_runner(self) -> Iterator[AbstractRunner]:
        """Yields the runner; its children start while the baseline is timed only if each has a core."""
        children = self._settings.workers + 1  # they compile, and one measures
        cores = self._run.machine.physical_cores - self._settings.threads
        if self._target.times_processors and children > cores:
            self._measure_baseline()
        settings = self._steps.runner_settings
        if self._settings.trials is not None:
            settings = replace(settings, workers=max(1, min(settings.workers, self._settings.trials)))
        runner = self._steps.replaying(self._target.runner(self._steps.order, settings))
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
        if self._interruption.is_asked:
            return "interrupted"
        self._end_waiting(self._before_s)
        must_time = self._must_time or not self._steps.has_round()
        if must_time and self._is_timed:
            self._steps.measure_roofline()
        if must_time:
            self._remeasure(runner)
        self._steps.report_waited(time.monotonic() - self._started_s)
        return "done"

    def _remeasure(self, runner: AbstractRunner) -> None:
        """Times the best trials again; where the round is disturbed, once more while the budget has time."""
        for further in reversed(range(MOST_ROUNDS)):
            started_s = self._searched_s()
            quality = self._steps.remeasure_top_trials(runner, *self._planned_final())
            round_s = self._searched_s() - started_s
            has_time = further and self._left_s >= REPEATED_AFTER * round_s
            if not has_time or not is_disturbed(quality):
                break
            self._observe(RoundDisturbed(is_repeated=True))
        if is_kept(quality):
            self._observe(RoundDisturbed())
        elif quality is not None and not quality.is_lost:
            self._steps.store_roofline()

    @property
    def _left_s(self) -> float:
        """Returns the seconds left of the budget; 0 without a budget, and where a round was asked for."""
        if self._settings.budget_s is None or self._is_retimed:
            return 0.0
        return self._settings.budget_s - self._before_s - self._searched_s()

    def _search(self, runner: AbstractRunner) -> None:
        started_s = time.monotonic()
        before_s = self._steps.lock_wait.waited_s
        tried: set[int] = set()
        try:
            for trial in search(
                ReplayingSampler(self._sampler, tuple(proposal.row for proposal in self._stored)),
                self._feasible.candidate,
                runner,
                self._is_over,
                self._propose,
                # one is timed while the workers compile the next ones
                pending_limit=self._settings.workers + 1,
            ):
                elapsed_s = self._elapsed_s()
                tried.add(trial.row)
                if self._steps.store_outcome(trial.number, trial.bound, elapsed_s):
                    self._must_time = True
                    self._stored_s = elapsed_s
                    self._note_outcome(trial.bound.record, elapsed_s, time.monotonic() - started_s)
        finally:
            search_s = time.monotonic() - started_s
            waited_s = self._steps.lock_wait.waited_s - before_s
            idle_s = max(0.0, search_s - self._steps.progress.evaluated_s - waited_s)
            self._store.add_search(self._run.id, search_s, idle_s)
        failure = self._same_failure
        if failure is not None:
            self._observe(FailedAlike(len(tried), failure))
        elif len(tried) == self._feasible.rows:
            self._observe(SpaceExhausted(len(tried), self._feasible.is_sample))

    @property
    def _same_failure(self) -> Failure | None:
        """Returns the failure of all trials so far, ALIKE_LIMIT or more, of a run of one script of a user."""
        progress = self._steps.progress
        strategies = self._settings.strategies
        if len(strategies) != 1 or strategies[0].path is None or progress.alike < ALIKE_LIMIT:
            return None
        first = progress.first_outcome
        if progress.alike == progress.ended and isinstance(first, Failure):
            return first
        return None

    def _is_over(self, proposed: int) -> bool:
        if proposed < len(self._stored):
            return False
        if self._same_failure is not None:
            return True
        spent_s = self._searched_s() + self._kept_s(proposed + 1) + self._in_flight_s()
        return self._interruption.is_asked or is_spent(self._settings, proposed, spent_s)

    def _propose(self, number: int, row: int, candidate: Candidate) -> None:
        elapsed_s = self._elapsed_s()
        if self._steps.propose(number, row, candidate, elapsed_s):
            self._stored_s = elapsed_s

    def _kept_s(self, trials: int) -> float:
        """Returns the seconds of the budget that a search of so many trials does not get."""
        kept_s = self._before_s + self._roofline_s
        budget_s = self._settings.budget_s
        if self._is_timed and budget_s is not None:
            kept_s += self._pace.kept_s(budget_s, self._searched_s(), min(TOP_TRIALS, trials))
        return kept_s

    def _in_flight_s(self) -> float:
        """Returns the seconds until all pending trials, and one more, have ended.

        By the time from one outcome to the next: where cores are few, no trial is compiled while another is
        timed.
        """
        progress = self._steps.progress
        by_evaluator_s = in_flight_s((progress,))
        first_s = self._first_outcome_s
        if first_s is None or progress.evaluated < 2:
            return by_evaluator_s
        pending = progress.counts.proposed - progress.ended
        pace_s = (self._last_outcome_s - first_s) / (progress.evaluated - 1)
        return max(by_evaluator_s, pace_s * (1 + pending))

    @property
    def _pace(self) -> Pace:
        pace = Pace.of(self._steps.progress, self._start_s, self._before_s)
        if self._target.times_processors:
            return pace
        return replace(pace, slowness=1.0)  # of a GPU: there a time has other parts

    def _note_outcome(self, record: Record, elapsed_s: float, search_s: float) -> None:
        """Notes when a trial of this session ended, ``search_s`` seconds after the search began."""
        self._last_outcome_s = elapsed_s
        if self._first_outcome_s is None:
            self._first_outcome_s = elapsed_s
            if not self._has_started_children:
                self._start_s = max(0.0, search_s - sum(seconds for _, seconds in record.stage_s))

    def _planned_final(self) -> tuple[Effort, int]:
        if self._is_retimed:
            return FINAL_EFFORT, TOP_TRIALS
        budget_s = self._settings.budget_s
        top_trials = min(TOP_TRIALS, self._steps.progress.counts.measured)
        return self._pace.planned_final(budget_s, self._searched_s(), self._left_s, top_trials)

    def _elapsed_s(self) -> float:
        return self._elapsed_before_s + time.monotonic() - self._started_s

    def _searched_s(self) -> float:
        return self._searched_before_s + time.monotonic() - self._started_s


def transfer_settings(
    source_run: runs.Run, target: TargetName, backends: Backends, store: "Store"
) -> tuple[runs.RunSettings | None, int | None]:
    """Returns (settings, None) for a transfer run; (None, id) if one is stored for the target's machine.

    A transfer run tries the candidates of ``source_run``, a run of another machine, in their order. Raises
    UsageError if none of them is feasible on the target.
    """
    settings = replace(source_run.settings, target=target)
    known = backends.target_of_run(settings)
    machine = known.machine(target)
    name = SOURCE.format(source_run.id)
    for run in store.matching_runs(queries.RunQuery(queries.TaskQuery(machine=machine.name))):
        if run.id > source_run.id and run.settings.first and run.settings.first[0].source == name:
            return None, run.id
    first = tuple(
        runs.InitialConfiguration(trial.record.candidate, runs.WARM_START, name)
        for trial in store.trials(queries.TrialQuery(run=source_run.id, sort="number"))
    )
    settings = replace(settings, first=first, prior="", warm_start=False, budget_s=None)
    rows = rows_of_first(settings, known.plan(settings, machine))
    if not rows:
        raise UsageError(
            f"run {source_run.id}: found no candidate that is feasible on {machine.name!r}, allowed 1 or more"
        )
    return replace(settings, trials=len(rows)), None


def begin(
    settings: runs.RunSettings,
    backends: Backends,
    store: "Store",
    interruption: Interruption,
    observe: Observer = ignore,
    *,
    began_s: float | None = None,
) -> TunedRun:
    """Tunes: stores a new run, works until its end, returns it with its selected result.

    ``observe`` is called with events. ``began_s``: when the command began, by the monotonic clock; a budget
    counts from there, else from the start of the session. Raises UsageError, before anything is stored, for
    settings that cannot run here.
    """
    target = backends.target_of_run(settings)
    if target.needs_local_resources:
        require_workers(settings.workers, backends.machine())
        require_memory(settings.problem, backends.machine())
    machine = machine_of_run(settings, target, backends)
    settings, plan = planned(settings, machine, target, store)
    first = rows_of_first(settings, plan)
    sampler = make_sampler(settings.sampler, plan.feasible, settings.seed, first, settings.prior)
    compiler = target.compiler(settings.target)
    run_id = store.begin_run(settings, machine, compiler, __version__, backends.load_average())
    run = store.run(run_id)
    _observe_start(run, plan, 0, observe)
    observe_load(run, target, backends, observe)
    before_s = 0.0 if began_s is None else time.monotonic() - began_s
    return TuningSession(
        run, (), plan.feasible, sampler, target, store, interruption, observe, before_s=before_s
    ).run()


def resume(
    run_id: int,
    backends: Backends,
    store: "Store",
    interruption: Interruption,
    observe: Observer = ignore,
    *,
    retime: bool = False,
    limit: RunLimit | None = None,
) -> TunedRun:
    """Resumes a stored run with its settings; returns it with its selected result.

    ``retime``: make one more final re-measurement. ``limit`` replaces the stored limits. Without both a
    finished run is returned as it is. Raises UsageError for a run of a bundle or of an unfinished campaign, a
    ``limit`` that is exceeded already, pruned trials, and for another machine, other tools or other code.
    """
    run = store.run(run_id)
    if run.elsewhere is not None:
        raise UsageError(f"run {run_id}: was measured from a bundle and cannot be continued")
    if run.campaign is not None and run.status != "done":
        line = f"run {run_id}: belongs to campaign {run.campaign.campaign}, whose runs share one budget"
        raise UsageError(line, f"tuner tune --resume campaign:{run.campaign.campaign}")
    if run.status == "done" and not retime and limit is None:
        return tuned_run(store, run_id)
    if run.settings.sampler == runs.JUDGED:
        raise UsageError(
            f"run {run_id}: has no search to continue: its scripts were given to tuner judge",
            f'tuner judge SCRIPT --problem "{run.settings.problem.key}"',
        )
    command = tune_command(queries.TaskQuery.of(run.settings.problem))
    require_runs_here(run.settings.target, backends, command)
    if run.settings.baseline_library:
        backends.target(run.settings.target).require_baseline(
            run.settings.baseline_library, run.settings.problem
        )
    target = backends.target_of_run(run.settings)
    machine = machine_of_run(run.settings, target, backends)
    compiler = target.compiler(run.settings.target)
    require_same_tools(run, machine, compiler)
    plan = target.plan(run.settings, machine)
    stored = store.proposals(run_id)
    require_whole(run, stored)
    require_same_rows(run, plan.feasible, stored)
    bind = target.bind(run.settings.strategies, run.settings.problem, run.settings.threads, machine)
    require_same_code(run, stored, target, bind, observe)
    first = rows_of_first(run.settings, plan)
    sampler = make_sampler(run.settings.sampler, plan.feasible, run.settings.seed, first, run.settings.prior)
    if limit is not None:
        require_longer(run, stored, limit)
        store.extend_run(run_id, limit.trials, limit.budget_s)
        run = replace(run, settings=limit.applied(run.settings))
    store.resume_run(run_id)
    run = under_compiler(run, compiler, store)
    _observe_start(run, plan, len(stored), observe)
    observe_load(run, target, backends, observe)
    return TuningSession(
        run, stored, plan.feasible, sampler, target, store, interruption, observe, retime
    ).run()


def under_compiler(run: runs.Run, compiler: Compiler, store: "Store") -> runs.Run:
    """Stores that ``compiler`` made the run's code, which it makes identically; returns the changed run."""
    if compiler != run.compiler:
        store.set_compiler(run.id, compiler)
    return replace(run, compiler=compiler)


def machine_of_run(settings: runs.RunSettings, target: Target, backends: Backends) -> Machine:
    """Returns the machine of a run's target. Raises UsageError if it has fewer processors than threads."""
    machine = target.machine(settings.target)
    if target.needs_local_resources:
        require_threads(settings.threads, machine, backends.processors())
    return machine


def observe_load(run: runs.Run, target: Target, backends: Backends, observe: Observer) -> None:
    """Reports, before anything is timed, if other programs or the hypervisor leave too few processors."""
    if not target.times_processors:
        return
    load = backends.present_load()
    usable = backends.processors().usable
    if is_pressed(load, min(usable, run.machine.physical_cores), run.settings.threads):
        observe(MachineBusy(run.id, load, usable))


def _observe_start(run: runs.Run, plan: Plan, proposed_before: int, observe: Observer) -> None:
    feasible = plan.feasible
    target = run.settings.target
    machine = target.detail if target.has_machine else run.machine.name
    notes = (*feasible.empty(machine), *plan.notes)
    sizes = (feasible.cartesian, feasible.rows, proposed_before, notes)
    remeasured_s = (run.seconds or 0.0) - searched_s(run)
    observe(RunStarted(run.id, run.settings, run.machine, *sizes, remeasured_s))
