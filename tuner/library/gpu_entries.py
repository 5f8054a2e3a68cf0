"""The entries of a library for GPUs from the results database, with the compiled code that was verified."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.analysis.selected_result import timed
from tuner.core.errors import UsageError
from tuner.core.runs import BestGroup, StoredTrial, TaskQuery, TrialQuery
from tuner.core.target_name import TargetName
from tuner.library.entries import LibraryEntries
from tuner.library.entry import LibraryEntry
from tuner.run_history.best_trials import best_results, group_of

if TYPE_CHECKING:
    from tuner.core.runs import Run
    from tuner.db.store import Store

Place = tuple[str, str]  # Problem.key, chip


@dataclass(frozen=True)
class _Found:
    """The trial that was chosen for a problem and a chip."""

    trial: StoredTrial
    run: "Run | None" = None  # that timed it; None: verified, not timed
    verified: int = 0  # trials of the problem and chip that were verified and not timed


def gpu_entries(store: "Store", task: TaskQuery, runs: Iterable[int] = ()) -> LibraryEntries:
    """Returns an entry for each problem and chip that has a trial on a GPU or in the simulator of one.

    The fastest trial that was timed on a GPU; where none was timed, the first that the simulator verified,
    with a note. ``task``: conditions on problems and target; its threads and machine do not count. ``runs``:
    IDs of runs, only their trials count; empty: all runs. Raises UsageError where nothing is left.
    """
    task = replace(task, threads=None, machine=None)
    found: dict[Place, _Found] = {}
    for run in tuple(dict.fromkeys(runs)) or (None,):
        for place, each in _of_run(store, TrialQuery(task, run=run)).items():
            before = found.get(place)
            if before is None or _rank(each) < _rank(before):
                found[place] = each
    if not found:
        raise UsageError(
            "export: nothing measured or verified on a GPU that fits the options",
            "tuner history --target simulator",
        )
    listed = [found[place] for place in sorted(found)]
    notes = tuple(_note(each) for each in listed if each.run is None)
    return LibraryEntries(tuple(_entry(store, each) for each in listed), notes)


def _of_run(store: "Store", query: TrialQuery) -> Mapping[Place, _Found]:
    found: dict[Place, _Found] = {}
    verified: dict[Place, list[StoredTrial]] = {}
    for trial in store.trials(replace(query, status="verified", sort="created")):
        if _is_on_gpu(group_of(trial)) and trial.script_text and not trial.record.is_compiled_only:
            verified.setdefault(_place(trial), []).append(trial)
    for place, trials in verified.items():
        found[place] = _Found(trials[0], None, len(trials))
    fastest: dict[Place, _Found] = {}
    for result in best_results(store, query, _is_on_gpu).values():
        each, place = _Found(result.best, result.run), _place(result.best)
        if place not in fastest or _rank(each) < _rank(fastest[place]):
            fastest[place] = each
    return found | fastest


def _is_on_gpu(group: BestGroup) -> bool:
    target = TargetName.parse(group.target)
    return target.has_machine and not target.is_on_cpu


def _place(trial: StoredTrial) -> Place:
    return trial.record.problem.key, trial.machine.chip


def _rank(found: _Found) -> tuple[bool, float, int]:
    """Returns a sort key: timed trials first, the faster first, then the earlier."""
    if found.run is None:
        return True, 0.0, found.trial.id
    return False, timed(found.trial).median_s, found.trial.id


def _entry(store: "Store", found: _Found) -> LibraryEntry:
    trial, baseline = found.trial, None if found.run is None else found.run.baseline
    is_same_round = baseline is not None and baseline.is_interleaved and trial.final is not None
    return LibraryEntry(
        problem=trial.record.problem,
        candidate=trial.record.candidate,
        script=trial.script_text,
        machine=trial.machine,
        threads=trial.threads,
        median_s=None if found.run is None else timed(trial).median_s,
        baseline=baseline.name if baseline else "",
        baseline_s=baseline.measurement.median_s if baseline and is_same_round else None,
        trial=trial.id,
        program=store.program(trial.id),
    )


def _note(found: _Found) -> str:
    """Returns that nothing of a problem was timed, and which trial was taken."""
    trial = found.trial
    which = "the only one verified" if found.verified == 1 else f"the first of {found.verified} verified"
    return f"{trial.record.problem.key}: not timed on a GPU: trial {trial.id} is {which}"
