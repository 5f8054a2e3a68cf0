"""``tuner report``, which writes one HTML page, and ``tuner dashboard``, which serves runs to a browser."""

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

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
from tuner.core.requests import nothing_matches
from tuner.core.runs import TrialQuery
from tuner.results.database_name import database_text
from tuner.results.output.files import write_atomically
from tuner.results.output.formatting import count_text
from tuner.results.report import RUNS_SHOWN
from tuner.results.report.page import gathered, no_pass_timings, page_html, reported_campaign, timed_passes
from tuner.search.method import stored_studies

FIRST_RUN = "tuner tune matmul 512x512x512"  # stores a run
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
    with open_known_store(database) as store:
        note_unknown_problems(store)
        passes = timed_passes(backends_of(context), store) if with_passes else no_pass_timings
        if campaign_id is None:
            campaign = None
        else:
            campaign = reported_campaign(store, backends_of(context), campaign_id)
        content = gathered(store, run_id, limit, passes, campaign)
        info = store.info()
    page = page_html(replace(content, database_text=database_text(database)))
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


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - named by http.server
        pass


def listening(port: int, application: Application) -> WSGIServer:
    """Returns an HTTP server for a WSGI application on 127.0.0.1. Raises UsageError if the port is in use.

    ``port`` 0: a free one.
    """
    try:
        return make_server(HOST, port, application, handler_class=_QuietHandler)
    except OSError as error:
        raise UsageError(f"port {port}: {error.strerror}", "--port 0 takes a free one") from error


def serve(server: WSGIServer) -> None:
    """Serves HTTP requests until Ctrl-C.

    In a thread of its own, since wsgiref ignores an interrupt during a request.
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
