"""From transformed payload to LLVM-dialect text: batches, bf16 as integers, failed assertions as results."""

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.epilogues import EPILOGUES
from tests.mlir.kernels import changed, counts, parsed
from tests.targets.evaluation import fails
from tests.texts import text_beside
from tuner.core.dtypes import INPUT_DTYPES
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Partition
from tuner.core.matmul import Matmul
from tuner.core.problem import LAYOUTS
from tuner.core.problem_classes import MatmulProblem
from tuner.mlir.cpu import lowering
from tuner.mlir.cpu.batch_loops import with_batch_loops
from tuner.mlir.cpu.bf16_emulation import store_bf16_as_integers
from tuner.mlir.cpu.failed_assertions import leave_at_failed_assertions, return_failed_assertions
from tuner.mlir.cpu.lowering import jit_text, reject_unjittable
from tuner.mlir.cpu.pipeline import NO_BUILTINS, cpu_compiler
from tuner.mlir.fingerprint import llvm_version, packages
from tuner.mlir.passes import run_passes
from tuner.payload.cpu import payload_mlir
from tuner.payload.partitions import partition
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

BUFFERS, ADD_ONE = (text_beside(__file__, name) for name in ("BUFFERS", "ADD_ONE"))
WIDENED = "llvm.func @f(%x: bf16) -> f32 { %wide = llvm.fpext %x : bf16 to f32 llvm.return %wide : f32 }"
SHOWN: dict[Callable[..., object], tuple[Any, ...]] = {
    lowering.lower_to_llvm: (text_beside(__file__, "STORE"),),
    store_bf16_as_integers: (WIDENED,),
    with_batch_loops: (ADD_ONE, (Partition("matmul", 0, 0, 1, 2, 0, 8),), (8, 0, 4)),
}


def lowered(text: str) -> str:
    with parsed(text) as module:
        return lowering.lower_to_llvm(module)


def test_lowered_code_takes_bare_pointers_and_every_function_is_an_entry() -> None:
    text = lowered(BUFFERS)
    assert "llvm.func @scale(%arg0: !llvm.ptr, %arg1: !llvm.ptr)" in text
    assert text.count(NO_BUILTINS) == 1
    reject_unjittable(text)
    assert JittedModule(text, ("scale",)).addresses["scale"]
    end = "return\n  }\n"
    both = BUFFERS.replace(end, f"{end}  func.func @other(%a: memref<4xf32>) {{\n {end}")
    text = lowered(both)
    assert set(JittedModule(text, ("scale", "other")).addresses) == {"scale", "other"}
    assert text.count(NO_BUILTINS) == 2


def test_what_cannot_be_lowered_is_a_failure_to_compile() -> None:
    payload = payload_mlir(Matmul(4, 4, 4), partition(Matmul(4, 4, 4), 1, "none", 1))
    with pytest.raises(CandidateError, match=r".") as caught:  # tensors: no script was applied
        lowered(payload)
    assert caught.value.stage == Stage.COMPILE
    assert "\n" not in caught.value.reason


@pytest.mark.parametrize(
    "body",
    [
        "%n = vector.vscale\n %x = arith.index_cast %n : index to i32\n memref.store %x, %a[] : memref<i32>",
        "%v = arith.constant dense<1> : !v\n vector.store %v, %b[%c] : memref<9xi32>, !v",
    ],
    ids=["tile", "vector"],
)
def test_scalable_tiles_and_vectors_are_refused(body: str) -> None:
    arguments = "%a: memref<i32>, %b: memref<9xi32>, %c: index"
    with pytest.raises(CandidateError, match=r": no target has scalable vectors") as caught:
        reject_unjittable(
            lowered(f"!v = vector<[4]xi32>\nfunc.func @f({arguments}) {{\n {body}\n return\n}}")
        )
    assert caught.value.stage == Stage.RESOURCES


