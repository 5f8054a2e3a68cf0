"""Pass pipelines: the module is changed, or the error says what MLIR says; times and stages for who asks."""

import os

import pytest

from tests.mlir.kernels import changed, parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.cpu.lowering import lower_to_llvm
from tuner.mlir.passes import PassTimes, kept_stages, run_passes, timed_passes

UNUSED = "func.func @f() { %0 = arith.constant 1 : i32 return }"
TENSOR_OF_UNKNOWN_ORIGIN = text_beside(__file__, "TENSOR_OF_UNKNOWN_ORIGIN")
COPY = """func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
  linalg.copy ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
  return
}"""
LOOPS = "builtin.module(func.func(convert-linalg-to-loops,cse),cse)"


def after(pipeline: str, text: str) -> str:
    return changed(run_passes, text, pipeline)[1]


def lowered() -> str:
    with parsed(COPY) as module:
        return lower_to_llvm(module)


def test_passes_change_the_module_in_place() -> None:
    assert "arith.constant" not in after("builtin.module(canonicalize)", UNUSED)


@pytest.mark.parametrize(
    ("pipeline", "text", "diagnostic"),
    [
        ("builtin.module(no-such-pass)", UNUSED, "no-such-pass.* does not refer to a registered pass"),
        ("builtin.module(one-shot-bufferize)", TENSOR_OF_UNKNOWN_ORIGIN, "line 3:8: op was not bufferized"),
    ],
)
def test_what_mlir_says_is_a_failure_to_compile(pipeline: str, text: str, diagnostic: str) -> None:
    with pytest.raises(CandidateError, match=diagnostic) as caught:
        after(pipeline, text)
    assert caught.value.stage is Stage.COMPILE


def test_a_report_is_read_pass_by_pass() -> None:
    times = PassTimes()
    times.add(text_beside(__file__, "REPORT"))
    assert {each.name: each.runs for each in times.passes} == {"CSEPass": 2, "ConvertLinalgToLoopsPass": 1}
    assert [each.seconds for each in times.passes] == pytest.approx([0.0003, 0.0003])


def test_passes_are_timed_where_somebody_asks_even_one_that_fails(capfd: pytest.CaptureFixture[str]) -> None:
    with timed_passes() as times:
        after(LOOPS, COPY)
    after(LOOPS, COPY)
    assert {each.name: each.runs for each in times.passes} == {"ConvertLinalgToLoopsPass": 1, "CSEPass": 2}
    assert capfd.readouterr().err == ""
    with timed_passes(), pytest.raises(CandidateError, match="does not refer to a registered pass"):
        after("builtin.module(no-such-pass)", COPY)
    os.write(2, b"stderr is back")
    assert capfd.readouterr().err == "stderr is back"


def test_the_ir_of_a_processor_is_kept_as_loops_where_somebody_asks() -> None:
    with kept_stages() as kept:
        code = lowered()
    lowered()  # later, of which nothing is kept
    ((stage, text),) = kept
    assert stage == "loops"
    assert "scf.for" in text
    assert "llvm." not in text.replace("llvm.emit_c_interface", "")
    assert "scf.for" not in code
