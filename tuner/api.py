"""The Python API: ``tuner.tune``, ``resume``, ``history``, ``runs``, ``export``, ``load_best``."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner.core.errors import UsageError
from tuner.core.moments import parse_seconds
from tuner.core.problem import Problem
from tuner.run_history.past_runs import asked_query, asked_runs, past_runs, past_trials
from tuner.run_history.trials import Trials
from tuner.run_history.which_database import database_text, naming_database
from tuner.tuning.run_request import RunRequest

if TYPE_CHECKING:
    from tuner.core.runs import StoredTrial
    from tuner.db.store import Store
    from tuner.tuning.events import Event, Observer
    from tuner.tuning.tuned_run import TunedRun


def tune(
    problem: Problem,
    target: str = "auto",
    trials: int | None = None,
    budget: float | str | None = None,
    *,
    chip: str = "",
    threads: int = 1,
    strategy: Path | str | tuple[Path | str, ...] = (),
    space: Path | str | None = None,
    sampler: str | None = None,
    seed: int = 0,
    workers: int | None = None,
    fresh: bool = False,
    warm_start: bool | Path | str | tuple[Path | str, ...] = True,
    db: str | Path | None = None,
    observe: "Observer | None" = None,
    progress: bool = False,
) -> "TunedRun":
    """Tunes a problem and returns the run with its ``best`` trial (None when no candidate worked).

    All is named as on the command line. Ends after ``trials`` or a ``budget`` of seconds (or "5m"),
    whichever is first; 100 trials when neither is given. ``strategy`` is one or several, names or files.
    Begins with what was best for the nearest problems in the database, unless ``fresh`` or not
    ``warm_start``, which may also be one or several files of ``tuner record-space`` to learn from.
    ``db`` is a file or URL; without it ``TUNER_DB`` of the environment, as on the command line.
    ``progress`` tells on stderr how far the run is; ``observe`` gets every event.
    Raises UsageError for wrong words, KeyboardInterrupt when interrupted: what was measured is stored.
    """
    from tuner.run_history.opened_store import open_or_create
    from tuner.tuning.parts.real import real_composition
    from tuner.tuning.run import begin
    from tuner.tuning.settings import run_settings

    request = RunRequest(
        problem,
        target=target,
        chip=chip,
        threads=threads,
        strategies=_several(strategy),
        space=space,
        sampler=sampler,
        seed=seed,
        trials=trials,
        budget_s=parse_seconds(budget) if isinstance(budget, str) else budget,
        workers=workers,
        fresh=fresh,
        warm_start=warm_start is not False,
        warm_files=() if isinstance(warm_start, bool) else _several(warm_start),
    )
    settings = run_settings(request, real_composition())  # before a database is opened, which makes one
    return _session(open_or_create, db, lambda *parts: begin(settings, *parts), observe, progress)


def resume(
    run: int,
    db: str | Path | None = None,
    observe: "Observer | None" = None,
    *,
    retime: bool = False,
    trials: int | None = None,
    budget: float | str | None = None,
    progress: bool = False,
) -> "TunedRun":
    """Goes on with an unfinished run by its stored settings. Returns and raises as ``tune`` does.

    A finished one stays as it is; ``retime`` times its best again, and the quietest round of timing answers.
    ``trials`` or ``budget``, in all, replace its limits: a finished run goes on as if it had begun with them.
    """
    if type(run) is not int:
        raise UsageError(f"run: found {run!r}, allowed the number of a run")
    from tuner.run_history.opened_store import open_known
    from tuner.tuning.run import resume as go_on
    from tuner.tuning.run_limit import RunLimit

    limit = RunLimit.of(trials, parse_seconds(budget) if isinstance(budget, str) else budget)

    def work(*parts: Any) -> "TunedRun":
        return go_on(run, *parts, retime=retime, limit=limit)

    return _session(open_known, db, work, observe, progress)


def _several(words: Any) -> Any:
    """Returns one name or file as the only one of several."""
    return (words,) if isinstance(words, Path | str) else words


def _session(
    opened: "Callable[[str | Path | None], Store]",
    db: str | Path | None,
    work: Callable[..., "TunedRun"],
    observe: "Observer | None",
    progress: bool,
) -> "TunedRun":
    """Does the work of one session of a run on the database meant. Raises KeyboardInterrupt."""
    from tuner.tuning.interruption import Interruption
    from tuner.tuning.parts.real import real_composition

    with naming_database(db), opened(db) as store, _observer(observe, progress) as told:
        tuned = work(real_composition(), store, Interruption(), told)
    if tuned.is_interrupted:
        raise KeyboardInterrupt(
            f"run {tuned.run.id} is stored; go on with: tuner tune --resume {tuned.run.id}{database_text(db)}"
        )
    return tuned


@contextlib.contextmanager
def _observer(own: "Observer | None", progress: bool) -> "Iterator[Observer]":
    """Gives the observer of a session: the caller's own, and one that tells on stderr where he asks."""
    from tuner.output.progress import progress as telling
    from tuner.tuning.events import ignore

    observe = own or ignore
    if not progress:
        yield observe
        return
    with telling() as tell:

        def both(event: "Event") -> None:
            observe(event)
            tell(event)

        yield both


