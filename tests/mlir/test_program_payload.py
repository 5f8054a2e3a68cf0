from collections.abc import Iterator
from typing import Any

import pytest

from tuner.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir

program_payload = pytest.importorskip("tuner.mlir.program_payload")

T = "tensor<4xf32>"
EXP = f"""func.func @exp(%x: {T}) -> {T} {{
  %empty = tensor.empty() : {T}
  %y = linalg.exp ins(%x : {T}) outs(%empty : {T}) -> {T}
  return %y : {T}
}}
"""
ADD_IN_PLACE = f"""func.func @add(%x: {T}, %y: {T}) -> {T} {{
  %z = linalg.add ins(%x, %y : {T}, {T}) outs(%x : {T}) -> {T}
  return %z : {T}
}}
"""


@pytest.fixture
def context() -> Iterator[None]:
    from tuner.mlir import interpreter
    from tuner.mlir.bindings import ir

    with interpreter.new_context(), ir.Location.unknown():
        yield


def read(text: str, entry: str | None = None) -> str:
    return str(program_payload.read_program(text, entry).module)


def refusal(text: str, entry: str | None = None) -> tuple[Stage, str]:
    with pytest.raises(CandidateError) as caught:
        read(text, entry)
    return caught.value.stage, caught.value.reason


def test_tensors_become_memrefs_and_results_stay_results(context: Any) -> None:
    text = read(EXP)
    assert "tensor" not in text
    assert "-> memref<4xf32>" in text


def test_a_tensor_argument_is_never_written(context: Any) -> None:
    text = read(ADD_IN_PLACE)
    assert "outs(%alloc" in text
    assert "outs(%arg" not in text


def test_a_returned_argument_is_a_copy_of_it(context: Any) -> None:
    text = read(f"func.func @same(%x: {T}) -> {T} {{ return %x : {T} }}")
    assert "memref.copy %arg0" in text
    assert "return %alloc" in text


def test_calls_are_inlined_and_only_the_entry_is_left(context: Any) -> None:
    caller = f"func.func @twice(%x: {T}) -> {T} {{ %y = call @exp(%x) : ({T}) -> {T} return %y : {T} }}"
    text = read(EXP + caller, "twice")
    assert text.count("func.func") == 1
    assert "linalg.exp" in text


def test_allocations_of_a_function_that_frees_nothing_are_freed(context: Any) -> None:
    text = read("func.func @f(%x: memref<4xf32>) { %a = memref.alloc() : memref<4xf32> "
                "memref.copy %x, %a : memref<4xf32> to memref<4xf32> return }")  # fmt: skip
    assert text.count("memref.alloc()") == text.count("memref.dealloc") == 1


def test_what_a_function_frees_itself_is_left_to_it(context: Any) -> None:
    text = read("func.func @f() -> memref<4xf32> { %a = memref.alloc() : memref<4xf32> "
                "%b = memref.alloc() : memref<4xf32> memref.copy %a, %b : memref<4xf32> to memref<4xf32> "
                "memref.dealloc %a : memref<4xf32> "
                "return %b : memref<4xf32> }")  # fmt: skip
    assert text.count("memref.dealloc") == 1


def test_the_only_public_function_is_the_entry(context: Any) -> None:
    private = "func.func private @h(%x: memref<4xf32>) { return }"
    payload = program_payload.read_program(f"{private} func.func @f(%x: memref<4xf32>) {{ return }}")
    assert payload.entry == "f"


def test_two_public_functions_need_a_word(context: Any) -> None:
    both = "func.func @f() { return } func.func @g() { return }"
    assert refusal(both) == (
        Stage.BIND,
        "payload: public functions: found f, g, allowed one, or one named as the entry",
    )
    assert program_payload.read_program(both, "g").entry == "g"


def test_an_entry_that_is_not_there_is_refused(context: Any) -> None:
    assert refusal(EXP, "matmul") == (Stage.BIND, "payload: entry: found 'matmul', allowed exp")


def test_a_payload_without_functions_is_refused(context: Any) -> None:
    assert refusal("")[1].startswith("payload: public functions: found none")


def test_text_that_is_no_mlir_is_refused_in_one_line(context: Any) -> None:
    stage, reason = refusal("def f(): pass")
    assert stage is Stage.BIND
    assert "\n" not in reason


def test_an_op_that_is_not_known_is_refused(context: Any) -> None:
    unknown = f'func.func @f(%x: {T}) -> {T} {{ %y = "own.op"(%x) : ({T}) -> {T} return %y : {T} }}'
    stage, reason = refusal(unknown)
    assert stage is Stage.BIND
    assert "unregistered dialect" in reason


