"""From transformed payload to LLVM-dialect text."""

from collections.abc import Iterator

import pytest

from tuner.errors import CandidateError, Stage
from tuner.mlir import interpreter, lowering
from tuner.mlir.bindings import ir
from tuner.mlir.cpu_pipeline import NO_BUILTINS, pipeline_sha256
from tuner.mlir.guards import reject_what_crashes_the_jit
from tuner.mlir.jit import JittedModule
from tuner.mlir.wheels import llvm_version, packages
from tuner.payload import partition, payload_mlir
from tuner.problem import ELEMENT_BYTES, EPILOGUES, LAYOUTS, Matmul, Problem

pytestmark = pytest.mark.mlir


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with interpreter.new_context(), ir.Location.unknown():
        yield


BUFFERS = """
module {
  func.func @scale(%a: memref<4x4xf32>, %b: memref<4x4xf32, strided<[16, 1]>>) {
    linalg.copy ins(%a : memref<4x4xf32>) outs(%b : memref<4x4xf32, strided<[16, 1]>>)
    return
  }
}
"""


def test_lowered_code_takes_bare_pointers_and_can_be_loaded() -> None:
    text = lowering.lower_to_llvm(interpreter.parse(BUFFERS, "payload"))
    assert "llvm.func @scale(%arg0: !llvm.ptr, %arg1: !llvm.ptr)" in text
    assert text.count(NO_BUILTINS) == 1
    reject_what_crashes_the_jit(text)
    assert JittedModule(text, ("scale",)).addresses["scale"]


def test_every_function_of_a_payload_is_an_entry() -> None:
    both = BUFFERS.replace(
        "return\n  }\n", "return\n  }\n  func.func @other(%a: memref<4xf32>) {\n return\n  }\n"
    )
    text = lowering.lower_to_llvm(interpreter.parse(both, "payload"))
    assert set(JittedModule(text, ("scale", "other")).addresses) == {"scale", "other"}
    assert text.count(NO_BUILTINS) == 2


def test_what_cannot_be_lowered_is_a_failure_to_compile() -> None:
    payload = interpreter.parse(
        payload_mlir(Matmul(4, 4, 4), partition(Matmul(4, 4, 4), 1, "none", 1)), "payload"
    )
    with pytest.raises(CandidateError, match=r".") as caught:  # tensors: no script was applied
        lowering.lower_to_llvm(payload)
    assert caught.value.stage == Stage.COMPILE
    assert "\n" not in caught.value.reason


@pytest.mark.parametrize("dtype", ELEMENT_BYTES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("epilogue", EPILOGUES)
@pytest.mark.parametrize("split", ["none", "m", "n"])
def test_every_payload_is_legal(dtype: str, layout: str, epilogue: str, split: str) -> None:
    problem = Problem("matmul", (9, 33, 17), dtype, layout, epilogue)
    panels = partition(problem, 2, split, 2)
    module = interpreter.parse(payload_mlir(problem, panels), "payload")
    assert module.operation.verify()
    names = {op.attributes["sym_name"].value for op in module.body.operations}
    assert names == {panel.entry for panel in panels}


def test_the_compiler_is_named_with_its_versions() -> None:
    assert [name for name, _ in packages()] == ["numba-cuda-mlir", "torch-mlir"]
    assert all(version in llvm_version() for _, version in packages())
    assert len(pipeline_sha256()) == 64