def history(db: str | Path | None = None, **conditions: Any) -> Trials:
    """Returns past trials with an outcome: ``history(shape="64x64x64", best=True)``.

    Conditions are fields of ``TaskQuery`` and ``TrialQuery``.
    ``history(...).to_frame()`` is a table of pandas; ``op`` is ``operation``, as on the command line.

    ``since`` may be a text as on the command line, or a datetime, in UTC where it has no zone.
    """
    from tuner.run_history.opened_store import open_known

    query = asked_query(**conditions)
    with naming_database(db), open_known(db) as store:
        return past_trials(store, query)


def runs(db: str | Path | None = None, **conditions: Any) -> "tuple[TunedRun, ...]":
    """Returns runs with their answers, the latest first: ``runs(status="done")``.

    Conditions are fields of ``TaskQuery`` and ``RunQuery``.
    """
    from tuner.run_history.opened_store import open_known

    query = asked_runs(**conditions)
    with naming_database(db), open_known(db) as store:
        return past_runs(store, query)


def export(
    what: "Problem | StoredTrial | int",
    file: Path | str | None = None,
    format: str = "script",  # noqa: A002 - as on the command line
    *,
    db: str | Path | None = None,
    threads: int | None = None,
    target: str = "auto",
    machine: str | None = None,
    stock: bool = False,
) -> bytes:
    """Returns the best known schedule of a problem, or a trial's, as ``format``.

    It is one of this machine, or of the ``machine`` named. ``format``: "script" with its header, "source" and
    "payload" (the payload before and after it), "ptx", "cubin", "t4". ``stock``: the best that stock mlir-opt
    runs. With ``file`` it is written there too, and a script's payload beside it, as on the command line.
    Raises UsageError where there is none.
    """
    from tuner.core.runs import StoredTrial
    from tuner.output.atomic_write import write_atomically
    from tuner.run_history.best_known import best_known
    from tuner.run_history.best_stock import best_stock
    from tuner.run_history.exported import FORMS, exported, source_file, source_of
    from tuner.run_history.opened_store import open_known
    from tuner.tuning.parts.real import real_composition

    if format not in FORMS:
        raise UsageError(f"format: found {format!r}, allowed {', '.join(FORMS)}")
    composition, output = real_composition(), None if file is None else Path(file)
    with naming_database(db), open_known(db) as store:
        if isinstance(what, Problem):
            trial = best_known(store, composition, what, target, threads, machine).best
        else:
            trial = store.trial(what.id if isinstance(what, StoredTrial) else what)
        trial = best_stock(store, trial).trial if stock else trial
        content = exported(composition, store, trial, format, output)
        if output is not None and format == "script":
            write_atomically(source_file(output), source_of(composition, trial).encode())
    if output is not None:
        write_atomically(output, content)
    return content


def load_best(
    problem: Problem, db: str | Path | None = None, threads: int | None = None, target: str = "auto"
) -> Callable[..., Any]:
    """Returns the best kernel known for a problem on this machine: ``c = kernel(a, b[, bias], out=None)``.

    Takes numpy arrays, C-contiguous, of the problem's shapes and dtypes; that of a GPU also arrays on the
    device (DLPack, ``__cuda_array_interface__``) with ``out`` and ``stream``. ``auto`` is the first target
    that gives times here and has some of the problem. Raises UsageError when nothing was measured yet.
    """
    from tuner.run_history.best_known import best_here
    from tuner.run_history.opened_store import open_known
    from tuner.tuning.parts.real import real_composition

    composition = real_composition()
    with naming_database(db), open_known(db) as store:
        best = best_here(store, composition, problem, target, threads).best
        return composition.kind(best.record.target).load(problem, best, store.program(best.id))
