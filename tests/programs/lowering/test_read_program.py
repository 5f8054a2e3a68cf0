"""Payloads become programs: entry, calls, what is refused, buffers for tensors, memory that is freed."""

import pytest

from tests.programs.file_check import require
from tests.programs.lowering.reading import EXP, T, entry_read, read, refusal
from tests.texts import text_beside
from tuner.core.errors import Stage

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.read_program")

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


def test_text_that_is_no_mlir_is_refused_in_one_line() -> None:
    stage, reason = refusal("def f(): pass")
    assert stage is Stage.BIND
    assert "\n" not in reason


def test_an_op_that_is_not_known_is_refused() -> None:
    unknown = f'func.func @f(%x: {T}) -> {T} {{ %y = "own.op"(%x) : ({T}) -> {T} return %y : {T} }}'
    stage, reason = refusal(unknown)
    assert stage is Stage.BIND
    assert "unregistered dialect" in reason


def test_an_unknown_dialect_is_named_in_one_line_without_all_the_others() -> None:
    stage, reason = refusal("func.func @f() {\n  foo.bar\n  return\n}")
    assert stage is Stage.BIND
    assert reason == (
        "payload: error: line 2:3: found foo.bar of dialect foo, allowed dialects that MLIR or GPUX has"
    )


def test_the_only_public_function_is_the_entry() -> None:
    private = "func.func private @h(%x: memref<4xf32>) { return }"
    assert entry_read(f"{private} func.func @f(%x: memref<4xf32>) {{ return }}") == "f"


def test_two_public_functions_need_a_word() -> None:
    both = "func.func @f() { return } func.func @g() { return }"
    assert refusal(both) == (
        Stage.BIND,
        "payload: public functions: found f, g, allowed one, or one that is named as the entry or main",
    )
    assert entry_read(both, "g") == "g"


def test_main_is_the_entry_next_to_other_public_functions() -> None:
    both = "func.func @f() { return } func.func @main() { return }"
    assert entry_read(both) == "main"
    assert entry_read(both, "f") == "f"


def test_an_entry_that_is_not_there_is_refused() -> None:
    assert refusal(EXP, "matmul") == (Stage.BIND, "payload: entry: found 'matmul', allowed exp")


def test_a_payload_without_functions_is_refused() -> None:
    assert refusal("")[1].startswith("payload: public functions: found none")


CALLS = "calls that can be inlined, and MLIR's runner functions, such as @printMemrefF32"


@pytest.mark.parametrize(("called", "why"), [("g", "which has no body"), ("f", "which calls itself")])
def test_a_call_that_leads_nowhere_is_refused(called: str, why: str) -> None:
    call = f"func.call @{called}(%x) : (memref<4xf32>) -> ()"
    text = f"func.func private @g(memref<4xf32>) func.func @f(%x: memref<4xf32>) {{ {call} return }}"
    stage, reason = refusal(text)
    assert stage is Stage.BIND
    assert reason == f"payload: func.call at line 1:71: found a call of @{called}, {why}, allowed {CALLS}"


def test_functions_that_call_each_other_are_refused() -> None:
    text = """func.func private @g() { func.call @h() : () -> () return }
      func.func private @h() { func.call @g() : () -> () return }
      func.func @f() { func.call @g() : () -> () return }"""
    assert refusal(text) == (
        Stage.BIND,
        f"payload: func.call at line 3:24: found a call of @g, which calls itself, allowed {CALLS}",
    )


@pytest.mark.parametrize("name", ["malloc", "mgpuStreamCreate", "hello world", "a-b", "0a", "é"])
def test_a_name_that_code_cannot_have_is_refused(name: str) -> None:
    stage, reason = refusal(f'func.func @"{name}"() {{ return }}')
    assert stage is Stage.BIND
    assert reason.startswith(f"payload: func.func at line 1:1: found the name {name!r}, ")


def test_the_name_of_a_kernel_must_be_one_of_ptx() -> None:
    kernel = 'gpu.module @m { gpu.func @"a b"(%x: memref<4xf32>) kernel { gpu.return } }'
    module = f"module attributes {{gpu.container_module}} {{ {kernel} func.func @f() {{ return }} }}"
    assert (
        refusal(module)[1]
        == "payload: gpu.func at line 1:60: found the name 'a b', allowed letters, digits, _ . $"
    )


@pytest.mark.parametrize("space", ["3", "5", "#gpu.address_space<private>"])
def test_host_memory_is_no_memory_of_kernels(space: str) -> None:
    stage, reason = refusal(f"func.func @f(%x: memref<4xf32, {space}>) {{ return }}")
    assert stage is Stage.BIND
    assert reason.startswith("payload: func.func at line 1:1: found memref<4xf32, ")
    assert reason.endswith("> outside of kernels, allowed the default memory space")


def test_another_device_is_refused() -> None:
    stage, reason = refusal(text_beside(__file__, "another_device"))
    assert stage is Stage.BIND
    assert reason.startswith("payload: @mgpuSetDefaultDevice (at line ")
    assert reason.endswith("): a program runs on one device, number 0")
