"""The best trial of a problem and target over all stored runs, on this or on another machine.

Also the best trial whose script stock ``mlir-opt`` can run, because it calls no transform op of tuner.
"""

import contextlib
import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from tuner.analysis.ratios import Comparable, NotComparable, between_trials
from tuner.analysis.selected_result import SelectedResult, select_result
from tuner.core.candidate import AUTO, TargetName
from tuner.core.errors import UsageError
from tuner.core.problem import ALIGNMENTS, CACHES, NUMPY_ALIGNMENT, WARM, Problem
from tuner.core.problem_text import tune_command
from tuner.core.queries import BestGroup, RunBound, TaskQuery, TrialQuery
from tuner.core.runs import Run
from tuner.core.trials import StoredTrial
from tuner.space.scripts.header import custom_ops
from tuner.targets.backends import Backends, resolve_target, timed_here
from tuner.tuning.tuned_run import tuned_run

if TYPE_CHECKING:
    from tuner.db.store import Store


# The best trial of a group (problem, target, threads, machine): the definition that all commands use.
# A group's best trial is the selected result (``select_result``) of one of the group's runs: a run with a
# reliable timing round precedes an unreliable one, then the least median wins, then the earliest run. Nothing
# is cached: what was timed again, merged, imported or marked stale counts at the next query.

MEASURED = "measured"


@dataclass(frozen=True)
class RunResult:
    """A stored run and its selected result: the trial to use, and the trials tied with the fastest."""

    run: Run
    selected: SelectedResult

    @property
    def best(self) -> StoredTrial:
        """Returns the selected trial of the run."""
        return self.selected.best

    @property
    def rank(self) -> tuple[bool, float, datetime.datetime, str]:
        """Returns the sort key (is unreliable, median seconds per call, begin, uuid): the best first."""
        run = self.run
        return bool(run.reliability.unreliable), self.selected.measurement.median_s, run.created, run.uuid


def group_of(trial: StoredTrial) -> BestGroup:
    """Returns a trial's group of comparable times: its problem, target, number of threads and machine."""
    record = trial.record
    return BestGroup(record.problem.key, record.target.text, trial.threads, trial.machine.name)


def any_group(_group: BestGroup) -> bool:
    """Returns True: all groups of comparable times; the default for ``is_asked`` of ``best_results``."""
    return True


def any_trial(_trial: StoredTrial) -> bool:
    """Returns True: every trial may be a result; the default for ``is_selectable`` of ``best_results``."""
    return True


def best_results(
    store: "Store",
    query: TrialQuery,
    is_asked: Callable[[BestGroup], bool] = any_group,
    is_selectable: Callable[[StoredTrial], bool] = any_trial,
) -> Mapping[BestGroup, RunResult]:
    """Returns the best run's result per group of comparable times (problem, target, threads, machine).

    ``is_asked`` selects the groups to return, ``is_selectable`` the trials that can be results. The query's
    limit, sorting and ``best`` are ignored.
    """
    of_group: dict[BestGroup, list[RunBound]] = {}
    for bound in store.run_bounds(query):
        if is_asked(bound.group):
            of_group.setdefault(bound.group, []).append(bound)
    best = {group: _best(store, query, bounds, is_selectable) for group, bounds in of_group.items()}
    return {group: result for group, result in best.items() if result is not None}


def _best(
    store: "Store", query: TrialQuery, bounds: list[RunBound], is_selectable: Callable[[StoredTrial], bool]
) -> RunResult | None:
    best: RunResult | None = None
    of_run = replace(query, best=False, status=query.status or MEASURED, limit=None, sort="number")
    for bound in sorted(bounds, key=attrgetter("is_unreliable", "least_s")):
        if best is not None and (bound.is_unreliable, bound.least_s) > best.rank[:2]:
            break  # ``least_s`` is a lower bound: neither this run nor a later one can be better
        trials = store.trials(replace(of_run, run=bound.run))
        run = store.run(bound.run)
        selected = select_result(tuple(filter(is_selectable, trials)), run.noise)
        result = None if selected is None else RunResult(run, selected)
        if result is not None and (best is None or result.rank < best.rank):
            best = result
    return best


def best_result(
    store: "Store",
    problem: Problem,
    machine: str,  # Machine.name
    target: str | None = None,
    threads: int | None = None,
) -> SelectedResult:
    """Returns the best stored result of a problem on the machine named ``machine``; replays do not count.

    ``target``: "cuda:sm_90" or a kind, "cuda"; ``target`` or ``threads`` None: any. Raises UsageError if
    there is no result.
    """
    task = TaskQuery.of(problem, target=target, machine=machine, threads=threads)
    results = best_results(store, TrialQuery(task), is_measured_there)
    if not results:
        raise _nothing_known(store, problem, task)
    return min(results.values(), key=attrgetter("rank")).selected


