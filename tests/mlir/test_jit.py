"""LLVM-dialect text as functions of this process."""

import ctypes
import gc
import threading
import time

import pytest

from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

pytestmark = pytest.mark.mlir

SUM = text_beside(__file__, "SUM")


def body(text: str, declaration: str = "") -> str:
    head = "llvm.func @f(%p: !llvm.ptr) attributes {llvm.emit_c_interface}"
    return f"module {{\n{declaration}\n{head} {{\n{text}\nllvm.return\n}}\n}}"


def test_values_go_in_and_a_result_comes_out() -> None:
    code = JittedModule(SUM, ("sum", "store"))
    arguments = PackedArguments(40, 2)
    CompiledFunction(code.addresses["sum"])(arguments)
    assert arguments.result == 42
    place = ctypes.c_int64(0)
    CompiledFunction(code.addresses["store"])(PackedArguments(ctypes.addressof(place), 7))
    assert place.value == 7


@pytest.mark.slow
def test_compiled_code_lives_as_long_as_its_module() -> None:
    code = JittedModule(SUM, ("sum",))
    for _ in range(3):
        JittedModule(SUM, ("sum",))
        gc.collect()
    arguments = PackedArguments(1, 2)
    CompiledFunction(code.addresses["sum"])(arguments)
    assert arguments.result == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("module {", r"expected"),
        ("func.func @f() { return }", r"^Failure while creating the ExecutionEngine"),  # not lowered
        (SUM, r"^function 'f' is not in the code$"),
        (
            body("llvm.call @nowhere() : () -> ()", "llvm.func @nowhere()"),
            r"^function 'f' calls what the JIT cannot resolve$",
        ),
    ],
)
def test_code_that_cannot_be_loaded_is_a_failure_to_load(text: str, reason: str) -> None:
    with pytest.raises(CandidateError, match=reason) as caught:
        JittedModule(text, ("f",))
    assert caught.value.stage == Stage.LOAD
    assert "\n" not in caught.value.reason


def test_a_call_lets_other_threads_run() -> None:
    wait = text_beside(__file__, "WAIT")
    code = JittedModule(body(wait), ("f",))
    flag = ctypes.c_int64(0)
    function = CompiledFunction(code.addresses["f"])
    thread = threading.Thread(target=function, args=(PackedArguments(ctypes.addressof(flag)),))
    thread.start()
    time.sleep(0.01)
    assert thread.is_alive()
    flag.value = 1  # this thread runs: the call holds no lock
    thread.join(120.0)
    assert not thread.is_alive()
