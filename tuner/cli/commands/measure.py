"""``tuner measure``: times candidates that were compiled on a machine without a GPU."""

import sys
from pathlib import Path

import click

from tuner.cli.options import database_option, json_option, open_known_store


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
    from tuner.bundle.measure import command

    # raises UsageError before any work is done
    request = command.MeasuringRequest(bundle or Path(), seconds, results, as_json)
    if bundle is not None:
        context.exit(command.measure(request, command.gpu_here))
    if results is not None:
        from tuner.core.errors import UsageError

        raise UsageError("--results needs --bundle FILE: without a bundle the results go to the database")
    context.exit(_of_database(database, seconds, as_json))


def _of_database(database: str | None, seconds: float, as_json: bool) -> int:
    """Measures the pending trials of a database; returns the exit code.

    The results measured so far are stored even if the measuring ends early.
    """
    from tuner.bundle.measure import command
    from tuner.bundle.pack_and_import import choose_pending, passing_bundle
    from tuner.core.runs import Imported, TrialQuery

    def report(found: Imported) -> None:
        print(f"stored {found.trials} trials in {found.runs} runs", file=sys.stderr)

    gpu = command.gpu_here()
    with open_known_store(database) as store:
        trials = choose_pending(store, TrialQuery(sort="number"))
        with passing_bundle(store, trials, 0, report) as path:
            return command.measure(
                command.MeasuringRequest(path, seconds, None, as_json, is_local=True), lambda: gpu
            )