class NotTunedError(UsageError):
    """No time is stored for the requested problem on the requested machine and target."""


def best_here(
    store: "Store",
    backends: Backends,
    problem: Problem,
    target_text: str = AUTO,
    threads: int | None = None,
) -> SelectedResult:
    """Returns the best stored result of a problem for ``target_text`` on machines with this machine's name.

    ``target_text``: a target, its kind, or "auto", the first with a result; ``threads`` None: any. Raises
    UsageError where no time is stored or the target does not work here.
    """
    if target_text != AUTO:
        target = resolve_target(target_text, backends)
        backends.target(target).require_types(problem, target)
        return _best_of(store, backends, problem, target, target_text, threads)
    timed = [target for target in timed_here(backends) if _takes(backends, problem, target)]
    if not timed:
        working = (
            TargetName(status.name, status.chip) for status in backends.statuses() if status.is_available
        )
        first = next((target.kind for target in working if _takes(backends, problem, target)), None)
        raise _nothing_known(store, problem, TaskQuery.of(problem, target=first, threads=threads))
    for target in timed[:-1]:
        with contextlib.suppress(UsageError):
            return _best_of(store, backends, problem, target, target.kind, threads)
    return _best_of(store, backends, problem, timed[-1], timed[-1].kind, threads)


def best_known(
    store: "Store",
    backends: Backends,
    problem: Problem,
    target_text: str = AUTO,
    threads: int | None = None,
    machine: str | None = None,  # Machine.name; None: this one
) -> SelectedResult:
    """Returns the best stored result of a problem for the target ``target_text``, on ``machine`` or here.

    ``target_text``: a target such as "cuda:sm_90", "cuda" for any of that name, or "auto" for the first
    target with a result; ``threads`` None: any. Raises UsageError if no time is stored, or if ``machine`` is
    None and the target does not work on this machine.
    """
    if machine is None:
        return best_here(store, backends, problem, target_text, threads)
    return best_result(store, problem, machine, None if target_text == AUTO else target_text, threads)


def best_trials_here(store: "Store", backends: Backends, query: TrialQuery) -> tuple[StoredTrial, ...]:
    """Returns the best trial per problem, target and thread count, of machines with this machine's name.

    In the order of creation. Trials of targets without a backend here are left out. ``query.limit``, ``sort``
    and ``best`` are ignored.
    """

    def is_of_here(group: BestGroup) -> bool:
        target = TargetName.parse(group.target)
        if backends.targets.get(target.kind) is None:
            return False
        return backends.target(target).machine(target).name == group.machine

    best = [result.best for result in best_results(store, query, is_of_here).values()]
    return tuple(sorted(best, key=lambda trial: (trial.created, trial.id)))


def _takes(backends: Backends, problem: Problem, target: TargetName) -> bool:
    try:
        backends.target(target).require_types(problem, target)
    except UsageError:
        return False
    return True


def _best_of(
    store: "Store",
    backends: Backends,
    problem: Problem,
    target: TargetName,
    wanted: str,  # a kind means all its chips: code for sm_90a runs where code for sm_90 does
    threads: int | None,
) -> SelectedResult:
    machine = backends.target(target).machine(target)
    return best_result(store, problem, machine.name, wanted, threads)


def is_measured_there(group: BestGroup) -> bool:
    """Returns True if a group's trials were timed on a machine, False if they replay a recording."""
    return TargetName.parse(group.target).has_machine


def _nothing_known(store: "Store", problem: Problem, task: TaskQuery) -> NotTunedError:
    options = [task.operation, task.shape, task.dtype, task.layout, task.epilogue, task.target]
    what = " ".join(text for text in options if text is not None)
    if task.threads is not None:
        what += f" with threads={task.threads}"
    variants = {
        "align": [replace(task, key=None, align=align) for align in ALIGNMENTS],
        "cache": [replace(task, key=None, cache=cache) for cache in CACHES],
    }
    for name, tasks in variants.items():
        wanted = getattr(task, name)
        others = [getattr(wider, name) for wider in tasks if wider != task and _timed_groups(store, wider)]
        if others:
            return NotTunedError(
                f"{what}: nothing measured with {name}={wanted}, only with {name}={' and '.join(others)}",
                f"choose with --{name} {others[0]}, in Python with {name}={others[0]!r}",
            )
    if task.align != NUMPY_ALIGNMENT:
        what += f" with align={task.align}"
    if task.cache != WARM:
        what += f" with cache={task.cache}"
    elsewhere = {group.machine for group in _timed_groups(store, TaskQuery.of(problem))} - {task.machine}
    if elsewhere:
        return NotTunedError(
            f"{what}: nothing measured on {task.machine!r}, only on {', '.join(sorted(elsewhere))}",
            "choose with --machine, in Python with machine=",
        )
    verified = store.trials(TrialQuery(task, status="verified", sort="-created", limit=1))
    if verified:
        return NotTunedError(
            f"{what}: nothing measured, only verified, which ranks nothing; the latest such trial is "
            f"{verified[0].id} of run {verified[0].run}",
            f"tuner export --trial {verified[0].id}",
        )
    return NotTunedError(f"{what}: nothing measured yet", tune_command(task))