def test_launches_of_outlined_kernels_beside_memory_that_nobody_frees_are_refused(context: Any) -> None:
    text = """module attributes {gpu.container_module} {
      gpu.module @m { gpu.func @k(%a: memref<4xf32>) kernel { gpu.return } }
      func.func @f() {
        %c1 = arith.constant 1 : index
        %a = memref.alloc() : memref<4xf32>
        gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<4xf32>)
        return
      } }"""
    assert refusal(text) == (
        Stage.COMPILE,
        "payload: found gpu.launch_func and memory without memref.dealloc, allowed freed memory",
    )


def test_kernels_with_a_barrier_beside_memory_that_nobody_frees_are_refused(context: Any) -> None:
    text = """func.func @f(%p: memref<4xf32>) {
        %c1 = arith.constant 1 : index
        %a = memref.alloc() : memref<4xf32>
        memref.copy %p, %a : memref<4xf32> to memref<4xf32>
        gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                   threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
          %x = memref.load %a[%bx] : memref<4xf32>
          gpu.barrier
          memref.store %x, %p[%bx] : memref<4xf32>
          gpu.terminator
        }
        return
      }"""
    found = "payload: found gpu.barrier and memory without memref.dealloc, allowed freed memory"
    assert refusal(text) == (Stage.COMPILE, found)


@pytest.mark.parametrize(("called", "why"), [("g", "which has no body"), ("f", "which calls itself")])
def test_a_call_that_leads_nowhere_is_refused(context: Any, called: str, why: str) -> None:
    call = f"func.call @{called}(%x) : (memref<4xf32>) -> ()"
    text = f"func.func private @g(memref<4xf32>) func.func @f(%x: memref<4xf32>) {{ {call} return }}"
    stage, reason = refusal(text)
    assert stage is Stage.BIND
    assert reason == f"payload: found a call of @{called}, {why}, allowed calls that can be inlined"


def test_functions_that_call_each_other_are_refused(context: Any) -> None:
    text = """func.func private @g() { func.call @h() : () -> () return }
      func.func private @h() { func.call @g() : () -> () return }
      func.func @f() { func.call @g() : () -> () return }"""
    assert refusal(text) == (
        Stage.BIND,
        "payload: found a call of @g, which calls itself, allowed calls that can be inlined",
    )


@pytest.mark.parametrize("name", ["malloc", "mgpuStreamCreate", "hello world", "a-b", "0a", "é"])
def test_a_name_that_code_cannot_have_is_refused(context: Any, name: str) -> None:
    stage, reason = refusal(f'func.func @"{name}"() {{ return }}')
    assert stage is Stage.BIND
    assert reason.startswith(f"payload: function name: found {name!r}, ")


def test_the_name_of_a_kernel_must_be_one_of_ptx(context: Any) -> None:
    kernel = 'gpu.module @m { gpu.func @"a b"(%x: memref<4xf32>) kernel { gpu.return } }'
    module = f"module attributes {{gpu.container_module}} {{ {kernel} func.func @f() {{ return }} }}"
    assert refusal(module)[1] == "payload: function name: found 'a b', allowed letters, digits, _ . $"


@pytest.mark.parametrize("space", ["1", "#gpu.address_space<global>"])
def test_host_memory_has_no_memory_space(context: Any, space: str) -> None:
    kind = f"memref<4xf32, {space}>"
    alloc = f"%x = memref.alloc() : {kind} return %x : {kind}"
    for text in (f"func.func @f(%x: {kind}) {{ return }}", f"func.func @f() -> {kind} {{ {alloc} }}"):
        stage, reason = refusal(text)
        assert stage is Stage.BIND
        assert reason.startswith("payload: found memref<4xf32, ")
        assert reason.endswith("> outside of kernels, allowed the default memory space")


def test_memory_of_a_kernel_may_have_a_memory_space(context: Any) -> None:
    one = "%c1 = arith.constant 1 : index"
    sizes = [f"({','.join(f'%{letter}{n} = %c1' for n in 'xyz')})" for letter in "gt"]
    threads = f"blocks(%a, %b, %c) in {sizes[0]} threads(%d, %e, %f) in {sizes[1]}"
    launch = f"gpu.launch {threads} workgroup(%s : memref<4xf32, #gpu.address_space<workgroup>>)"
    assert "gpu.barrier" in read(
        f"func.func @f() {{ {one} {launch} {{ gpu.barrier gpu.terminator }} return }}"
    )


def test_what_the_entry_does_not_call_may_call_anything(context: Any) -> None:
    text = read("""func.func private @print()
      func.func private @g() { func.call @g() : () -> () func.call @print() : () -> () return }
      func.func @f() { return }""")
    assert "@g" not in text


def test_arithmetic_on_tensors_becomes_an_op_on_memrefs(context: Any) -> None:
    text = read(f"func.func @twice(%x: {T}) -> {T} {{ %y = arith.addf %x, %x : {T} return %y : {T} }}")
    assert "linalg.generic" in text
    assert "tensor" not in text
