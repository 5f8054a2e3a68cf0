"""``tuner runs``: lists the runs of a database, the latest first."""

from typing import Any

import click

from tuner.cli.options import database_option, json_option, open_known_store, print_json
from tuner.cli.screen import screen_columns

RUNS_LISTED = 20


@click.command()
@click.option("--op", "operation", help="Operation, such as matmul.")
@click.option("--shape", metavar="[Bx]MxNxK")
@click.option("--dtype")
@click.option("--layout")
@click.option("--epilogue")
@click.option("--output-dtype", "output", metavar="DTYPE", help="Type of C: f16, bf16, f32, f64 or i32.")
@click.option("--align", metavar="BYTES", help="16, 64 or any.")
@click.option("--cache", metavar="STATE", help="warm, weights-cold or cold.")
@click.option("--target", help="Such as cpu, simulator, simulator:sm_90.")
@click.option("--machine", help="Class of machine, as 'tuner show run:ID' names it.")
@click.option("--threads", type=int)
@click.option("--status", help="running, done or interrupted.")
@click.option("--since", metavar="DATE", help="Begun since then, UTC: 2026-01-31 or 2026-01-31T12:00.")
@click.option(
    "--limit", type=int, default=RUNS_LISTED, show_default=True, help="At most so many, the latest."
)
@database_option
@json_option
def runs(database: str | None, as_json: bool, **conditions: Any) -> None:
    """Lists the runs, the latest first, each with its best trial.

    Example: tuner runs --shape 512x512x512 --status done
    """
    from tuner.output.json_documents import listed_run_document
    from tuner.output.run_table import runs_table
    from tuner.run_history.past_runs import asked_runs, past_runs
    from tuner.run_history.which_database import database_text
    from tuner.tuning.advice import nothing_matches, tune_command

    query = asked_runs(**conditions)
    with open_known_store(database) as store:
        found = past_runs(store, query)
        info = store.info()
    if as_json:
        print_json([listed_run_document(tuned) for tuned in found])
    elif not found:
        print(f"{nothing_matches(tune_command(query.task), 'run', info)}{database_text(database)}")
    else:
        print("\n".join(runs_table(found, screen_columns())))