def _timed_groups(store: "Store", task: TaskQuery) -> list[BestGroup]:
    groups = (bound.group for bound in store.run_bounds(TrialQuery(task)))
    return list(filter(is_measured_there, groups))


@dataclass(frozen=True)
class BestStock:
    """The best trial that stock ``mlir-opt`` can run, compared with the best trial of its problem.

    The script of the former has no transform op of tuner.
    """

    trial: StoredTrial
    winner: StoredTrial  # the given trial; equal to ``trial`` where stock ``mlir-opt`` runs its script
    compared: Comparable | NotComparable  # ``trial`` with ``winner``


def best_stock(store: "Store", winner: StoredTrial) -> BestStock:
    """Returns the best trial whose script stock ``mlir-opt`` can run; this may be ``winner``.

    Searches the trials with the same problem, target, threads and machine as ``winner``. Raises UsageError if
    ``winner`` was not timed, or every timed script calls ops of tuner.
    """
    if winner.best_s is None or not is_measured_there(group_of(winner)):
        raise UsageError(f"--stock: trial {winner.id} was not timed")
    trial = winner
    if custom_ops(winner.script_text):
        record = winner.record
        group = group_of(winner)
        query = TrialQuery.measured(record.problem, record.target, winner.machine, winner.threads)
        results = best_results(store, query, group.__eq__, lambda stored: not custom_ops(stored.script_text))
        if group not in results:
            trials = store.trials(query)
            ops = ", ".join(sorted({op for stored in trials for op in custom_ops(stored.script_text)}))
            raise UsageError(
                f"--stock: {record.problem.key}: all {len(trials)} timed scripts call ops of tuner ({ops})",
                "more trials, or another --strategy, may time one without",
            )
        trial = results[group].best
    return BestStock(trial, winner, between_trials(store.run(winner.run), trial, winner))


def other_winners(store: "Store", best: StoredTrial) -> tuple[StoredTrial, ...]:
    """Returns the best trial of each other cache state (``Problem.cache``) with another script than ``best``.

    Problem, target, machine and threads are those of ``best``. () if ``best`` is untimed or a replay.
    """
    if best.best_s is None or not is_measured_there(group_of(best)):
        return ()
    winners = []
    for cache in CACHES:
        if cache != best.record.problem.cache:
            problem = replace(best.record.problem, cache=cache)
            query = TrialQuery.measured(problem, best.record.target, best.machine, best.threads)
            winners += [result.best for result in best_results(store, query).values()][:1]
    return tuple(winner for winner in winners if winner.record.script_sha256 != best.record.script_sha256)


def why_not_best(store: "Store", trial: StoredTrial, best: RunResult) -> str:
    """Returns a clause that says why ``trial``, the fastest of its group, is not the group's best trial.

    A group shares problem, target, threads and machine; ``best``: the result of the group.
    """
    if trial.stale:
        return f"its time no longer holds ({trial.stale})"
    if trial.early_stopped is not None:
        return "it was early-stopped: its samples are not a result"
    if trial.run == best.run.id:
        return _why_in_its_run(trial, best)
    run = tuned_run(store, trial.run)
    why = run.run.reliability.unreliable
    if why and not best.run.reliability.unreliable:
        return f"the timing of run {trial.run} is unreliable ({why})"
    if run.selected is not None and run.selected.best.id != trial.id:
        return f"in run {trial.run} {_why_in_its_run(trial, RunResult(run.run, run.selected))}"
    return f"trial {best.best.id} is as fast, and its run is earlier"


def _why_in_its_run(trial: StoredTrial, best: RunResult) -> str:
    if trial.final is None and best.best.final is not None:
        return "it did not take part in the final re-measurement"
    return f"trial {best.best.id} is simpler, and as fast within the noise of {best.selected.floor:.1%}"


def why_first_is_not_best(
    store: "Store", trials: tuple[StoredTrial, ...], best_of_runs: tuple[RunResult, ...]
) -> str:
    """Returns why the first of ``trials``, sorted by time, is not the best of its group; "" if it is.

    "" also if ``trials`` is empty or its first trial has no time. ``best_of_runs``: the results of the
    trials' groups (``BestGroup``).
    """
    if not trials or trials[0].best_s is None:
        return ""
    first = trials[0]
    best = next((run for run in best_of_runs if group_of(run.best) == group_of(first)), None)
    if best is None or best.best.id == first.id:
        return ""
    return f"best: trial {best.best.id}, not {first.id}: {why_not_best(store, first, best)}"
