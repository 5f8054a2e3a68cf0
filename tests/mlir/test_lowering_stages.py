"""IR after the stages of a lowering is kept where somebody asks for it, and nowhere else."""

import pytest

from tuner.mlir import interpreter
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.lowering import lower_to_llvm
from tuner.mlir.lowering_stages import kept_stages

pytestmark = pytest.mark.mlir

COPY = """func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
  linalg.copy ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
  return
}"""


def lower(text: str) -> str:
    with interpreter.new_context(), ir.Location.unknown():
        return lower_to_llvm(interpreter.parse(text, "payload"))


def test_the_ir_of_a_processor_is_kept_as_loops() -> None:
    with kept_stages() as kept:
        code = lower(COPY)
    ((stage, text),) = kept
    assert stage == "loops"
    assert "scf.for" in text
    assert "llvm." not in text.replace("llvm.emit_c_interface", "")
    assert "scf.for" not in code


def test_nothing_is_kept_of_what_is_lowered_later() -> None:
    with kept_stages() as kept:
        pass
    lower(COPY)
    assert kept == []
