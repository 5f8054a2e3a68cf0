"""From transformed payload to LLVM-dialect text; loops over the matrices of a batch."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Partition
from tuner.core.problem import EPILOGUES, INPUT_DTYPES, LAYOUTS, Matmul, Problem
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu import lowering
from tuner.mlir.cpu.lowering import reject_what_the_jit_cannot_take, with_batch_loops
from tuner.mlir.cpu.pipeline import NO_BUILTINS, cpu_compiler
from tuner.mlir.fingerprint import CPU_SOURCES, llvm_version, packages, sources_sha256
from tuner.payload.cpu import partition, payload_mlir
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with transform.new_context(), ir.Location.unknown():
        yield


BUFFERS, ADD_ONE = (text_beside(__file__, name) for name in ("BUFFERS", "ADD_ONE"))
SHOWN: dict[Callable[..., object], tuple[Any, ...]] = {
    lowering.lower_to_llvm: (text_beside(__file__, "STORE"),),
    with_batch_loops: (ADD_ONE, (Partition("matmul", 0, 0, 1, 2, 0, 8),), (8, 0, 4)),
}


def test_lowered_code_takes_bare_pointers_and_every_function_is_an_entry() -> None:
    text = lowering.lower_to_llvm(transform.parse(BUFFERS, "payload"))
    assert "llvm.func @scale(%arg0: !llvm.ptr, %arg1: !llvm.ptr)" in text
    assert text.count(NO_BUILTINS) == 1
    reject_what_the_jit_cannot_take(text)
    assert JittedModule(text, ("scale",)).addresses["scale"]
    end = "return\n  }\n"
    both = BUFFERS.replace(end, f"{end}  func.func @other(%a: memref<4xf32>) {{\n {end}")
    text = lowering.lower_to_llvm(transform.parse(both, "payload"))
    assert set(JittedModule(text, ("scale", "other")).addresses) == {"scale", "other"}
    assert text.count(NO_BUILTINS) == 2


def test_what_cannot_be_lowered_is_a_failure_to_compile() -> None:
    payload = transform.parse(
        payload_mlir(Matmul(4, 4, 4), partition(Matmul(4, 4, 4), 1, "none", 1)), "payload"
    )
    with pytest.raises(CandidateError, match=r".") as caught:  # tensors: no script was applied
        lowering.lower_to_llvm(payload)
    assert caught.value.stage == Stage.COMPILE
    assert "\n" not in caught.value.reason


@pytest.mark.parametrize("dtype", INPUT_DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_payload_is_legal(dtype: str, layout: str) -> None:
    for epilogue, split in itertools.product(EPILOGUES, ("none", "m", "n")):
        problem = Problem("matmul", (9, 33, 17), dtype, layout, epilogue)
        partitions = partition(problem, 2, split, 2)
        module = transform.parse(payload_mlir(problem, partitions), "payload")
        assert module.operation.verify(), (epilogue, split)
        names = {op.attributes["sym_name"].value for op in module.body.operations}
        assert names == {part.entry for part in partitions}, (epilogue, split)


def test_the_compiler_is_named_with_its_versions() -> None:
    assert [name for name, _ in packages()] == ["numba-cuda-mlir", "torch-mlir"]
    assert all(version in llvm_version() for _, version in packages())
    assert cpu_compiler().packages == packages()
    assert cpu_compiler().pipeline_sha256 == sources_sha256(CPU_SOURCES)


# Loops over the matrices of a batch: each is called once, where its matrices lie.
def test_each_matrix_is_visited_once() -> None:
    partitions = (Partition("matmul", 0, 0, 1, 2, 1, 4), Partition("matmul", 0, 0, 1, 2, 5, 1))
    code = JittedModule(with_batch_loops(ADD_ONE, partitions, (8, 0, 4)), ("matmul", "matmul_x4"))
    a, b, c = np.arange(10, dtype=np.float32), np.full(1, 100, np.float32), np.zeros(6, np.float32)
    arguments = PackedArguments(a.ctypes.data, b.ctypes.data, c.ctypes.data)
    CompiledFunction(code.addresses["matmul_x4"])(arguments)
    assert c.tolist() == [100, 102, 104, 106, 0, 0]
    CompiledFunction(code.addresses["matmul"])(arguments)
    assert c.tolist() == [200, 102, 104, 106, 0, 0]


def test_code_without_a_batch_stays_as_it_is() -> None:
    assert with_batch_loops(ADD_ONE, (Partition("matmul", 0, 0, 1, 2),), (8, 0, 4)) is ADD_ONE
