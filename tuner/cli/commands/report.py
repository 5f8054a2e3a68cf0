"""``tuner report``, which writes the results as one HTML page."""

import sys
from dataclasses import replace
from pathlib import Path

import click

from tuner.cli.options import (
    backends_of,
    database_option,
    json_option,
    note_unknown_problems,
    open_known_store,
    print_found,
)
from tuner.core.errors import UsageError
from tuner.core.queries import nothing_matches
from tuner.core.serialization import count_text
from tuner.results.database_name import database_text
from tuner.results.output.files import write_atomically
from tuner.results.report import RUNS_SHOWN

FIRST_RUN = "tuner tune matmul 512x512x512"  # stores a run


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file.")
@click.option("--run", "run_id", type=int, help="Only this run and its problem.")
@click.option("--campaign", "campaign_id", type=int, help="Only this campaign: one budget, many problems.")
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
    campaign_id: int | None,
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
    if output is None and sys.stdout.isatty():
        raise UsageError("report: refusing to write HTML to a terminal", "-o report.html")
    if run_id is not None and campaign_id is not None:
        raise UsageError("report: --run and --campaign cannot be combined")
    from tuner.results.report import page as pages  # takes long to load: the options are right

    with open_known_store(database) as store:
        note_unknown_problems(store)
        passes = pages.timed_passes(backends_of(context), store) if with_passes else pages.no_pass_timings
        if campaign_id is None:
            campaign = None
        else:
            campaign = pages.reported_campaign(store, backends_of(context), campaign_id)
        content = pages.gathered(store, run_id, limit, passes, campaign)
        info = store.info()
    page = pages.page_html(replace(content, database_text=database_text(database)))
    if output is None:
        print(page, end="")
        return
    write_atomically(output, page.encode())
    size_bytes = len(page.encode())
    problems = len(content.best)
    runs = [run.run.id for run in content.runs]
    shown = f"{count_text(len(runs), 'run')}, the best of {count_text(problems, 'problem')}"
    print_found(
        as_json,
        {"file": str(output), "bytes": size_bytes, "problems": problems, "runs": runs},
        f"{output}: {shown}, {size_bytes // 1024 + 1} KiB",
    )
    if not runs:
        print(nothing_matches(FIRST_RUN, "run", info), file=sys.stderr)
