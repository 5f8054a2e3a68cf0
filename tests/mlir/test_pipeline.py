"""Runs pass pipelines: the module is changed, or the error says what MLIR says."""

import pytest

pytest.importorskip("numba_cuda_mlir")

from tuner.core.errors import CandidateError, Stage
from tuner.mlir import interpreter
from tuner.mlir.bindings import ir
from tuner.mlir.pipeline import run_passes

pytestmark = pytest.mark.mlir

UNUSED = "func.func @f() { %0 = arith.constant 1 : i32 return }"
TENSOR_OF_UNKNOWN_ORIGIN = """
func.func @f(%a: i32) -> tensor<4xf32> {
  %0 = builtin.unrealized_conversion_cast %a : i32 to tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def after(pipeline: str, text: str) -> str:
    with interpreter.new_context(), ir.Location.unknown():
        module = interpreter.parse(text, "module")
        run_passes(module, pipeline)
        return str(module)


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
