"""Code for this processor leaves out SSE4A, whose instructions are slow among AVX's."""

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

from tuner.mlir.bindings import execution_engine, ir
from tuner.runtime.cpu import jit
from tuner.runtime.cpu.host import LIMIT_VARIABLE

pytestmark = pytest.mark.mlir

AMD = {"sse", "sse2", "pni", "avx", "avx2", "fma", "sse4a"}
FUNCTIONS = """
llvm.func @outside()
llvm.func @plain() { llvm.return }
llvm.func @known() attributes {passthrough = ["no-builtins"]} { llvm.return }
llvm.func @other() attributes {passthrough = [["target-features", "+avx512f"]]} { llvm.return }
"""


@pytest.fixture
def flags(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Gives the flags of this process's processor, which a test may change."""
    found = set(AMD)
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)
    monkeypatch.setattr(jit, "own_flags", lambda: found)
    jit.host_features.cache_clear()
    yield found
    jit.host_features.cache_clear()


def attributes() -> dict[str, str]:
    with ir.Context(), ir.Location.unknown():
        module = jit.module_for_host(FUNCTIONS)
        functions = [each.operation.attributes for each in module.body.operations]
        return {
            each["sym_name"].value: str(each["passthrough"]) if "passthrough" in each else ""
            for each in functions
        }


def test_functions_have_all_features_of_the_processor_but_sse4a(flags: set[str]) -> None:
    named = jit.host_features().split(",")
    assert {"+sse3", "+avx2", "+fma", "-avx512f", "-avx512vnni", "-sse4a"} <= set(named)
    assert {each[1:] for each in named} == {*jit.FEATURES, "sse4a"}
    added = f'["target-features", "{jit.host_features()}"]'
    assert attributes() == {
        "outside": "",
        "plain": f'["no-builtins", {added}]',
        "known": f'["no-builtins", {added}]',
        "other": '[["target-features", "+avx512f"], "no-builtins"]',
    }


ZEROS = """
llvm.func @zeros(%a: !llvm.ptr) {
  %zero = llvm.mlir.constant(0.0 : f32) : f32
  %first = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %end = llvm.mlir.constant(512 : i64) : i64
  llvm.br ^head(%first : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %end : i64
  llvm.cond_br %more, ^body, ^done
^body:
  %at = llvm.getelementptr %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %zero, %at : f32, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^done:
  llvm.return
}
"""


def test_a_loop_that_llvm_knows_as_memset_runs() -> None:
    with ir.Context(), ir.Location.unknown():
        engine = execution_engine().ExecutionEngine(jit.module_for_host(ZEROS), opt_level=2)
        address = engine.raw_lookup("zeros")
    assert address
    numbers = np.ones(513, np.float32)
    pointer = ctypes.c_void_p(numbers.ctypes.data)
    # of the wrapper, which takes the addresses of the arguments
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)((ctypes.c_void_p * 1)(ctypes.addressof(pointer)))
    assert (numbers == [*[0] * 512, 1]).all()


def test_code_of_processors_without_sse4a_stays_as_it_is(flags: set[str]) -> None:
    flags.remove("sse4a")
    assert jit.host_features() == ""
    assert attributes()["known"] == '["no-builtins"]'


def test_code_limited_to_a_level_names_what_it_may_not_use(
    flags: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    flags.remove("sse4a")
    monkeypatch.setenv(LIMIT_VARIABLE, "x86-64-v3")
    assert {"+avx2", "+fma", "-avx512f", "-avxvnni"} <= set(jit.host_features().split(","))
