import pytest

from tests.mlir.kernels import parsed
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir

inlining = pytest.importorskip("tuner.mlir.gpu.inline_device_functions")

MODULE = """gpu.module @m {
  func.func private @declared(f32) -> f32
  func.func @twice(%a: f32) -> f32 {
    %b = arith.addf %a, %a : f32
    return %b : f32
  }
  func.func @four_times(%a: f32) -> f32 {
    %b = func.call @twice(%a) : (f32) -> f32
    %c = func.call @twice(%b) : (f32) -> f32
    return %c : f32
  }
  func.func @branches(%a: f32) -> f32 {
    cf.br ^next(%a : f32)
  ^next(%b: f32):
    return %b : f32
  }
  func.func @round(%a: f32) -> f32 {
    %b = func.call @and_round(%a) : (f32) -> f32
    return %b : f32
  }
  func.func @and_round(%a: f32) -> f32 {
    %b = func.call @round(%a) : (f32) -> f32
    return %b : f32
  }
  gpu.func @k(%x: f32, %p: memref<f32>) kernel {
    %y = func.call @twice(%x) : (f32) -> f32
    memref.store %y, %p[] : memref<f32>
    gpu.return
  }
}"""


def inlined(callee: str, around: str = "") -> str:
    text = MODULE.replace("%y = func.call @twice", f"%y = func.call @{callee}")
    with parsed(text) as module:
        inlining.inline_device_functions(module)
        assert module.operation.verify()
        return str(module)


@pytest.mark.parametrize(("callee", "additions"), [("twice", 1), ("four_times", 2)])
def test_what_a_kernel_calls_becomes_its_custom_ops(callee: str, additions: int) -> None:
    text = inlined(callee)
    assert "func.call" not in text
    assert "func.func" not in text
    assert text.count("arith.addf") == additions


@pytest.mark.parametrize("callee", ["declared", "branches", "round"])
def test_what_cannot_be_inlined_is_named(callee: str) -> None:
    allowed = "allowed a function of its gpu.module with one block, which does not call itself"
    with pytest.raises(CandidateError, match=f"^func.call at .*: found a call of @{callee}, {allowed}$"):
        inlined(callee)
