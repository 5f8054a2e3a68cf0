"""``tuner dashboard``, which serves runs to a browser by optuna-dashboard."""

import threading
import time
from collections.abc import Callable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import click

from tuner.cli.options import database_option, json_option, open_known_store, print_found
from tuner.core.errors import UsageError
from tuner.core.queries import TrialQuery
from tuner.core.serialization import count_text
from tuner.results.report import RUNS_SHOWN
from tuner.search.method import stored_studies

HOST = "127.0.0.1"  # loopback: other machines cannot connect
PORTS = 65535
ALIVE_S = 0.2  # between two looks whether the server still serves
Application = Callable[..., Any]  # WSGI application, PEP 3333


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
    make_application = _installed()
    with open_known_store(database) as store:
        runs = store.runs(limit) if run_id is None else (store.run(run_id),)
        storage = stored_studies((run, store.trials(TrialQuery(run=run.id, sort="number"))) for run in runs)
    with listening(port, make_application(storage)) as server:
        url = f"http://{HOST}:{server.server_port}/"
        line = f"{count_text(len(runs), 'run')} at {url} (Ctrl-C ends)"
        print_found(as_json, {"url": url, "runs": len(runs)}, line)
        print(end="", flush=True)
        serve(server)


def _installed() -> "Callable[[object], Application]":
    try:
        from optuna_dashboard import wsgi
    except ImportError as error:
        raise UsageError("missing dependency 'optuna-dashboard'", "pip install optuna-dashboard") from error
    return wsgi  # type: ignore[no-any-return]


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - named by http.server
        pass


def listening(port: int, application: Application) -> WSGIServer:
    """Returns an HTTP server for a WSGI application on 127.0.0.1. Raises UsageError for an unusable port.

    ``port`` 0: a free one.
    """
    try:
        return make_server(HOST, port, application, handler_class=_QuietHandler)
    except OSError as error:
        raise UsageError(f"port {port}: {error.strerror}", "--port 0 takes a free one") from error


def serve(server: WSGIServer) -> None:
    """Serves HTTP requests until Ctrl-C, then returns.

    Requests are served in another thread, since wsgiref ignores an interrupt during a request.
    """
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    try:
        thread.start()
        while thread.is_alive():  # ``join``, interrupted, takes a running thread for one that has ended
            time.sleep(ALIVE_S)
    except KeyboardInterrupt:
        if thread.is_alive():  # ``shutdown`` waits for a loop that runs
            server.shutdown()
            thread.join()
