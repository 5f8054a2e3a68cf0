"""Collects the report of a database and writes it as a page, for the command line and ``tuner.report``."""

import contextlib
import datetime
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tuner.core.errors import UsageError
from tuner.core.pass_seconds import PassSeconds
from tuner.core.runs import BestGroup, StoredTrial, TrialQuery
from tuner.core.version import __version__
from tuner.db.store import Store
from tuner.output.atomic_write import write_atomically
from tuner.output.report import RUNS_SHOWN
from tuner.output.report.content import BestKnown, Report, ReportedRun
from tuner.output.report.page import page_html
from tuner.run_history.best_trials import any_group, best_results
from tuner.run_history.compile_time import pass_seconds
from tuner.run_history.opened_store import open_known
from tuner.run_history.which_database import database_text, naming_database
from tuner.tuning.composition import Composition

Passes = Callable[[StoredTrial], tuple[PassSeconds, ...]]  # pass timings of compiling a trial again


def no_pass_timings(_trial: StoredTrial) -> tuple[PassSeconds, ...]:
    """Returns () for any trial: the provider of pass timings that compiles nothing."""
    return ()


def timed_passes(composition: Composition, store: Store) -> Passes:
    """Returns a function from a trial to the seconds of its compiler passes.

    The function compiles the trial again, or reads stored timings. It returns () for a trial of a replay, one
    that failed at any stage, and one that does not compile here.
    """

    def passes(trial: StoredTrial) -> tuple[PassSeconds, ...]:
        with contextlib.suppress(UsageError):
            return pass_seconds(composition, store, trial)
        return ()

    return passes


def gathered(
    store: Store, run: int | None = None, limit: int = RUNS_SHOWN, passes: Passes = no_pass_timings
) -> Report:
    """Returns the report of the latest ``limit`` runs and of the best result of every problem.

    There is one best result per problem, target, number of threads and machine. With ``run``: only this run,
    and the best result for its problem, target, threads and machine. ``passes`` gives the pass timings of the
    best trials. Raises UsageError for a limit below 1 or an unknown run.
    """
    if limit < 1:
        raise UsageError(f"limit: found {limit}, allowed 1 or more")
    runs, left_out = _runs(store, run, limit)
    found = _best(store, runs[0] if run is not None else None)
    best = tuple(replace(each, passes=passes(each.selected.best)) for each in found)
    return Report(best, runs, left_out, __version__, datetime.datetime.now(datetime.UTC))


def report(
    file: Path | str | None = None,
    *,
    db: str | Path | None = None,
    run: int | None = None,
    limit: int = RUNS_SHOWN,
    compile_time: bool = False,
) -> str:
    """Returns a self-contained HTML page: the latest runs and the best trial of each problem, or one run.

    Args:
        file: path to write the page to; None: only returned.
        db: path or URL of the results database; None: as for ``tune``.
        run: number of the one run to show; None: the latest runs.
        limit: number of runs to show at most, 1 or more.
        compile_time: whether to show the compiler's passes, too: the best trials are compiled again.

    Returns:
        The HTML text.

    Raises:
        UsageError: a limit below 1, a run or a database named by ``db`` that does not exist, a database that
            cannot be opened, or a file that cannot be written.

    Example:
        >>> import tuner
        >>> page = tuner.report("report.html", run=1)
        >>> "64x64x64" in page
        True
    """
    from tuner.tuning.parts.real import real_composition

    with naming_database(db), open_known(db) as store:
        passes = timed_passes(real_composition(), store) if compile_time else no_pass_timings
        found = gathered(store, run, limit, passes)
    page = page_html(replace(found, database_text=database_text(db)))
    if file is not None:
        write_atomically(Path(file), page.encode())
    return page


def _runs(store: Store, run_id: int | None, limit: int) -> tuple[tuple[ReportedRun, ...], int]:
    """Returns the runs to show, the latest first, and how many runs are left out."""
    chosen = store.runs(limit) if run_id is None else (store.run(run_id),)
    reported = tuple(
        ReportedRun(run, store.counts(run.id), store.trials(TrialQuery(run=run.id, sort="number")))
        for run in chosen
    )
    return reported, 0 if run_id is not None else store.info().runs - len(reported)


def _best(store: Store, only: ReportedRun | None) -> tuple[BestKnown, ...]:
    """Returns the best result per problem, target and machine, replays included.

    With ``only``: the result for the problem, target and machine of that run.
    """
    found = best_results(store, TrialQuery(), any_group if only is None else _group(only).__eq__)
    ordered = sorted(found.values(), key=lambda each: (each.best.created, each.best.id))
    return tuple(BestKnown(each.selected, each.run) for each in ordered)


def _group(reported: ReportedRun) -> BestGroup:
    settings = reported.run.settings
    machine = reported.run.machine.name
    return BestGroup(settings.problem.key, settings.target.text, settings.threads, machine)
