import pytest

from tests.programs.lower.reading import read, refusal
from tuner.core.errors import Stage

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lower.payload_checks")

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


@pytest.mark.parametrize("space", ["1", "#gpu.address_space<global>"])
def test_global_memory_is_the_default(space: str) -> None:
    assert "@f(%arg0: memref<4xf32>)" in read(f"func.func @f(%x: memref<4xf32, {space}>) {{ return }}")


def test_memory_of_a_kernel_may_have_a_memory_space() -> None:
    one = "%c1 = arith.constant 1 : index"
    sizes = [f"({','.join(f'%{letter}{n} = %c1' for n in 'xyz')})" for letter in "gt"]
    threads = f"blocks(%a, %b, %c) in {sizes[0]} threads(%d, %e, %f) in {sizes[1]}"
    launch = f"gpu.launch {threads} workgroup(%s : memref<4xf32, #gpu.address_space<workgroup>>)"
    assert "gpu.barrier" in read(
        f"func.func @f() {{ {one} {launch} {{ gpu.barrier gpu.terminator }} return }}"
    )


def test_what_the_entry_does_not_call_may_call_anything() -> None:
    text = read("""func.func private @print()
      func.func private @g() { func.call @g() : () -> () func.call @print() : () -> () return }
      func.func @f() { return }""")
    assert "@g" not in text
