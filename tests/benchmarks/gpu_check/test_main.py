"""The command: one table, one document, exit codes; on the stand-in for the driver."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_check.__main__ import default_output, exit_code, table
from benchmarks.gpu_check.checks import PartResult, Row, failed, passed
from benchmarks.gpu_check.device_under_test import CUDA, STUB, Bed
from tests.cuda_driver import has_driver

ROOT = Path(__file__).parents[3]


def command(*options: str) -> "subprocess.CompletedProcess[str]":
    call = [sys.executable, "-m", "benchmarks.gpu_check", *options]
    return subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def part(name: str, *rows: Row) -> PartResult:
    return PartResult(name, rows, (), 1.0, 2.0)


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.usefixtures("built_stub")
def test_what_needs_no_gpu_passes_through_the_stand_in_for_the_driver(tmp_path: Path) -> None:
    output = tmp_path / "check.json"
    done = command(
        "--device", STUB, "--quick", "--parts", "strategies", "timing", "--json", "--output", str(output)
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document == json.loads(output.read_text())
    assert document["summary"]["passed"]
    parts = document["summary"]["parts"]
    assert {name: found["status"] for name, found in parts.items()} == {
        "strategies": "passed",
        "timing": "skipped",
    }
    assert parts["strategies"]["passed"] >= 3
    assert all(row["part"] in parts for row in document["rows"])


@pytest.mark.skipif(has_driver(), reason="there is a CUDA driver here")
def test_without_a_gpu_one_line_reports_so() -> None:
    done = command()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gpu-check: no CUDA driver: libcuda.so.1 cannot be loaded")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("seconds", ["-5", "nan"])
def test_seconds_that_are_none_are_refused(seconds: str) -> None:
    done = command("--device", STUB, "--seconds", seconds)
    assert done.returncode == 2
    assert f"found {seconds!r}, allowed seconds above 0" in done.stderr


def test_a_folder_that_is_not_there_is_reported_before_anything_runs(tmp_path: Path) -> None:
    done = command("--device", STUB, "--output", str(tmp_path / "none" / "check.json"))
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"gpu-check: output: found no folder \S+, allowed one that is there\n", done.stderr)


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.usefixtures("built_stub")
def test_what_is_known_is_written_where_somebody_interrupts(tmp_path: Path) -> None:
    output = tmp_path / "check.json"
    call = [sys.executable, "-m", "benchmarks.gpu_check", "--device", STUB, "--output", str(output)]
    child = subprocess.Popen(call, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert child.stderr is not None
    for line in child.stderr:
        if line.startswith("strategies: up to"):
            break
    child.send_signal(signal.SIGINT)
    assert "interrupted" in child.stderr.read()
    assert child.wait(timeout=120) == 130
    child.stderr.close()
    assert list(json.loads(output.read_text())["summary"]["parts"]) == ["environment"]


def test_one_failed_part_is_an_exit_code_of_1() -> None:
    right, wrong = part("programs", Row("a", passed(), 0.1)), part("timing", Row("b", failed("x"), 0.1))
    assert exit_code((right,)) == 0
    assert exit_code((right, wrong)) == 1


def test_the_table_has_a_line_for_each_part() -> None:
    lines = table((part("programs", Row("a", passed(), 0.1)), part("timing"))).splitlines()
    assert len(lines) == 3
    assert lines[1].split() == ["programs", "passed", "1", "0", "0", "0", "1.0"]


def test_only_results_of_a_gpu_are_kept() -> None:
    kept = default_output(Bed(CUDA, "sm_90"))
    assert kept is not None
    assert kept.name == "gpu_check_sm_90.json"
    assert default_output(Bed(STUB, "sm_90")) is None
