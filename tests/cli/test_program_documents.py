import json
import math
from dataclasses import replace

from tuner.cli.program_documents import run_document
from tuner.core.problem import Matmul
from tuner.core.target_name import TargetName
from tuner.programs.request import Comparison, ProgramReport, ProgramRequest
from tuner.programs.times import KernelTime, ProgramTimes

REQUEST = ProgramRequest("module {}", TargetName("cuda", "sm_90"), is_compared=True)
REPORT = ProgramReport("main", ("2x?xf32", "index"), ("2x3xf32",), (Matmul(8, 8, 8),), 2)


def test_a_run_is_told_as_json() -> None:
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


def test_times_of_kernels_are_told_where_a_device_ran_them() -> None:
    kernels = (KernelTime("a", 0.0, 1.0), KernelTime("b", 1.0, 2.0))
    found = run_document(REQUEST, replace(REPORT, times=ProgramTimes(3.0, kernels, 2)))
    assert found["times"] == {"call_s": 3.0, "kernel_s": 2.0, "overlap": 1.0, "serialized": True}
