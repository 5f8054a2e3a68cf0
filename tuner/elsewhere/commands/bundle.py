"""``tuner bundle`` and ``tuner measure``: remote measurement of compiled candidates on a GPU."""

import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.main import Commands
from tuner.cli.options import (
    EPILOGUE,
    LAYOUT,
    database_option,
    dtype_option,
    json_option,
    math_option,
    open_known_store,
    print_found,
)
from tuner.core.errors import UsageError
from tuner.core.queries import Imported, TrialQuery
from tuner.core.serialization import count_text, encode
from tuner.results.output.files import write_atomically
from tuner.results.queries import trial_query

if TYPE_CHECKING:
    from tuner.core.remote_results import PendingTrial


@click.group(cls=Commands)
def bundle() -> None:
    """Carries compiled candidates to a machine with a GPU, and the results back.

    Example: tuner bundle export matmul 64x64x64 -o pending.bundle
    """


@bundle.command("export")
@click.argument("operation", required=False)
@click.argument("shape", required=False, metavar="[Bx]MxNxK")
@dtype_option("Only problems of this dtype.")
@math_option("Only problems of f32 that is multiplied so.")
@click.option("--layout", metavar=LAYOUT, help="Only problems of this layout.")
@click.option("--epilogue", metavar=EPILOGUE, help="Only problems with this epilogue.")
@click.option("--strategy", help="Only candidates of this strategy.")
@click.option("--chip", default="", help="Only code for this chip: sm_90, ...")
@click.option("--run", type=int, help="Only the trials of this run.")
@click.option("--since", metavar="DATE", help="Proposed since then, UTC: 2026-01-31 or 2026-01-31T12:00.")
@click.option("--limit", type=int, help="At most so many of each problem, the most promising.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the inputs that results are verified on."
)
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Write to this file.")
@database_option
@json_option
def export_(
    operation: str | None,
    shape: str | None,
    since: str | None,
    chip: str,
    limit: int | None,
    seed: int,
    output: Path,
    database: str | None,
    as_json: bool,
    **conditions: Any,
) -> None:
    """Writes verified or compiled candidates that were never timed to one file, for 'tuner measure'.

    Example: tuner bundle export matmul 64x64x64 --limit 50 -o pending.bundle
    """
    query = trial_query(operation=operation, shape=shape, since=since, sort="number", **conditions)
    for name, number, least in (("limit", limit, 1), ("seed", seed, 0)):
        if number is not None and number < least:
            raise UsageError(f"{name}: found {number}, allowed {least} or more")
    from tuner.elsewhere.bundle import exchange  # not at start-up

    with open_known_store(database) as store:
        trials = exchange.choose_pending(store, query, chip, limit)
    content = exchange.packed(trials, seed)
    write_atomically(output, content)
    chips = ", ".join(sorted({trial.program.chip for trial in trials}))
    problems = count_text(len({trial.problem for trial in trials}), "problem")
    print_found(
        as_json,
        _document(output, trials, len(content)),
        f"wrote {output}: {count_text(len(trials), 'candidate')} of {problems} for {chips}, "
        f"{len(content) / 1024:.0f} KiB",
    )
    if not as_json:
        text = f"--bundle {shlex.quote(str(output))}"
        print(f"next, where the GPU is: python -m tuner measure {text}", file=sys.stderr)


@bundle.command("import")
@click.argument("results", metavar="FILE", type=click.Path(path_type=Path))
@database_option
@json_option
def import_(results: Path, database: str | None, as_json: bool) -> None:
    """Stores what 'tuner measure' wrote on a machine with a GPU; a second import adds nothing.

    Example: tuner bundle import pending.bundle.results.jsonl
    """
    from tuner.elsewhere.bundle import exchange  # not at start-up

    with open_known_store(database) as store:
        imported = exchange.import_file(store, results)
    known = f"; {imported.known} were here already" if imported.known else ""
    added = f"added {count_text(imported.trials, 'trial')} in {count_text(imported.runs, 'new run')}{known}"
    print_found(as_json, encode(imported), added)


def _document(output: Path, trials: "tuple[PendingTrial, ...]", size_bytes: int) -> Any:
    return {
        "file": str(output),
        "bytes": size_bytes,
        "candidates": len(trials),
        "problems": dict(Counter(trial.problem.key for trial in trials)),
        "chips": sorted({trial.program.chip for trial in trials}),
        "trials": [trial.id for trial in trials],
    }


@click.command()
@click.option("--pending", is_flag=True, expose_value=False, hidden=True, help="The default.")
@click.option(
    "--bundle", type=click.Path(path_type=Path), metavar="FILE", help="Made by: tuner bundle export."
)
@click.option("--seconds", type=float, default=300.0, show_default=True, help="Begin nothing after so long.")
@click.option(
    "--results", type=click.Path(path_type=Path), metavar="FILE", help="Default: next to the bundle."
)
@database_option
@json_option
@click.pass_context
def measure(
    context: click.Context,
    bundle: Path | None,
    seconds: float,
    results: Path | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Verifies and times candidates on the GPU here, the most promising first.

    Results of a bundle go to a file, for tuner bundle import. Without a bundle, candidates of the database
    are measured and their results stored in it. With a bundle, python -m tuner measure needs nothing but
    numpy and a CUDA driver.

    Example: tuner measure --bundle pending.bundle --seconds 300
    """
    from tuner.elsewhere.bundle import command, exchange  # not at start-up

    # raises UsageError before any work is done
    request = command.MeasuringRequest(bundle or Path(), seconds, results, as_json)
    if bundle is not None:
        context.exit(command.measure(request, command.gpu_here))
    if results is not None:
        raise UsageError("--results needs --bundle FILE: without a bundle the results go to the database")

    def report(stored: Imported) -> None:  # also if the measuring ends early
        print(f"stored {stored.trials} trials in {stored.runs} runs", file=sys.stderr)

    gpu = command.gpu_here()
    with open_known_store(database) as store:
        trials = exchange.choose_pending(store, TrialQuery(sort="number"))
        with exchange.passing_bundle(store, trials, 0, report) as path:
            request = command.MeasuringRequest(path, seconds, None, as_json, is_local=True)
            code = command.measure(request, lambda: gpu)
    context.exit(code)
