"""The best known trial of a problem, over all runs."""

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from tuner.analysis.selected_result import SelectedResult
from tuner.core.errors import UsageError
from tuner.core.problem import ALIGNMENTS, CACHES, NUMPY_ALIGNMENT, WARM, Problem
from tuner.core.runs import BestGroup, StoredTrial, TaskQuery, TrialQuery
from tuner.core.target_name import TargetName
from tuner.run_history.best_trials import best_results
from tuner.tuning.advice import tune_command
from tuner.tuning.composition import Composition
from tuner.tuning.target_choice import AUTO, resolve_target, timed_here

if TYPE_CHECKING:
    from tuner.db.store import Store


def best_result(
    store: "Store",
    problem: Problem,
    machine: str,  # Machine.name
    target: str | None = None,
    threads: int | None = None,
) -> SelectedResult:
    """Returns the best stored result of a problem on the machine named ``machine``; replays do not count.

    The result has the trial to use and the trials tied with the fastest. ``target`` is a name such as
    "cuda:sm_90" or a kind such as "cuda"; ``target`` or ``threads`` None: the best over all of them. Raises
    UsageError where the database has no such time.
    """
    task = TaskQuery.of(problem, target=target, machine=machine, threads=threads)
    found = best_results(store, TrialQuery(task), is_measured_there)
    if not found:
        raise _nothing_known(store, problem, task)
    return min(found.values(), key=lambda each: each.rank).selected


def best_here(
    store: "Store",
    composition: Composition,
    problem: Problem,
    text: str = AUTO,  # for a target
    threads: int | None = None,
) -> SelectedResult:
    """Returns the best stored result of a problem for the target ``text`` on this class of machine.

    ``text`` is a target or a kind of target, such as "cpu"; "auto" is the first target that can be timed here
    and has a result. ``threads`` None: over all numbers of threads. Raises UsageError where no time is
    stored, or where the target does not work on this machine or with the problem's types.
    """
    if text != AUTO:
        target = resolve_target(text, composition)
        composition.kind(target).require_types(problem, target)
        return _best_of(store, composition, problem, target, text, threads)
    timed = [target for target in timed_here(composition) if _takes(composition, problem, target)]
    if not timed:
        taking = _first_taking(composition, problem)
        raise _nothing_known(store, problem, TaskQuery.of(problem, target=taking, threads=threads))
    for target in timed[:-1]:
        with contextlib.suppress(UsageError):
            return _best_of(store, composition, problem, target, target.kind, threads)
    return _best_of(store, composition, problem, timed[-1], timed[-1].kind, threads)


def best_known(
    store: "Store",
    composition: Composition,
    problem: Problem,
    text: str = AUTO,  # for a target
    threads: int | None = None,
    machine: str | None = None,  # Machine.name; None: this one
) -> SelectedResult:
    """Returns the best stored result of a problem for the target ``text``, on ``machine`` or on this machine.

    ``machine`` is a name as stored with the results; None: this machine. "auto" is the first target that can
    be timed here and has a result, or with ``machine`` any target. Raises UsageError where no time is stored.
    """
    if machine is None:
        return best_here(store, composition, problem, text, threads)
    return best_result(store, problem, machine, None if text == AUTO else text, threads)


def best_trials_here(store: "Store", composition: Composition, query: TrialQuery) -> tuple[StoredTrial, ...]:
    """Returns the best trial of each problem, target and number of threads on this class of machine.

    The earliest proposed trial comes first. ``query`` has conditions on the trials; its limit and its sorting
    are ignored. Replays are left out.
    """

    def is_of_here(group: BestGroup) -> bool:
        target = TargetName.parse(group.target)
        if composition.kinds.get(target.kind) is None:
            return False
        return composition.outcomes(target).machine(target).name == group.machine

    found = best_results(store, query, is_of_here)
    return tuple(sorted((each.best for each in found.values()), key=lambda trial: (trial.created, trial.id)))


def _takes(composition: Composition, problem: Problem, target: TargetName) -> bool:
    """Returns whether a target computes with the problem's types."""
    try:
        composition.kind(target).require_types(problem, target)
    except UsageError:
        return False
    return True


def _first_taking(composition: Composition, problem: Problem) -> str | None:
    """Returns the name of the first target that works here and computes with the problem's types, if any."""
    working = (
        TargetName(status.name, status.chip) for status in composition.targets() if status.is_available
    )
    return next((target.kind for target in working if _takes(composition, problem, target)), None)


def _best_of(
    store: "Store",
    composition: Composition,
    problem: Problem,
    target: TargetName,
    asked: str,  # a kind means all its chips: code for sm_90a runs where code for sm_90 does
    threads: int | None,
) -> SelectedResult:
    machine = composition.outcomes(target).machine(target)
    return best_result(store, problem, machine.name, asked, threads)


def is_measured_there(group: BestGroup) -> bool:
    """Returns True if a group's trials were timed on a machine, False if they replay a recording."""
    return TargetName.parse(group.target).has_machine


def _nothing_known(store: "Store", problem: Problem, task: TaskQuery) -> UsageError:
    options = [task.operation, task.shape, task.dtype, task.layout, task.epilogue, task.target]
    what = " ".join(text for text in options if text is not None)
    if task.threads is not None:
        what += f" with threads={task.threads}"
    for name, found, allowed in (("align", task.align, ALIGNMENTS), ("cache", task.cache, CACHES)):
        others = [each for each in allowed if each != found and _timed_groups(store, _with(task, name, each))]
        if others:
            return UsageError(
                f"{what}: nothing measured with {name}={found}, only with {name}={' and '.join(others)}",
                f"choose with --{name} {others[0]}, in Python with {name}={others[0]!r}",
            )
    if task.align != NUMPY_ALIGNMENT:
        what += f" with align={task.align}"
    if task.cache != WARM:
        what += f" with cache={task.cache}"
    elsewhere = {group.machine for group in _timed_groups(store, TaskQuery.of(problem))} - {task.machine}
    if elsewhere:
        found = ", ".join(sorted(elsewhere))
        return UsageError(
            f"{what}: nothing measured on {task.machine!r}, only on {found}",
            "choose with --machine, in Python with machine=",
        )
    verified = store.trials(TrialQuery(task, status="verified", sort="-created", limit=1))
    if verified:
        return UsageError(
            f"{what}: nothing measured, only verified, which ranks nothing; the latest such trial is "
            f"{verified[0].id} of run {verified[0].run}",
            f"tuner export --trial {verified[0].id}",
        )
    return UsageError(f"{what}: nothing measured yet", tune_command(task))


def _with(task: TaskQuery, name: str, given: str) -> TaskQuery:
    """Returns a task with another alignment ("align") or cache state ("cache")."""
    return replace(task, align=given) if name == "align" else replace(task, cache=given)


def _timed_groups(store: "Store", task: TaskQuery) -> list[BestGroup]:
    """Returns the groups of a task's trials that were timed on a machine."""
    groups = (bound.group for bound in store.run_bounds(TrialQuery(task)))
    return [group for group in groups if is_measured_there(group)]
