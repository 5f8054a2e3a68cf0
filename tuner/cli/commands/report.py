"""``tuner report``: what a database knows, as one page."""

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.atomic_write import write_atomically
from tuner.cli.options import database_option, debug_option, json_option, open_store, print_json
from tuner.cli.output.formatting import count_text
from tuner.core.errors import UsageError

if TYPE_CHECKING:
    from tuner.analysis.answer import Answer
    from tuner.cli.output.report.content import BestKnown, ReportedRun
    from tuner.core.runs import StoredTrial
    from tuner.db.store import Store

RUNS_SHOWN = 20


@click.command()
@click.option("-o", "--file", "output", type=click.Path(path_type=Path), help="Write to this file.")
@click.option("--run", "run_id", type=int, help="Only this run and its problem.")
@click.option(
    "--limit", type=int, default=RUNS_SHOWN, show_default=True, help="At most so many runs, the latest."
)
@database_option
@json_option
@debug_option
def report(output: Path | None, run_id: int | None, limit: int, database: str | None, as_json: bool) -> None:
    """Writes one HTML page that stands alone: results, convergence, failures, ablation.

    Example: tuner report -o report.html
    """
    if limit < 1:
        raise UsageError(f"limit: found {limit}, allowed 1 or more")
    if as_json and output is None:
        raise UsageError("report: --json tells of the file written, allowed with -o FILE only")
    from tuner.cli.output.report.content import Report
    from tuner.cli.output.report.page import page_html
    from tuner.version import __version__

    with open_store(database) as store:
        runs, left_out = _runs(store, run_id, limit)
        best = _best(store, runs[0] if run_id is not None else None)
    page = page_html(Report(best, runs, left_out, __version__, datetime.datetime.now(datetime.UTC)))
    if output is None:
        print(page, end="")
        return
    write_atomically(output, page.encode())
    if as_json:
        shown = [each.run.id for each in runs]
        print_json({"file": str(output), "bytes": len(page.encode()), "problems": len(best), "runs": shown})
    else:
        shown_text = f"{count_text(len(runs), 'run')}, {count_text(len(best), 'problem')}"
        print(f"{output}: {shown_text}, {len(page.encode()) // 1024 + 1} KiB")


def _runs(store: "Store", run_id: int | None, limit: int) -> "tuple[tuple[ReportedRun, ...], int]":
    """Returns the runs to show, the latest first, and how many there are beside them."""
    from tuner.cli.output.report.content import ReportedRun
    from tuner.core.runs import TrialQuery

    chosen = store.runs(limit) if run_id is None else (store.run(run_id),)
    reported = tuple(
        ReportedRun(run, store.counts(run.id), store.trials(TrialQuery(run=run.id, sort="number")))
        for run in chosen
    )
    return reported, 0 if run_id is not None else store.info().runs - len(reported)


def _best(store: "Store", only: "ReportedRun | None") -> "tuple[BestKnown, ...]":
    """Returns the best of every problem, target and machine, replays too; of one run's where given."""
    from tuner.cli.output.report.content import BestKnown
    from tuner.core.runs import TrialQuery, record_of

    found = []
    for trial in store.trials(TrialQuery(best=True, status="measured", sort="created")):
        record = record_of(trial)
        place = (record.problem, record.target, trial.threads, trial.machine.name)
        if only is None or place == _place(only):
            answer = _answer(store, trial)
            found.append(BestKnown(answer, store.run(answer.best.run)))
    return tuple(found)


def _answer(store: "Store", fastest: "StoredTrial") -> "Answer":
    """Returns the answer where a trial is the fastest; of a replay that of its run."""
    from tuner.core.runs import record_of
    from tuner.tuning.best_known import best_answer
    from tuner.tuning.tuned_run import tuned_run

    record = record_of(fastest)
    if not record.target.is_replay:
        return best_answer(store, record.problem, fastest.machine.name, record.target.text, fastest.threads)
    answer = tuned_run(store, fastest.run).answer
    assert answer is not None  # the trial was timed
    return answer


def _place(reported: "ReportedRun") -> tuple[object, ...]:
    settings = reported.run.settings
    return (settings.problem, settings.target, settings.threads, reported.run.machine.name)
