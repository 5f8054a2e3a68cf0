"""``tuner dashboard``: shows runs as Optuna studies in optuna-dashboard, on the loopback interface."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from tuner.cli.options import database_option, json_option, open_known_store, print_found
from tuner.core.errors import UsageError
from tuner.output.formatting import count_text

if TYPE_CHECKING:
    from tuner.cli.local_server import Application

PORTS = 65535
RUNS_SHOWN = 20


@click.command()
@click.option("--run", "run_id", type=int, help="Only this run.")
@click.option(
    "--limit", type=int, default=RUNS_SHOWN, show_default=True, help="At most so many runs, the latest."
)
@click.option("--port", type=int, default=8080, show_default=True, help="Of 127.0.0.1; 0: a free one.")
@database_option
@json_option
def dashboard(run_id: int | None, limit: int, port: int, database: str | None, as_json: bool) -> None:
    """Shows runs as Optuna studies in optuna-dashboard, until Ctrl-C; the stored runs do not change.

    The schema of an older database is upgraded.

    Example: tuner dashboard --port 8080
    """
    if limit < 1:
        raise UsageError(f"limit: found {limit}, allowed 1 or more")
    if not 0 <= port <= PORTS:
        raise UsageError(f"port: found {port}, allowed 0 to {PORTS}")
    from tuner.cli.local_server import HOST, listening, serve

    make_application = _installed()
    storage, runs = _studies(database, run_id, limit)
    with listening(port, make_application(storage)) as server:
        url = f"http://{HOST}:{server.server_port}/"
        print_found(as_json, {"url": url, "runs": runs}, f"{count_text(runs, 'run')} at {url} (Ctrl-C ends)")
        print(end="", flush=True)
        serve(server)


def _installed() -> "Callable[[object], Application]":
    """Returns optuna-dashboard's function from a storage to a WSGI application.

    Raises UsageError if the package is missing.
    """
    try:
        from optuna_dashboard import wsgi
    except ImportError as error:
        raise UsageError("missing dependency 'optuna-dashboard'", "pip install optuna-dashboard") from error
    return wsgi  # type: ignore[no-any-return]


def _studies(database: str | None, run_id: int | None, limit: int) -> tuple[object, int]:
    """Returns an Optuna storage with a study per requested run, and the number of runs."""
    from tuner.core.runs import TrialQuery
    from tuner.samplers.stored_studies import stored_studies

    with open_known_store(database) as store:
        runs = store.runs(limit) if run_id is None else (store.run(run_id),)
        storage = stored_studies((run, store.trials(TrialQuery(run=run.id, sort="number"))) for run in runs)
    return storage, len(runs)
