"""The command: one table, one document, exit codes; its parts, their checks and their seconds."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.gpu_check.__main__ import default_output, exit_code, table
from benchmarks.gpu_check.budget import WEIGHTS, Budget
from benchmarks.gpu_check.checks import CheckOutcome, PartResult, Row, evaluated, failed, passed, skipped
from benchmarks.gpu_check.device_under_test import CUDA, SIMULATOR, STUB, Bed
from benchmarks.gpu_check.runner import Child, run_part
from tests.cuda_driver import has_driver
from tests.tuning.fakes import present

ROOT = Path(__file__).parents[3]
ALL = tuple(WEIGHTS)


def command(options: str = "") -> "subprocess.CompletedProcess[str]":
    call = [sys.executable, "-m", "benchmarks.gpu_check", *options.split()]
    return subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def part(name: str, *rows: Row) -> PartResult:
    return PartResult(name, rows, (), 1.0, 2.0)


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.usefixtures("built_stub")
def test_what_needs_no_gpu_passes_through_the_stand_in_for_the_driver(tmp_path: Path) -> None:
    output = tmp_path / "check.json"
    done = command(f"--device {STUB} --quick --parts strategies timing --json --output {output}")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document == json.loads(output.read_text())
    assert document["summary"]["passed"]
    found = document["summary"]["parts"]
    statuses = {name: each["status"] for name, each in found.items()}
    assert statuses == {"strategies": "passed", "timing": "skipped"}
    assert found["strategies"]["passed"] >= 3
    assert all(row["part"] in found for row in document["rows"])


@pytest.mark.skipif(has_driver(), reason="there is a CUDA driver here")
def test_without_a_gpu_one_line_reports_so() -> None:
    done = command()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gpu-check: no CUDA driver: libcuda.so.1 cannot be loaded")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--seconds -5", "found '-5', allowed seconds above 0"),
        ("--seconds nan", "found 'nan', allowed seconds above 0"),
        ("--output none/c.json", r"^gpu-check: output: found no folder \S+, allowed one that is there\n$"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(options: str, message: str) -> None:
    done = command(f"--device {STUB} {options}")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(message, done.stderr)


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


def test_failures_come_first_and_the_table_has_a_line_for_each_part() -> None:
    right, wrong = part("programs", Row("a", passed(), 0.1)), part("timing", Row("b", failed("x"), 0.1))
    assert [exit_code((right,)), exit_code((right, wrong))] == [0, 1]
    _, first, _ = table((right, part("timing"))).splitlines()
    assert first.split() == ["programs", "passed", "1", "0", "0", "0", "1.0"]
    kept = present(default_output(Bed(CUDA, "sm_90")))  # only results of a GPU are kept
    assert (kept.name, default_output(Bed(STUB, "sm_90"))) == ("gpu_check_sm_90.json", None)
    result = part_of(skipped("no tool"), failed("wrong"), skipped("no tool"), left_out=("a", "b"))
    assert result.words == ("FAILED  check 1: wrong", "skipped 2: no tool", "no time for 2: a, b")
    row = Row("naive", evaluated(False, "wrong", elements=3), 0.12345)
    given = {"status": "failed", "words": "wrong", "seconds": 0.123, "elements": 3}
    assert row.document("strategies") == {"part": "strategies", "check": "naive", **given}
    with pytest.raises(ValueError, match="status: found 'fine', allowed passed, failed, skipped"):
        CheckOutcome("fine")  # type: ignore[arg-type]


def child_result(checks: str, limit_s: float) -> PartResult:
    python = (sys.executable, "-m", "tests.benchmarks.gpu_check.scripted_child", checks)
    return run_part("timing", Bed(SIMULATOR, "sm_90"), limit_s, Child(python=python))


@pytest.mark.slow
def test_a_check_that_raises_crashes_breaks_or_hangs_does_not_end_the_part_but_its_seconds_do() -> None:
    result = child_result("mixed", 60.0)
    assert result.status == "failed"
    assert [(row.name, row.outcome.status, row.outcome.words) for row in result.rows] == [
        ("right", "passed", "fine"),
        ("refused", "failed", "words: found none, allowed some"),
        ("crashing", "failed", "ended by signal 11: no message"),
        ("broken", "failed", "ended with exit code 1: LookupError: a defect of ours"),
        ("hanging", "failed", "no result within 0.5 s"),
        ("last", "skipped", "no reason"),
    ]
    assert (result.rows[0].outcome.facts, result.left_out) == ({"number": 7}, ())
    result = child_result("slow", 2.0)  # of the 1000 s that the check would take
    assert (result.left_out[-1], result.rows[:1]) == ("late", result.rows[:1])
    assert "long" in result.left_out


@pytest.mark.parametrize(
    ("checks", "limit_s", "words"),
    [
        ("none", 30.0, [("start", "ended with exit code 1: no checks here")]),
        ("nothing", 0.5, [("start", "nothing was asked within 0.5 s")]),
        ("right", 0.0, None),
    ],
)
def test_a_part_that_cannot_begin_asks_nothing_or_has_no_seconds_has_failed(
    checks: str, limit_s: float, words: list[tuple[str, str]] | None
) -> None:
    result = child_result(checks, limit_s)
    assert result.status == "failed"
    assert words is None or [(row.name, row.outcome.words) for row in result.rows] == words


def part_of(*outcomes: CheckOutcome, left_out: tuple[str, ...] = ()) -> PartResult:
    rows = tuple(Row(f"check {number}", outcome, 0.5) for number, outcome in enumerate(outcomes))
    return PartResult("strategies", rows, left_out, 2.0, 10.0)


@pytest.mark.parametrize(
    ("result", "status"),
    [
        (part_of(passed(), skipped("no tool")), "passed"),
        (part_of(passed(), failed("wrong"), skipped("no tool")), "failed"),
        (part_of(skipped("no tool")), "skipped"),
        (part_of(passed(), left_out=("late",)), "passed"),
        (part_of(left_out=("late",)), "failed"),
    ],
)
def test_a_part_is_as_good_as_its_worst_check(result: PartResult, status: str) -> None:
    assert result.status == status


@given(st.lists(st.floats(0.0, 1.5), min_size=len(ALL), max_size=len(ALL)), st.floats(1.0, 500.0))
def test_no_use_of_the_limits_takes_longer_than_all_seconds(used: list[float], total_s: float) -> None:
    budget, spent_s = Budget(ALL, total_s), 0.0
    for part, share in zip(ALL, used, strict=True):
        spent_s += min(share, 1.0) * budget.limit_s(part, spent_s)
    assert spent_s <= total_s * (1 + 1e-9)


def test_what_a_part_leaves_goes_to_the_others_by_their_weights() -> None:
    spent = {"environment": 0.0, "strategies": 3.0, "tuning": 40.0}
    limits = [Budget(ALL, 100.0).limit_s(part, spent_s) for part, spent_s in spent.items()]
    assert limits == pytest.approx([100 * 3 / 115, 97 * 20 / 112, 60.0])
    assert Budget(("tuning",), 50.0).limit_s("tuning", 0.0) == pytest.approx(50.0)
    assert Budget(ALL, 10.0).limit_s("tuning", 11.0) == 0.0  # all is spent
    with pytest.raises(ValueError, match="part: found 'speed', allowed environment, strategies"):
        Budget(("speed",))
    with pytest.raises(ValueError, match="seconds: found 0, allowed more than 0"):
        Budget(ALL, 0.0)
