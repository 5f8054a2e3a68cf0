import json
import os
import signal
import socket
import sys
import threading
import urllib.request
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any
from wsgiref.simple_server import WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pytest
from optuna.storages import BaseStorage

from tests.cli.conftest import Tuner, require, require_fields
from tests.space.recorded import values
from tuner.cli.commands import dashboard as local_server


def test_one_page_is_written_printed_or_described_as_json(tuned: Tuner, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    done = tuned("report -o", str(file))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{file}: 1 run, the best of 1 problem, ")
    page = file.read_text()
    assert page.startswith("<!doctype html>")
    require(page, "Run 1: matmul 8x8x8 f32 nn none", "20 measured trials of fake")
    assert tuned("report").out.rstrip().endswith("</html>")
    document = tuned("report -o", str(file), "--json").json
    assert document == {"file": str(file), "bytes": file.stat().st_size, "problems": 1, "runs": [1]}
    assert tuned.done("report --compile-time -o", str(file)).err == ""
    assert "passes</summary>" not in file.read_text()  # the fake compiles nothing


def test_a_report_of_no_runs_says_what_to_type(tuner: Tuner, tmp_path: Path) -> None:
    tuner.done("db upgrade")
    done = tuner("report -o", str(tmp_path / "report.html"))
    assert done.code == 0
    assert done.err.startswith("no history yet in ")
    assert done.err.endswith("\nhint: tuner tune matmul 512x512x512\n")


def test_one_run_with_its_problem_alone(tuned: Tuner, tmp_path: Path) -> None:
    tuned.done("tune matmul 9x8x8 --trials 3")
    page = tmp_path / "r.html"
    report = f"report --json -o {page}"
    require_fields(tuned(report).json, runs=[2, 1], problems=2)
    assert tuned(f"{report} --limit 1").json["runs"] == [2]
    assert "1 earlier run left out" in page.read_text()
    cards = page.read_text().partition("<article")[2]
    assert cards.index("9x8x8") < cards.index("8x8x8")  # the latest first, as the runs
    require_fields(tuned(f"{report} --run 1").json, runs=[1], problems=1)
    assert "9x8x8" not in page.read_text()


def test_a_replay_is_on_the_page_next_to_what_was_measured(tuned: Tuner, tmp_path: Path) -> None:
    recording, page = values.write_recording(tmp_path), tmp_path / "r.html"
    tuned.done("tune matmul 8x8x8 --trials 5 --target", f"replay:{recording}")
    require_fields(tuned("report --json -o", str(page)).json, runs=[2, 1], problems=2)
    assert tuned("report --run 2 --json -o", str(page)).json["problems"] == 1
    require(page.read_text(), "replayed", without="tuner export")


WAIT_S = 120


def test_without_the_package_a_hint_says_how_to_get_it(tuned: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna_dashboard", None)
    line = "error: missing dependency 'optuna-dashboard'\nhint: pip install optuna-dashboard\n"
    assert tuned.refused("dashboard") == line


def test_an_unknown_run_and_a_port_that_is_taken_give_one_line(tuned: Tuner) -> None:
    pytest.importorskip("optuna_dashboard")
    assert tuned.refused("dashboard --run 9") == "error: run: found 9, allowed 1 to 1\n"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = tuned.refused("dashboard --port", str(port))
    assert refused == f"error: port {port}: Address already in use\nhint: --port 0 takes a free one\n"


# As the pages and the help have them: tests/docs/test_examples.py compares.
PRINTED = (("dashboard",), ("dashboard", "--port", "8080"))


def names_of_studies(storage: BaseStorage) -> WSGIApplication:
    """Makes a page of the studies' names, in place of optuna-dashboard, which is not installed everywhere."""

    def application(_environment: WSGIEnvironment, start: StartResponse) -> list[bytes]:
        start("200 OK", [("Content-Type", "text/plain")])
        return [study.study_name.encode() for study in storage.get_all_studies()]

    return application


def test_an_example_shows_the_studies_at_its_port(tuned: Tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    """At an address of this process alone, where no other has taken the port."""
    pages = []

    def serve_once(server: WSGIServer) -> None:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        pages.append(get(f"http://{local_server.HOST}:{server.server_port}/"))
        thread.join()

    own = f"127.1.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 1}"
    monkeypatch.setattr(local_server, "HOST", own)
    monkeypatch.setattr(local_server, "serve", serve_once)
    monkeypatch.setattr(local_server, "_installed", lambda: names_of_studies)
    for options in PRINTED:
        done = tuned(*options)
        assert (done.code, done.err) == (0, "")
        assert done.out == f"1 run at http://{own}:8080/ (Ctrl-C ends)\n"
    assert pages == [b"run 1: matmul 8x8x8 f32 nn none on fake"] * len(PRINTED)


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=WAIT_S) as selected:
        return selected.read()


@pytest.mark.slow
def test_runs_are_studies_of_the_real_dashboard_for_this_machine_alone(tuned: Tuner) -> None:
    pytest.importorskip("optuna_dashboard")
    command = [sys.executable, "-m", "tuner", "dashboard", "--port", "0"]
    environment = {**os.environ, "TUNER_DB": str(tuned.database)}
    with Popen(command, env=environment, stdout=PIPE, stderr=PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("1 run at http://127.0.0.1:")
            url = line.split(" ")[3]
            (study,) = json.loads(get(f"{url}api/studies"))["study_summaries"]
            assert study["study_name"] == "run 1: matmul 8x8x8 f32 nn none on fake"
            assert len(json.loads(get(f"{url}api/studies/{study['study_id']}?after=0"))["trials"]) == 20
            assert b"<html" in get(f"{url}dashboard/")
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=WAIT_S)
            assert (process.returncode, err) == (0, "")
        finally:
            process.kill()