@pytest.mark.parametrize("dtype", INPUT_DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_payload_is_legal(dtype: str, layout: str) -> None:
    for epilogue, split in itertools.product(EPILOGUES, ("none", "m", "n")):
        problem = MatmulProblem("matmul", (9, 33, 17), dtype, layout, epilogue)
        partitions = partition(problem, 2, split, 2)
        with parsed(payload_mlir(problem, partitions)) as module:
            assert module.operation.verify(), (epilogue, split)
            names = {op.attributes["sym_name"].value for op in module.body.operations}
        assert names == {part.entry for part in partitions}, (epilogue, split)


def test_the_compiler_is_named_with_its_versions() -> None:
    assert [name for name, _ in packages()] == ["torch-mlir"]
    assert all(version in llvm_version() for _, version in packages())
    assert cpu_compiler().packages == packages()


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


# bf16 on any processor: rounding, arithmetic and moves, compared with ml_dtypes.
LANES = 16
VECTOR = f"vector<{LANES}xbf16>"
WIDE = f"vector<{LANES}xf32>"


def compiled(body: str, *, more: str = "") -> Callable[[np.ndarray, np.ndarray], None]:
    text = f"""{more}
llvm.func @f(%from: !llvm.ptr, %to: !llvm.ptr) attributes {{llvm.emit_c_interface}} {{
{body}
llvm.return }}"""
    with parsed(text) as module:
        code = JittedModule(jit_text(module), ("f",))

    def call(given: np.ndarray, result: np.ndarray) -> None:
        CompiledFunction(code.addresses["f"])(PackedArguments(given.ctypes.data, result.ctypes.data))

    return call


def test_rounding_is_that_of_ml_dtypes_for_every_kind_of_number() -> None:
    call = compiled(f"""
      %x = llvm.load %from {{alignment = 4 : i64}} : !llvm.ptr -> {WIDE}
      %y = llvm.fptrunc %x : {WIDE} to {VECTOR}
      llvm.store %y, %to {{alignment = 2 : i64}} : {VECTOR}, !llvm.ptr""")
    # every kind of number: each high half with the low halves around a tie
    high, low = np.arange(2**16, dtype=np.uint32) << 16, [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF]
    given = (high[:, None] | np.array(low, np.uint32)).reshape(-1).view(np.float32)
    found = np.zeros(given.size, np.uint16)
    for start in range(0, given.size, LANES):
        call(given[start : start + LANES], found[start : start + LANES])
    with np.errstate(invalid="ignore"):
        expected = given.astype(ml_dtypes.bfloat16).view(np.uint16)
    is_nan = np.isnan(given)
    np.testing.assert_array_equal(found[~is_nan], expected[~is_nan])
    assert np.isnan(found[is_nan].view(ml_dtypes.bfloat16).astype(np.float32)).all()


def test_arithmetic_is_done_in_f32_and_rounded_once() -> None:
    call = compiled(text_beside(__file__, "ARITHMETIC"))
    pairs = np.random.default_rng(0).standard_normal((200, 2)).astype(ml_dtypes.bfloat16)
    third = np.float32(ml_dtypes.bfloat16(0.333786))
    for pair in pairs:
        found = np.zeros(1, ml_dtypes.bfloat16)
        call(pair, found)
        x, y = pair.astype(np.float32)
        product = np.float32(ml_dtypes.bfloat16(x * third))
        assert found[0] == min(ml_dtypes.bfloat16(np.float32(np.float64(product) * y + x)), pair[1])


def test_numbers_are_passed_collected_and_kept_in_constants() -> None:
    call = compiled(text_beside(__file__, "COLLECTED"), more=text_beside(__file__, "SECOND"))
    found = np.zeros(2, np.float32)
    call(np.array([1.5], ml_dtypes.bfloat16), found)
    assert found.tolist() == [1.5, -3.75]


# A failed assertion is the result of a function: its text; memory is freed on every way out.
TO_LLVM = "builtin.module(convert-scf-to-cf,finalize-memref-to-llvm,convert-func-to-llvm,convert-to-llvm)"
NAMES = ("WITH_MEMORY", "IN_LOOP", "IN_ANOTHER")
WITH_MEMORY, IN_LOOP, IN_ANOTHER = (text_beside(__file__, name) for name in NAMES)


def rewritten(text: str) -> str:
    """Returns LLVM dialect of a module whose function ``fusion`` returns what failed."""
    with parsed(text) as module:
        run_passes(module, TO_LLVM)
        assert return_failed_assertions(module, "fusion")
        return str(module)


def test_the_first_text_is_returned_and_memory_is_freed() -> None:
    text = rewritten(WITH_MEMORY)
    assert counts(text, "abort", "puts", "call @free(", "llvm.return") == [0, 0, 3, 3]
    head = "llvm.func @fusion(%arg0: i64) -> !llvm.ptr"
    exported = text.replace(f"{head} {{", f"{head} attributes {{llvm.emit_c_interface}} {{")
    code = JittedModule(exported, ("fusion",))
    found = {}
    for number in (-1, 0, 8, 9):
        arguments = PackedArguments(number % 2**64)
        CompiledFunction(code.addresses["fusion"])(arguments)
        found[number] = ctypes.string_at(arguments.result) if arguments.result else b""
    assert found == {-1: b"too small", 0: b"", 8: b"", 9: b"too large"}


def test_code_without_assertions_stays_as_it_is() -> None:
    text = "llvm.func @fusion() {\n  llvm.return\n}"
    before, after, is_changed = changed(return_failed_assertions, text, "fusion")
    assert (after, is_changed) == (before, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (IN_LOOP, "an assertion next to memory that is allocated in a loop"),
        (IN_ANOTHER, "an assertion in a function that a fusion calls"),
    ],
)
def test_what_cannot_return_is_refused(text: str, message: str) -> None:
    with fails(Stage.COMPILE, message):
        rewritten(text)


@pytest.mark.parametrize(("text", "aborts"), [(WITH_MEMORY, False), (IN_LOOP, False), (IN_ANOTHER, True)])
def test_a_whole_program_leaves_at_the_assertions_of_its_entry(text: str, *, aborts: bool) -> None:
    with parsed(text) as module:
        run_passes(module, TO_LLVM)
        leave_at_failed_assertions(module, "fusion")
        assert module.operation.verify()
        assert ("@abort" in str(module)) is aborts
        assert "@puts" in str(module)
