"""``tuner report``: writes the results of a database as one HTML page."""

from dataclasses import replace
from pathlib import Path

import click

from tuner.cli.options import composition_of, database_option, json_option, open_known_store, print_found
from tuner.core.errors import UsageError
from tuner.output.atomic_write import write_atomically
from tuner.output.formatting import count_text
from tuner.output.report import RUNS_SHOWN


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file.")
@click.option("--run", "run_id", type=int, help="Only this run and its problem.")
@click.option("--group", "group_id", type=int, help="Only this group of runs: one budget, many problems.")
@click.option(
    "--limit", type=int, default=RUNS_SHOWN, show_default=True, help="At most so many runs, the latest."
)
@click.option(
    "--compile-time",
    "with_passes",
    is_flag=True,
    help="Show the seconds of each compiler pass of the best trials, timed once.",
)
@database_option
@json_option
@click.pass_context
def report(
    context: click.Context,
    output: Path | None,
    run_id: int | None,
    group_id: int | None,
    limit: int,
    with_passes: bool,
    database: str | None,
    as_json: bool,
) -> None:
    """Writes a self-contained HTML page of the results: best trials, convergence, failures, ablation.

    Example: tuner report -o report.html
    """
    if as_json and output is None:
        raise UsageError("report: --json describes the file written, so it needs -o FILE")
    if run_id is not None and group_id is not None:
        raise UsageError("report: --run and --group cannot be combined")
    from tuner.output.report.page import page_html
    from tuner.output.report_pages import gathered, no_pass_timings, reported_group, timed_passes
    from tuner.run_history.which_database import database_text

    with open_known_store(database) as store:
        passes = timed_passes(composition_of(context), store) if with_passes else no_pass_timings
        group = None if group_id is None else reported_group(store, composition_of(context), group_id)
        found = gathered(store, run_id, limit, passes, group)
    page = page_html(replace(found, database_text=database_text(database)))
    if output is None:
        print(page, end="")
        return
    write_atomically(output, page.encode())
    size_bytes, problems = len(page.encode()), len(found.best)
    runs = [each.run.id for each in found.runs]
    shown = f"{count_text(len(runs), 'run')}, the best of {count_text(problems, 'problem')}"
    print_found(
        as_json,
        {"file": str(output), "bytes": size_bytes, "problems": problems, "runs": runs},
        f"{output}: {shown}, {size_bytes // 1024 + 1} KiB",
    )
