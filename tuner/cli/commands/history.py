"""``tuner history`` and ``tuner runs``: past trials and runs."""

from collections.abc import Callable
from typing import Any

import click

from tuner.cli.main import screen_columns
from tuner.cli.options import (
    EPILOGUE,
    LAYOUT,
    F,
    combined,
    database_option,
    json_option,
    open_known_store,
    print_json,
)
from tuner.core.errors import UsageError
from tuner.core.requests import nothing_matches, tune_command
from tuner.results.best_trials import why_first_is_not_best
from tuner.results.database_name import database_text
from tuner.results.output.formatting import wrapped
from tuner.results.output.json_documents import history_csv, listed_documents, listed_run_document
from tuner.results.output.tables import history_table, runs_table
from tuner.results.past_runs import asked_query, asked_runs, best_results_among, past_runs, past_trials
from tuner.space.recorded.t4 import Recording, t4_bytes

RUNS_LISTED = 20


def task_options(machine_named_by: str) -> Callable[[F], F]:
    """Returns a decorator that adds conditions on problem, target, machine and threads to a command."""
    return combined(
        click.option("--op", metavar="OPERATION", help="Such as matmul."),
        click.option("--shape", metavar="[Bx]MxNxK"),
        click.option("--dtype", metavar="DTYPE"),
        click.option("--layout", metavar=LAYOUT),
        click.option("--epilogue", metavar=EPILOGUE),
        click.option("--output-dtype", metavar="DTYPE", help="Type of C: f16, bf16, f32, f64 or i32."),
        click.option("--align", metavar="BYTES", help="16, 64 or any."),
        click.option("--cache", metavar="STATE", help="warm, weights-cold or cold."),
        click.option("--target", help="Such as cpu, simulator, simulator:sm_90."),
        click.option("--machine", help=f"Class of machine, as {machine_named_by} names it."),
        click.option("--threads", type=int),
    )


@click.command()
@task_options("'tuner show run:ID'")
@click.option("--status", metavar="[running|done|interrupted]")
@click.option("--since", metavar="DATE", help="Begun since then, UTC: 2026-01-31 or 2026-01-31T12:00.")
@click.option(
    "--limit", type=int, default=RUNS_LISTED, show_default=True, help="At most so many, the latest."
)
@database_option
@json_option
def runs(database: str | None, as_json: bool, output_dtype: str | None, **conditions: Any) -> None:
    """Lists the runs, the latest first, each with its best trial.

    Example: tuner runs --shape 512x512x512 --status done
    """
    query = asked_runs(output=output_dtype, **conditions)
    with open_known_store(database) as store:
        listed = past_runs(store, query)
        info = store.info()
    if as_json:
        print_json([listed_run_document(tuned) for tuned in listed])
    elif not listed:
        print(f"{nothing_matches(tune_command(query.task), 'run', info)}{database_text(database)}")
    else:
        print("\n".join(runs_table(listed, screen_columns())))


FORMATS = ("table", "json", "csv", "t4")
BY_MEDIAN = "median"  # a value of --sort


@click.command()
@task_options("the table")
@click.option("--strategy")
@click.option("--status", metavar="[measured|verified|failed]")
@click.option("--run", type=int, help="Only the trials of this run.")
@click.option("--since", metavar="DATE", help="Proposed since then, UTC: 2026-01-31 or 2026-01-31T12:00.")
@click.option("--best", is_flag=True, help="Only the best per problem, target, threads and machine.")
@click.option("--limit", type=int, help="At most so many.")
@click.option(
    "--sort",
    default="created",
    show_default=True,
    metavar="[created|median|number]",
    help="-median reverses.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True)
@database_option
@json_option
def history(
    form: str, as_json: bool, database: str | None, output_dtype: str | None, **conditions: Any
) -> None:
    """Lists past trials, filtered by problem, machine, strategy, status, run and date.

    Example: tuner history --shape 512x512x512 --dtype f32 --sort median --limit 10
    """
    if as_json and form == "csv":
        raise UsageError("--format csv and --json cannot be combined")
    query = asked_query(output=output_dtype, **conditions)
    with open_known_store(database) as store:
        trials = past_trials(store, query)
        best_of_runs = best_results_among(store, query, trials)
        why = why_first_is_not_best(store, trials, best_of_runs) if query.sort == BY_MEDIAN else ""
        info = store.info()
        of_trials = dict.fromkeys(trial.run for trial in trials) if form == "t4" else ()
        runs = tuple(store.run(run) for run in of_trials)

    best = {each.best.id for each in best_of_runs}
    shown = "json" if as_json and form != "t4" else form  # T4 is a JSON document, too
    match shown:
        case "json":
            print_json(listed_documents(trials, best))
        case "csv":
            print(history_csv(trials, best), end="")
        case "t4":
            print(t4_bytes(Recording(runs, trials)).decode(), end="")
        case _ if not trials:
            command = tune_command(query.task, query.strategy)
            print(f"{nothing_matches(command, 'trial', info)}{database_text(database)}")
        case _:
            print("\n".join(history_table(trials, screen_columns(), best)))
            if why:
                print("\n".join(wrapped([why], screen_columns())))
