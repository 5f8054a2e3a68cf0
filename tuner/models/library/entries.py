"""The entries of a library from the results database: for a CPU, and for GPUs with verified code.

``library_entries`` takes the best CPU trial of each problem that a library can have, ``gpu_entries`` the best
trial of each problem and chip.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from tuner.analysis.ratios import Comparable, NotComparable, against_baseline, between_trials
from tuner.analysis.row_ranges import RowRange
from tuner.analysis.selected_result import timed
from tuner.core.candidate import CPU, Candidate, TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import UsageError
from tuner.core.machine import Machine
from tuner.core.problem import NUMPY_ALIGNMENT, WARM, Problem
from tuner.core.queries import BestGroup, TaskQuery, TrialQuery
from tuner.core.reliability import NOT_RECORDED, Reliability
from tuner.core.runs import Run
from tuner.core.trials import StoredTrial
from tuner.results.best_trials import RunResult, any_trial, best_results, group_of
from tuner.space.scripts.header import custom_ops
from tuner.targets.backends import Backends

if TYPE_CHECKING:
    from tuner.db.store import Store


NO_BASELINE = NotComparable("no baseline was timed in the same round")
Selectable = Callable[[StoredTrial], bool]
ONE_THREAD = TaskQuery(threads=1, align=NUMPY_ALIGNMENT, cache=WARM)
ProblemOnChip = tuple[str, str]  # Problem.key, chip


@dataclass(frozen=True)
class LibraryEntry:
    """A problem with its best known transform script, and where the script and its time come from."""

    problem: Problem
    candidate: Candidate  # strategy and knobs that the script was bound from
    script: str  # the bound transform script, without a header
    machine: Machine  # that timed it
    threads: int
    median_s: float | None  # seconds per call, on ``machine``; None: verified in a simulator, not timed
    baseline: str  # name of the baseline library of its run; "": none
    baseline_s: float | None  # seconds per call of the baseline in the same round; None: not timed in it
    trial: int  # its number in the results database
    reliability: Reliability = NOT_RECORDED  # of the time
    compared: Comparable | NotComparable = NO_BASELINE  # the time with the baseline's
    program: KernelCode | None = None  # of a GPU: what was verified; None: the script is compiled again
    row_range: RowRange | None = None  # that its campaign tuned; None: the problem alone

    def size(self, knob: str) -> int:
        """Returns a knob's value in the candidate; 0 if the value is a text, or there is no such knob."""
        value = dict(self.candidate.choices).get(knob, 0)
        if isinstance(value, int):
            return value
        return 0


@dataclass(frozen=True)
class LibraryFile:
    """A file of an exported library."""

    name: str  # in the folder of the library, such as "library.mlir"
    content: bytes


@dataclass(frozen=True)
class LibraryEntries:
    """The entries of a library, and notes: a line per problem that is left out or has a slower script."""

    entries: tuple[LibraryEntry, ...]  # in the order of their problems' keys
    notes: tuple[str, ...] = ()

    def of_range(self, row_range: RowRange) -> "LibraryEntries":
        """Returns these entries; ``row_range`` is set in the entries whose problem it was tuned for."""
        tuned = set(map(attrgetter("problem"), row_range.tuned_problems))
        ranged = []
        for entry in self.entries:
            if entry.problem in tuned:
                entry = replace(entry, row_range=row_range)
            ranged.append(entry)
        return replace(self, entries=tuple(ranged))


