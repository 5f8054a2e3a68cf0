"""``tuner report``: what a database knows, as one page."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.atomic_write import write_atomically
from tuner.cli.options import (
    RUNS_SHOWN,
    composition_of,
    database_option,
    debug_option,
    json_option,
    open_store,
    print_json,
)
from tuner.cli.output.formatting import count_text
from tuner.core.errors import UsageError

if TYPE_CHECKING:
    from tuner.cli.report_pages import Passes
    from tuner.core.pass_seconds import PassSeconds
    from tuner.core.runs import StoredTrial
    from tuner.db.store import Store


@click.command()
@click.option("-o", "--file", "output", type=click.Path(path_type=Path), help="Write to this file.")
@click.option("--run", "run_id", type=int, help="Only this run and its problem.")
@click.option(
    "--limit", type=int, default=RUNS_SHOWN, show_default=True, help="At most so many runs, the latest."
)
@click.option(
    "--compile-time",
    "with_passes",
    is_flag=True,
    help="The seconds of each pass of compiling the best, timed once.",
)
@database_option
@json_option
@debug_option
@click.pass_context
def report(
    context: click.Context,
    output: Path | None,
    run_id: int | None,
    limit: int,
    with_passes: bool,
    database: str | None,
    as_json: bool,
) -> None:
    """Writes one HTML page that stands alone: results, convergence, failures, ablation.

    Example: tuner report -o report.html
    """
    if as_json and output is None:
        raise UsageError("report: --json tells of the file written, allowed with -o FILE only")
    from tuner.cli.output.report.page import page_html
    from tuner.cli.report_pages import gathered, no_passes

    with open_store(database) as store:
        found = gathered(store, run_id, limit, _passes(context, store) if with_passes else no_passes)
    page = page_html(found)
    if output is None:
        print(page, end="")
        return
    write_atomically(output, page.encode())
    if as_json:
        shown = [each.run.id for each in found.runs]
        print_json(
            {"file": str(output), "bytes": len(page.encode()), "problems": len(found.best), "runs": shown}
        )
    else:
        shown_text = f"{count_text(len(found.runs), 'run')}, {count_text(len(found.best), 'problem')}"
        print(f"{output}: {shown_text}, {len(page.encode()) // 1024 + 1} KiB")


def _passes(context: click.Context, store: "Store") -> "Passes":
    """Returns what tells the passes of a trial; a replay's, or one that compiles no more, has none."""
    from tuner.tuning.compile_time import pass_seconds

    composition = composition_of(context)

    def passes(trial: "StoredTrial") -> "tuple[PassSeconds, ...]":
        with contextlib.suppress(UsageError):
            return pass_seconds(composition, store, trial)
        return ()

    return passes
