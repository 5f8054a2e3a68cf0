"""Parts in child processes: whatever goes wrong in a check costs that check only."""

import sys

import pytest

from benchmarks.gpu_check.checks import PartResult
from benchmarks.gpu_check.device_under_test import SIMULATOR, Bed
from benchmarks.gpu_check.runner import run_part

BED = Bed(SIMULATOR, "sm_90")


def run(checks: str, limit_s: float) -> PartResult:
    return run_part(
        "timing", BED, limit_s, (sys.executable, "-m", "tests.benchmarks.gpu_check.scripted_child", checks)
    )


@pytest.mark.slow
def test_a_check_that_raises_crashes_breaks_or_hangs_does_not_end_the_part() -> None:
    result = run("mixed", 60.0)
    assert result.status == "failed"
    assert [(row.name, row.outcome.status, row.outcome.words) for row in result.rows] == [
        ("right", "passed", "fine"),
        ("refused", "failed", "words: found none, allowed some"),
        ("crashing", "failed", "ended by signal 11: no message"),
        ("broken", "failed", "ended with exit code 1: LookupError: a defect of ours"),
        ("hanging", "failed", "no result within 0.5 s"),
        ("last", "skipped", "no reason"),
    ]
    assert result.rows[0].outcome.facts == {"number": 7}
    assert result.left_out == ()


@pytest.mark.slow
def test_a_part_ends_with_its_seconds_and_reports_what_was_left_out() -> None:
    result = run("slow", 2.0)  # of the 1000 s that the check would take
    assert (result.left_out[-1], result.rows[:1]) == ("late", result.rows[:1])
    assert "long" in result.left_out


def test_a_part_whose_child_cannot_begin_has_failed() -> None:
    result = run("none", 30.0)
    assert result.status == "failed"
    assert [(row.name, row.outcome.words) for row in result.rows] == [
        ("start", "ended with exit code 1: no checks here")
    ]


def test_a_part_whose_child_asks_nothing_has_failed() -> None:
    result = run("nothing", 0.5)
    assert [(row.name, row.outcome.words) for row in result.rows] == [
        ("start", "nothing was asked within 0.5 s")
    ]
    assert result.status == "failed"


def test_a_part_without_seconds_has_failed() -> None:
    assert run("right", 0.0).status == "failed"
