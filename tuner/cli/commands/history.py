"""``tuner history``: past trials, or past runs."""

from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import Any

import click

from tuner.cli.main import screen_columns
from tuner.cli.options import (
    EPILOGUE,
    LAYOUT,
    database_option,
    dtype_option,
    json_option,
    math_option,
    note_unknown_problems,
    open_known_store,
    print_json,
    print_json_list,
)
from tuner.cli.session import settings_given
from tuner.core.errors import UsageError
from tuner.core.problem_text import tune_command
from tuner.core.queries import RunQuery, TrialQuery, nothing_matches
from tuner.core.trials import StoredTrial
from tuner.results.best_trials import best_results, why_first_is_not_best
from tuner.results.database_name import database_text
from tuner.results.output.formatting import wrapped
from tuner.results.output.json_documents import history_csv, listed_document, listed_run_document
from tuner.results.output.tables import history_table, runs_table
from tuner.results.past_runs import best_results_among, each_past_trial, page_of_trials, past_trials
from tuner.results.queries import run_query, trial_query
from tuner.results.tuned_range import range_lines
from tuner.tuning.tuned_run import tuned_run

FORMATS = ("table", "json", "csv")
BY_MEDIAN = "median"  # a value of --sort
OF_TRIALS = ("strategy", "run", "best", "sort", "form")  # options that runs do not have
STREAMED = ("json", "csv")  # forms that list all trials, printed while these are read
RUN_OF_TRIAL = attrgetter("run")
RUN_OF_TUNED = attrgetter("run.id")
LISTED = 20  # trials or runs in a table, unless --limit is given


@click.command()
@click.option("--op", metavar="OPERATION", help="Such as matmul.")
@click.option("--shape", metavar="[Bx]MxNxK", help="Such as 512x512x512.")
@dtype_option("Type of A and B: f32, f64, bf16, i8, ...")
@math_option("Only f32 that is multiplied so.")
@click.option("--layout", metavar=LAYOUT, help="Of A, then of B: t is transposed.")
@click.option("--epilogue", metavar=EPILOGUE, help="Only problems with this epilogue.")
@click.option("--output-dtype", metavar="DTYPE", help="Type of C: f16, bf16, f32, f64 or i32.")
@click.option("--align", metavar="BYTES", help="16, 64 or any.")
@click.option("--cache", metavar="STATE", help="warm, weights-cold or cold.")
@click.option("--target", help="Such as cpu, simulator, simulator:sm_90.")
@click.option("--machine", help="Class of machine, as the table names it.")
@click.option("--threads", type=int, help="Threads of the kernel.")
@click.option(
    "--runs", "lists_runs", is_flag=True, help="List runs, the latest first, each with its best trial."
)
@click.option("--strategy", help="Such as matmul_cpu_packed; of a script its name.")
@click.option("--status", metavar="[measured|verified|failed]", help="Of runs: running, done or interrupted.")
@click.option("--run", type=int, help="Only the trials of this run.")
@click.option("--since", metavar="DATE", help="Proposed since then, UTC: 2026-01-31 or 2026-01-31T12:00.")
@click.option("--best", is_flag=True, help="Only the best per problem, target, threads and machine.")
@click.option(
    "--limit",
    type=int,
    help="At most so many, the latest unless sorted by median; 0: all. Default: all, 20 in a table.",
)
@click.option(
    "--sort",
    default="created",
    show_default=True,
    metavar="[created|median]",
    help="-median reverses.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="json and csv list all trials.",
)
@database_option
@json_option
@click.pass_context
def history(
    context: click.Context,
    /,
    lists_runs: bool,
    form: str,
    as_json: bool,
    database: str | None,
    output_dtype: str | None,
    **conditions: Any,
) -> None:
    """Lists past trials, or runs, filtered by problem, machine, strategy, status, run and date.

    --strategy, --run, --best, --sort and --format are of trials only, not of --runs. Sorted by median,
    --limit leaves the first.

    Example: tuner history --shape 512x512x512 --dtype f32 --sort median --limit 10
    """
    limit = conditions.pop("limit")
    conditions["limit"], listed = limit or None, LISTED if limit is None else None
    if lists_runs:
        typed = settings_given(context, OF_TRIALS)
        if typed:
            raise UsageError(f"--runs cannot be combined with {typed[0]}, which is of trials")
        conditions = {name: value for name, value in conditions.items() if name not in OF_TRIALS}
        _list_runs(run_query(output=output_dtype, **conditions), database, listed, as_json)
    elif as_json and form == "csv":
        raise UsageError("--format csv and --json cannot be combined")
    else:
        shown = "json" if as_json else form
        _list_trials(trial_query(output=output_dtype, **conditions), database, listed, shown)


def _list_trials(query: TrialQuery, database: str | None, listed: int | None, form: str) -> None:
    with open_known_store(database) as store:
        note_unknown_problems(store)
        if form in STREAMED and query.limit is None:
            best = {result.best.id for result in best_results(store, query).values()}
            _print_all(each_past_trial(store, query), best, form)
            return
        if listed is None or form in STREAMED:
            trials = past_trials(store, query)
            count = len(trials)
        else:
            trials, count = page_of_trials(store, query, listed)
        best_of_runs = best_results_among(store, query, trials)
        why = why_first_is_not_best(store, trials, best_of_runs) if query.sort == BY_MEDIAN else ""
        info = store.info()
        ranges: list[str] = []
        if form == "table":
            ranges = range_lines(store, map(RUN_OF_TRIAL, trials))
    best = {best_of_run.best.id for best_of_run in best_of_runs}
    match form:
        case "json" | "csv":
            _print_all(trials, best, form)
        case _ if not trials:
            command = tune_command(query.task, query.strategy)
            print(f"{nothing_matches(command, 'trial', info)}{database_text(database)}")
        case _:
            table = history_table(trials, screen_columns(), best, why)
            print("\n".join([*table, *wrapped(ranges, screen_columns())]))
            which = "latest" if query.sort == TrialQuery.sort else "first"
            _print_more(len(trials), count, "trials", which)


def _print_all(trials: Iterable[StoredTrial], best: Collection[int], form: str) -> None:
    """Prints a line of CSV or a JSON document per trial, so that a long history is not held in memory."""
    if form == "json":
        print_json_list(listed_document(trial, best) for trial in trials)
        return
    for line in history_csv(trials, best):
        print(line, end="")


def _print_more(shown: int, count: int, what: str, which: str) -> None:
    if shown < count:
        print(f"the {which} {shown} of {count} {what}; --limit 0 lists all")


def _list_runs(query: RunQuery, database: str | None, listed: int | None, as_json: bool) -> None:
    with open_known_store(database) as store:
        note_unknown_problems(store)
        runs = store.matching_runs(query)
        info = store.info()
        shown = tuple(tuned_run(store, run.id) for run in (runs if as_json else runs[:listed]))
        ranges: list[str] = []
        if not as_json:
            ranges = range_lines(store, map(RUN_OF_TUNED, shown))
    if as_json:
        print_json(list(map(listed_run_document, shown)))
    elif not shown:
        print(f"{nothing_matches(tune_command(query.task), 'run', info)}{database_text(database)}")
    else:
        print("\n".join([*runs_table(shown, screen_columns()), *wrapped(ranges, screen_columns())]))
        _print_more(len(shown), len(runs), "runs", "latest")