def library_entries(
    store: "Store",
    backends: Backends,
    task: TaskQuery = ONE_THREAD,
    runs: Iterable[int] = (),
    *,
    stock_only: bool = False,
    packs_weights: bool = False,
) -> LibraryEntries:
    """Returns the best CPU trial of each problem as a library entry; replayed times do not count.

    ``runs``: only trials of these, () for all. ``task.machine`` None: this machine. ``stock_only``: only
    scripts without tuner's transform ops. ``packs_weights``: also problems whose weights are packed ahead.
    Raises UsageError where no trial is left, for a run of another machine or target, and for problems that
    differ only in alignment or caches.
    """
    if task.target is not None and not TargetName.parse(task.target).is_on_cpu:
        raise UsageError(f"export: a library has schedules for a CPU, not for {task.target}")
    machine = backends.machine().name if task.machine is None else task.machine
    task = replace(task, machine=machine)
    runs = tuple(dict.fromkeys(runs))
    for run in map(store.run, runs):
        if not run.settings.target.is_on_cpu:
            raise UsageError(
                f"run {run.id}: a library has schedules for a CPU, not for {run.settings.target}"
            )
        if run.machine.name != machine:
            raise UsageError(
                f"run {run.id}: was measured on {run.machine.name!r}, the library is for {machine!r}",
                "one library per machine: --machine NAME",
            )
    fastest = _results(store, task, runs, any_trial)
    if not fastest:
        raise _nothing_there(store, task, runs)
    fastest, left_out = _suitable(fastest, packs_weights=packs_weights)
    chosen = fastest
    if stock_only:
        chosen = _results(store, task, runs, lambda trial: not custom_ops(trial.script_text))
        chosen = {key: result for key, result in chosen.items() if key in fastest}
    notes = list(left_out)
    for key, result in sorted(fastest.items()):
        notes += _notes(key, result, chosen.get(key))
    notes += _notes_on_runs(store, task, runs)
    if not chosen:
        raise UsageError(f"export: {notes[0]}", "more trials, or another --strategy, may time one without")
    _require_distinct([result.best.record.problem for result in chosen.values()])
    return LibraryEntries(tuple(entry_of(chosen[key]) for key in sorted(chosen)), tuple(notes))


def _suitable(
    found: Mapping[str, RunResult], *, packs_weights: bool
) -> tuple[Mapping[str, RunResult], list[str]]:
    """Returns the results that a library can have, and a note for each other result.

    Raises UsageError if no result is left.
    """
    reasons = {}
    for key, result in sorted(found.items()):
        problem = result.best.record.problem
        if problem.weights and not packs_weights:
            reasons[key] = f"{key}: its weights come packed, which format c alone does"
        elif not problem.runs_alone:
            reasons[key] = f"{key}: a fusion is a part of a program, and runs with it"
    left = {key: result for key, result in found.items() if key not in reasons}
    if not left:
        are_packed = any(result.best.record.problem.weights for result in found.values())
        hint = "--format c" if are_packed else "tuner tune matmul 512x512x512"
        raise UsageError(f"export: {next(iter(reasons.values()))}", hint)
    return left, list(reasons.values())


def _require_distinct(problems: list[Problem]) -> None:
    known: dict[Problem, Problem] = {}
    for problem in problems:  # no compiler can tell equal ones apart in a program
        other = known.setdefault(replace(problem, align=NUMPY_ALIGNMENT, cache=WARM), problem)
        if other is not problem:
            keys = f"{other.key!r} and {problem.key!r}"
            raise UsageError(
                f"export: {keys} differ only in how they were timed", "choose with --align or --cache"
            )


def entry_of(result: RunResult) -> LibraryEntry:
    """Returns the library entry of a run's selected trial.

    It has the baseline's time only if trial and baseline were timed in one round.
    """
    run = result.run
    trial = result.best
    compared = against_baseline(run, trial) or NO_BASELINE
    return replace(_entry(run, trial), reliability=trial.reliability, compared=compared)


def _entry(run: Run | None, trial: StoredTrial) -> LibraryEntry:
    baseline = None if run is None else run.baseline
    is_same_round = baseline is not None and baseline.is_interleaved and trial.final is not None
    return LibraryEntry(
        problem=trial.record.problem,
        candidate=trial.record.candidate,
        script=trial.script_text,
        machine=trial.machine,
        threads=trial.threads,
        median_s=None if run is None else timed(trial).median_s,
        baseline=baseline.name if baseline else "",
        baseline_s=baseline.measurement.median_s if baseline and is_same_round else None,
        trial=trial.id,
    )


def _results(
    store: "Store", task: TaskQuery, runs: tuple[int, ...], is_selectable: Selectable
) -> Mapping[str, RunResult]:
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


