import os

import pytest

from tuner.core.errors import CandidateError
from tuner.mlir import interpreter
from tuner.mlir.bindings import ir
from tuner.mlir.pass_timing import PassTimes, timed_passes
from tuner.mlir.pipeline import run_passes

pytestmark = pytest.mark.mlir

COPY = """func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
  linalg.copy ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
  return
}"""
LOOPS = "builtin.module(func.func(convert-linalg-to-loops,cse),cse)"
REPORT = """
  ----Wall Time----  ----Name----
    0.0003 ( 30.1%)  'func.func' Pipeline
    0.0003 ( 28.0%)    ConvertLinalgToLoopsPass
    0.0001 (  1.7%)    CSEPass
    0.0000 (  0.1%)      (A) DominanceInfo
    0.0002 ( 12.4%)  CSEPass
    0.0004 ( 44.5%)  Rest
    0.0009 (100.0%)  Total
"""


def lower(pipeline: str) -> None:
    with interpreter.new_context(), ir.Location.unknown():
        run_passes(interpreter.parse(COPY, "payload"), pipeline)


def test_a_report_is_read_pass_by_pass() -> None:
    times = PassTimes()
    times.add(REPORT)
    assert [(each.name, each.runs) for each in times.passes] == [
        ("CSEPass", 2),
        ("ConvertLinalgToLoopsPass", 1),
    ]
    assert [each.seconds for each in times.passes] == pytest.approx([0.0003, 0.0003])


def test_passes_are_timed_where_somebody_asks(capfd: pytest.CaptureFixture[str]) -> None:
    with timed_passes() as times:
        lower(LOOPS)
    lower(LOOPS)
    assert {each.name: each.runs for each in times.passes} == {"ConvertLinalgToLoopsPass": 1, "CSEPass": 2}
    assert capfd.readouterr().err == ""


def test_a_pass_that_fails_is_an_error_as_ever(capfd: pytest.CaptureFixture[str]) -> None:
    with timed_passes(), pytest.raises(CandidateError, match="does not refer to a registered pass"):
        lower("builtin.module(no-such-pass)")
    os.write(2, b"stderr is back")
    assert capfd.readouterr().err == "stderr is back"
