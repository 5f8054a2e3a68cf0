"""What commands share: arguments, a server for this machine, documents of programs."""

import json
import math
import os
import signal
import threading
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from tuner.cli.commands.report import HOST, listening, serve
from tuner.cli.commands.run import run_document
from tuner.cli.options import parse_candidate, parse_share
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.core.programs import KernelTime, ProgramTimes
from tuner.programs.request import Comparison, ProgramReport, ProgramRequest


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), ("0.05", 0.05), ("0%", 0.0), ("150%", 1.5)])
def test_shares(text: str, share: float) -> None:
    assert parse_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "%", "-5%", "five"])
def test_a_share_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"max-slowdown: found .*, allowed a percentage such as 5%"):
        parse_share(text)


def test_a_candidate_reads_back_from_its_text() -> None:
    candidate = Candidate.of("fake", {"x": 4, "order": "ji", "shift": -1})
    assert parse_candidate(candidate.text) == candidate
    assert parse_candidate("fake()") == Candidate.of("fake", {})


@pytest.mark.parametrize("text", ["", "fake", "fake(x)", "fake(=1)", "fake(x=1", "fake x=1"])
def test_a_candidate_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"candidate: found .*, allowed 'STRATEGY"):
        parse_candidate(text)


def greet(_environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    start("200 OK", [("Content-Type", "text/plain")])
    return [b"here"]


def test_it_answers_this_machine_until_interrupted(capfd: pytest.CaptureFixture[str]) -> None:
    with listening(0, greet) as server:
        assert server.server_address[0] == HOST
        results: list[bytes] = []

        def ask_and_interrupt() -> None:
            with urllib.request.urlopen(f"http://{HOST}:{server.server_port}/", timeout=120) as selected:
                results.append(selected.read())
            os.kill(os.getpid(), signal.SIGINT)

        asking = threading.Thread(target=ask_and_interrupt)
        asking.start()
        serve(server)
        asking.join()
    assert results == [b"here"]
    assert capfd.readouterr() == ("", "")


def test_a_port_that_is_taken_is_refused() -> None:
    with listening(0, greet) as taken:
        port = taken.server_port
        with pytest.raises(
            UsageError, match=f"port {port}: Address already in use; --port 0 takes a free one"
        ):
            listening(port, greet)


REQUEST = ProgramRequest("module {}", TargetName("cuda", "sm_90"), is_compared=True)
REPORT = ProgramReport("main", ("2x?xf32", "index"), ("2x3xf32",), (Matmul(8, 8, 8),), 2)


def test_a_run_is_reported_as_json() -> None:
    found = run_document(REQUEST, replace(REPORT, comparisons=(Comparison("result 0", 1e-7, 1e-6),)))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert (found["results"], found["streams"], found["right"]) == (["2x3xf32"], 2, True)
    assert found["arguments"] == ["2x?xf32", "index"]
    assert found["problems"] == ["matmul 8x8x8 f32 nn none"]
    assert found["comparisons"] == [
        {"name": "result 0", "equal": True, "error": 1e-7, "tolerance": 1e-6, "blind": False}
    ]
    assert found["times"] is None


def test_a_number_that_is_missing_has_no_error_to_tell() -> None:
    report = replace(REPORT, comparisons=(Comparison("result 0", math.inf, 1e-6),))
    found = run_document(REQUEST, report)
    assert found["comparisons"][0]["error"] is None
    assert not found["right"]


def test_a_report_makes_it_wrong() -> None:
    assert not run_document(REQUEST, replace(REPORT, reports=("race: ...",)))["right"]


def test_what_was_not_asked_for_is_null() -> None:
    found = run_document(replace(REQUEST, is_compared=False), REPORT)
    assert (found["comparisons"], found["trace"]) == (None, None)


def test_times_of_kernels_are_reported_where_a_device_ran_them() -> None:
    kernels = (KernelTime("a", 0.0, 1.0), KernelTime("b", 1.0, 2.0))
    found = run_document(REQUEST, replace(REPORT, times=ProgramTimes(3.0, kernels, 2)))
    assert found["times"] == {
        "call_s": 3.0,
        "interval_s": None,
        "reliability": "unknown: it was not recorded",
        "kernel_s": 2.0,
        "overlap": 1.0,
        "serialized": True,
    }
