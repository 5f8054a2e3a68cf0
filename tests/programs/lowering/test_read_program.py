"""Payloads become programs: entry, calls, signature, buffers for tensors, memory that is freed."""

import re

import pytest

from tests.mlir.kernels import parsed
from tests.programs.file_check import cases, require
from tests.programs.lowering.compiled import entry_read, host_function, module_text, read, refusal
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu_code import BufferType, ScalarType
from tuner.mlir.bindings import ir
from tuner.mlir.ir.reading import walk
from tuner.programs.lowering import entry as signature
from tuner.programs.lowering.entry import function_named
from tuner.programs.lowering.read_program import assert_indirect_indices

pytestmark = pytest.mark.mlir


READ = (
    "calls_are_inlined_and_only_the_entry_is_left",
    "gpux_is_read_as_documents_print_it",
    "global_memory_as_a_number_is_the_default",
    "global_memory_as_a_word_is_the_default",
    "memory_of_a_kernel_may_have_a_memory_space",
    "what_the_entry_does_not_call_may_call_anything",
    "the_device_is_that_of_the_run_and_registration_is_an_op",
    "tensors_become_memrefs_and_results_stay_results",
    "a_tensor_argument_is_never_written",
    "a_returned_argument_is_a_copy_of_it",
    "arithmetic_on_tensors_becomes_an_op_on_memrefs",
    "allocations_of_a_function_that_frees_nothing_are_freed",
    "what_a_function_frees_itself_is_left_to_it",
    "memory_of_outlined_kernels_is_freed_after_their_launch",
    "memory_of_kernels_with_a_barrier_is_freed_after_them",
)


@pytest.mark.drawn(len(READ))
@pytest.mark.parametrize("name", READ)
def test_a_payload_is_read_as_it_says(name: str) -> None:
    text = text_beside(__file__, name)
    require(text, read(text))


@pytest.mark.parametrize(("options", "text"), cases(text_beside(__file__, "REFUSED")))
def test_what_is_no_program_is_refused_in_one_line(options: dict[str, str], text: str) -> None:
    stage, reason = refusal(text, options.get("entry"))
    assert stage is Stage.BIND
    assert re.fullmatch(options["refused"], reason)


def test_the_entry_is_the_only_public_function_or_main_unless_it_is_named() -> None:
    private = "func.func private @h(%x: memref<4xf32>) { return }"
    assert entry_read(f"{private} func.func @f(%x: memref<4xf32>) {{ return }}") == "f"
    both = "func.func @f() { return } func.func @NAME() { return }"
    assert entry_read(both.replace("NAME", "g"), "g") == "g"
    assert entry_read(both.replace("NAME", "main")) == "main"
    assert entry_read(both.replace("NAME", "main"), "f") == "f"


@pytest.mark.parametrize("name", ["malloc", "mgpuStreamCreate", "hello world", "a-b", "0a", "é"])
def test_a_name_that_code_cannot_have_is_refused(name: str) -> None:
    stage, reason = refusal(f'func.func @"{name}"() {{ return }}')
    assert stage is Stage.BIND
    assert reason.startswith(f"payload: func.func at line 1:1: found the name {name!r}, ")


def test_buffers_and_numbers_are_distinguished() -> None:
    program = host_function(text_beside(__file__, "KINDS")).program
    assert program.arguments == (BufferType("bf16", (2, None)), ScalarType("index"), ScalarType("f64"))
    assert program.results == (BufferType("i8", (None, 4)), ScalarType("i1"))


def test_arguments_that_are_only_read_are_not_written() -> None:
    assert host_function(text_beside(__file__, "WRITTEN")).program.written == (False, True, True, False)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("vector<4xf32>", "payload: argument: found vector<4xf32>, allowed memrefs"),
        ("memref<4x4xf32, strided<[8, 1]>>", "allowed rows that lie without gaps"),
        ("memref<4x4xf32, strided<[4, 1], offset: 2>>", "an offset of 0"),
    ],
)
def test_a_type_that_no_contiguous_array_has_is_refused(kind: str, message: str) -> None:
    with pytest.raises(CandidateError, match=message):
        module_text(
            f"func.func @f(%a: {kind}) {{ return }}", lambda payload: signature.arguments_of(payload.function)
        )


@pytest.mark.parametrize(
    "kind", ["4x4xf32, strided<[4, 1]>", "4x4xf32, strided<[?, ?], offset: ?>", "?x4xf32"]
)
def test_a_layout_that_a_contiguous_array_has_is_taken(kind: str) -> None:
    text = f"func.func @f(%a: memref<{kind}>) {{ return }}"
    module_text(text, lambda payload: signature.arguments_of(payload.function))


GATHER = text_beside(__file__, "GATHER")
LOOP = text_beside(__file__, "LOOP")


def asserted(text: str) -> list[str]:
    with parsed(text) as module:
        assert_indirect_indices(function_named(module, "main"))
        assert module.operation.verify()
        return [ir.StringAttr(op.attributes["msg"]).value for op in walk(module, "cf.assert")]


@pytest.mark.parametrize("rows", ["9", "?"])
def test_only_the_index_that_is_data_is_asserted(rows: str) -> None:
    said = f"an index into tensor<{rows}x4xf32> is outside of dimension 0"
    assert asserted(GATHER.replace("ROWS", rows)) == [said]


def test_what_a_loop_carries_is_data_and_its_number_is_not() -> None:
    assert asserted(LOOP) == ["an index into tensor<8xi64> is outside of dimension 0"]
