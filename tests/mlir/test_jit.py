"""LLVM-dialect text as functions of this process, and the permission to use AMX tiles."""

import ctypes
import gc
import subprocess
import sys
import threading
import time

import pytest

from tests.source_files import ROOT
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.core.instruction_sets import AMX_BF16
from tuner.runtime.cpu import host as tile_permission
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments, loop_text
from tuner.runtime.cpu.roofline import TILE_DOTS

SUM = text_beside(__file__, "SUM")


def body(text: str, declaration: str = "") -> str:
    head = "llvm.func @f(%p: !llvm.ptr) attributes {llvm.emit_c_interface}"
    return f"module {{\n{declaration}\n{head} {{\n{text}\nllvm.return\n}}\n}}"


def test_values_go_in_and_a_result_comes_out_as_long_as_the_module_lives() -> None:
    code = JittedModule(SUM, ("sum", "store"))
    for _ in range(3):
        JittedModule(SUM, ("sum",))
        gc.collect()
    arguments = PackedArguments(40, 2)
    CompiledFunction(code.addresses["sum"])(arguments)
    assert arguments.result == 42
    place = ctypes.c_int64(0)
    CompiledFunction(code.addresses["store"])(PackedArguments(ctypes.addressof(place), 7))
    assert place.value == 7


UNRESOLVED = body("llvm.call @nowhere() : () -> ()", "llvm.func @nowhere()")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("module {", r"expected"),
        ("func.func @f() { return }", r"^Failure while creating the ExecutionEngine"),  # not lowered
        (SUM, r"^function 'f' is not in the code$"),
        (UNRESOLVED, r"^function 'f' calls what the JIT cannot resolve$"),
    ],
)
def test_code_that_cannot_be_loaded_is_a_failure_to_load(text: str, reason: str) -> None:
    with pytest.raises(CandidateError, match=reason) as caught:
        JittedModule(text, ("f",))
    assert caught.value.stage == Stage.LOAD
    assert "\n" not in caught.value.reason


def test_a_call_lets_other_threads_run() -> None:
    code = JittedModule(body(text_beside(__file__, "WAIT")), ("f",))
    flag = ctypes.c_int64(0)
    function = CompiledFunction(code.addresses["f"])
    thread = threading.Thread(target=function, args=(PackedArguments(ctypes.addressof(flag)),))
    thread.start()
    time.sleep(0.01)
    assert thread.is_alive()
    flag.value = 1  # this thread runs: the call holds no lock
    thread.join(120.0)
    assert not thread.is_alive()


# The permission to use AMX tiles is requested where code with tiles is loaded, in whatever process.
LOOP = loop_text("multiply_add_amx").replace("INTRINSIC", TILE_DOTS[AMX_BF16])
# Prints whether this process may use tiles (ARCH_GET_XCOMP_PERM) before and after it loads a loop of tiles.
LOADING = f"""
import ctypes
from tuner.runtime.cpu.jit import JittedModule
def is_granted():
    mask = ctypes.c_uint64()
    ctypes.CDLL(None).syscall({tile_permission.ARCH_PRCTL}, 0x1022, ctypes.byref(mask))
    return bool(mask.value >> {tile_permission.TILE_DATA} & 1)
before = is_granted()
code = JittedModule({LOOP!r}, ("multiply_add",))
print(before, is_granted())
"""


@pytest.mark.skipif(not describe_machine().has_amx_bf16, reason="this processor has no AMX, or no permission")
def test_a_process_that_loads_tiles_has_the_permission_from_then_on() -> None:
    program = [sys.executable, "-c", LOADING]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_code_with_tiles_alone_is_not_loaded_without_the_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_permission, "may_use_tiles", lambda: False)
    tile_permission.require_tiles_for("llvm.func @f(%x: vector<16xf32>) { llvm.return }")
    with pytest.raises(CandidateError, match=r"^needs AMX, which the operating system refuses") as caught:
        JittedModule(LOOP, ("multiply_add",))
    assert caught.value.stage is Stage.LOAD