def _notes(key: str, fastest: RunResult, chosen: RunResult | None) -> list[str]:
    """Returns a list of one note if a problem's library entry is not its fastest trial, else [].

    ``chosen``: the entry's result; None: the problem has no entry.
    """
    ops = ", ".join(custom_ops(fastest.best.script_text))
    if chosen is None:
        return [f"{key}: every timed script calls tuner's transform ops (trial {fastest.best.id}: {ops})"]
    if chosen.best.id == fastest.best.id:
        return []
    compared = between_trials(chosen.run, chosen.best, fastest.best)
    if isinstance(compared, Comparable):
        takes = f"it takes {compared.longer_text}"
    else:
        takes = f"no ratio of the two: {compared.reason}"
    cause = f"since the fastest, trial {fastest.best.id}, calls {ops}"
    return [f"{key}: trial {chosen.best.id}, {cause}; {takes}"]


def _notes_on_runs(store: "Store", task: TaskQuery, runs: tuple[int, ...]) -> list[str]:
    """Returns a note for each run that has no trial to take."""
    notes = []
    for run in runs:
        if not _results(store, task, (run,), any_trial):
            key = store.run(run).settings.problem.key
            notes.append(f"run {run}: {key}: no successful trial that fits the options")
    return notes


def _nothing_there(store: "Store", task: TaskQuery, runs: tuple[int, ...]) -> UsageError:
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


@dataclass(frozen=True)
class _Found:
    """The trial that was chosen for a problem and a chip, with its run and the number of verified trials."""

    trial: StoredTrial
    run: "Run | None" = None  # that timed it; None: verified, not timed
    verified: int = 0  # trials of the problem and chip that were verified and not timed


def gpu_entries(store: "Store", task: TaskQuery, runs: Iterable[int] = ()) -> LibraryEntries:
    """Returns an entry per problem and chip: the fastest trial timed on a GPU, else the first verified one.

    ``runs``: only trials of these, () for all. A trial that was not timed gets a note. Raises UsageError
    if no trial is found.
    """
    task = replace(task, threads=None, machine=None)
    found: dict[ProblemOnChip, _Found] = {}
    for run in tuple(dict.fromkeys(runs)) or (None,):
        for key, best in _of_run(store, TrialQuery(task, run=run)).items():
            if key not in found or _rank(best) < _rank(found[key]):
                found[key] = best
    if not found:
        raise UsageError(
            "export: nothing measured or verified on a GPU that fits the options",
            "tuner history --target simulator",
        )
    listed = [found[key] for key in sorted(found)]
    notes = []
    entries = []
    for best in listed:
        trial = best.trial
        entries.append(replace(_entry(best.run, trial), program=store.code(trial.id)))
        if best.run is None:
            which = "the only one" if best.verified == 1 else f"the first of {best.verified}"
            notes.append(
                f"{trial.record.problem.key}: not timed on a GPU: trial {trial.id} is {which} verified"
            )
    return LibraryEntries(tuple(entries), tuple(notes))


def _of_run(store: "Store", query: TrialQuery) -> Mapping[ProblemOnChip, _Found]:
    verified: dict[ProblemOnChip, list[StoredTrial]] = {}
    for trial in store.trials(replace(query, status="verified", sort="created")):
        if _is_on_gpu(group_of(trial)) and trial.script_text and not trial.record.is_compiled_only:
            verified.setdefault(_key(trial), []).append(trial)
    fastest: dict[ProblemOnChip, _Found] = {}
    for result in best_results(store, query, _is_on_gpu).values():
        best = _Found(result.best, result.run)
        key = _key(result.best)
        if key not in fastest or _rank(best) < _rank(fastest[key]):
            fastest[key] = best
    return {key: _Found(trials[0], None, len(trials)) for key, trials in verified.items()} | fastest


def _is_on_gpu(group: BestGroup) -> bool:
    target = TargetName.parse(group.target)
    return target.has_machine and not target.is_on_cpu


def _key(trial: StoredTrial) -> ProblemOnChip:
    return trial.record.problem.key, trial.machine.chip


def _rank(found: _Found) -> tuple[bool, float, int]:
    if found.run is None:
        return True, 0.0, found.trial.id
    return False, timed(found.trial).median_s, found.trial.id
