"""The entries of a library from the results database: the best trial per problem on one machine."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.analysis.comparison import Comparable
from tuner.analysis.run_comparison import against_baseline, between_trials
from tuner.analysis.selected_result import timed
from tuner.core.errors import UsageError
from tuner.core.problem import NUMPY_ALIGNMENT, WARM, Problem
from tuner.core.runs import BestGroup, Run, StoredTrial, TaskQuery, TrialQuery
from tuner.core.target_name import CPU, TargetName
from tuner.library.entry import NO_BASELINE, LibraryEntry
from tuner.run_history.best_trials import RunResult, any_trial, best_results
from tuner.scripts.portability import custom_ops
from tuner.tuning.composition import Composition

if TYPE_CHECKING:
    from tuner.db.store import Store

Selectable = Callable[[StoredTrial], bool]
ONE_THREAD = TaskQuery(threads=1, align=NUMPY_ALIGNMENT, cache=WARM)


@dataclass(frozen=True)
class LibraryEntries:
    """The entries for a library, and a line for each problem left out or not by its fastest script."""

    entries: tuple[LibraryEntry, ...]  # in the order of their problems' keys
    notes: tuple[str, ...] = ()


def library_entries(
    store: "Store",
    composition: Composition,
    task: TaskQuery = ONE_THREAD,
    runs: Iterable[int] = (),
    *,
    stock_only: bool = False,
) -> LibraryEntries:
    """Returns the best CPU trial of each problem as a library's entry; replays do not count.

    Args:
        store: The results database.
        composition: The parts that know this machine.
        task: Conditions on problems, target and threads; ``machine`` None: this class of machine.
        runs: IDs of runs; only their trials count. Empty: all runs.
        stock_only: Only scripts that stock ``mlir-opt`` runs; a problem without one is left out with a note.

    Raises UsageError where nothing is left, for a run that is unknown, is not of a CPU, is of another machine
    or has no time, and for two results that differ only in the alignment or the caches that they were timed
    with.
    """
    machine = _machine_of(composition, task)
    task, runs = replace(task, machine=machine), tuple(dict.fromkeys(runs))
    for run in runs:
        _require_usable(store.run(run), machine)
    fastest = _results(store, task, runs, any_trial)
    if not fastest:
        raise _nothing_there(store, task, runs)
    chosen = _results(store, task, runs, _is_stock) if stock_only else fastest
    notes = tuple(
        note for key, result in sorted(fastest.items()) if (note := _note(key, result, chosen.get(key)))
    )
    notes += tuple(_without_time(store, run) for run in runs if not _results(store, task, (run,), any_trial))
    if not chosen:
        raise UsageError(f"export: {notes[0]}", "more trials, or another --strategy, may time one without")
    _require_distinct(chosen.values())
    return LibraryEntries(tuple(entry_of(chosen[key]) for key in sorted(chosen)), notes)


def entry_of(result: RunResult) -> LibraryEntry:
    """Returns the library's entry of a run's selected trial.

    The baseline's time is that of the same timing round; None where the baseline was timed alone.
    """
    run, trial = result.run, result.best
    baseline = run.baseline
    is_same_round = baseline is not None and baseline.is_interleaved and trial.final is not None
    return LibraryEntry(
        problem=trial.record.problem,
        candidate=trial.record.candidate,
        script=trial.script_text,
        machine=trial.machine,
        threads=trial.threads,
        median_s=timed(trial).median_s,
        baseline=baseline.name if baseline else "",
        baseline_s=baseline.measurement.median_s if baseline and is_same_round else None,
        trial=trial.id,
        reliability=trial.reliability,
        compared=against_baseline(run, trial) or NO_BASELINE,
    )


def _machine_of(composition: Composition, task: TaskQuery) -> str:
    """Returns the name of the machine whose times count: the query's, else this machine's."""
    if task.target is not None and not TargetName.parse(task.target).is_on_cpu:
        raise UsageError(f"export: a library has schedules for a CPU, not for {task.target}")
    return composition.machine().name if task.machine is None else task.machine


def _require_usable(run: Run, machine: str) -> None:
    target = run.settings.target
    if not target.is_on_cpu:
        raise UsageError(f"run {run.id}: a library has schedules for a CPU, not for {target}")
    if run.machine.name != machine:
        raise UsageError(
            f"run {run.id}: was measured on {run.machine.name!r}, the library is for {machine!r}",
            "one library per machine: --machine NAME",
        )


def _results(
    store: "Store", task: TaskQuery, runs: tuple[int, ...], is_selectable: Selectable
) -> Mapping[str, RunResult]:
    """Returns the best result per key of a problem: of all runs, or of some."""
    found: dict[str, RunResult] = {}
    for run in runs or (None,):
        query = TrialQuery(task, run=run)
        for group, result in best_results(store, query, _is_on_cpu, is_selectable).items():
            before = found.get(group.problem)
            if before is None or result.rank < before.rank:
                found[group.problem] = result
    return found


def _is_on_cpu(group: BestGroup) -> bool:
    return TargetName.parse(group.target).is_on_cpu


def _is_stock(trial: StoredTrial) -> bool:
    return not custom_ops(trial.script_text)


def _note(key: str, fastest: RunResult, chosen: RunResult | None) -> str:
    """Returns why a problem's fastest script is not in the library; "" where it is."""
    ops = ", ".join(custom_ops(fastest.best.script_text))
    if chosen is None:
        return f"{key}: every timed script calls tuner's transform ops (trial {fastest.best.id}: {ops})"
    if chosen.best.id == fastest.best.id:
        return ""
    compared = between_trials(chosen.run, chosen.best, fastest.best)
    takes = (
        f"it takes {compared.longer_text}"
        if isinstance(compared, Comparable)
        else f"no ratio of the two: {compared.reason}"
    )
    return f"{key}: trial {chosen.best.id}, since the fastest, trial {fastest.best.id}, calls {ops}; {takes}"


def _without_time(store: "Store", run: int) -> str:
    """Returns the note on a run that has no trial for the library."""
    return f"run {run}: {store.run(run).settings.problem.key}: no successful trial that fits the options"


def _require_distinct(results: Iterable[RunResult]) -> None:
    """Raises UsageError for two problems that no compiler can tell apart in a program."""
    found: dict[Problem, StoredTrial] = {}
    for trial in (result.best for result in results):
        plain = replace(trial.record.problem, align=NUMPY_ALIGNMENT, cache=WARM)
        other = found.setdefault(plain, trial)
        if other is not trial:
            keys = f"{other.record.problem.key!r} and {trial.record.problem.key!r}"
            raise UsageError(
                f"export: {keys} differ only in how they were timed", "choose with --align or --cache"
            )


def _nothing_there(store: "Store", task: TaskQuery, runs: tuple[int, ...]) -> UsageError:
    """Returns the error for a selection without a result, naming the machines that have one."""
    if runs:
        listed = ", ".join(map(str, runs))
        return UsageError(
            f"run {listed}: has no successful trial that fits the options", f"tuner history --run {runs[0]}"
        )
    elsewhere = replace(task, machine=None, target=None)
    groups = [bound.group for bound in store.run_bounds(TrialQuery(elsewhere))]
    others = sorted({group.machine for group in groups if _is_on_cpu(group)} - {task.machine})
    if others:
        line = f"export: nothing measured on {task.machine!r}, only on {', '.join(others)}"
        return UsageError(line, "choose with --machine")
    if groups:
        targets = ", ".join(sorted({group.target for group in groups}))
        return UsageError(f"export: a library has schedules for a {CPU}, measured are only {targets}")
    return UsageError("export: nothing measured that fits the options", "tuner history --best")
