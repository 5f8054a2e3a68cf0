"""The permission to use AMX tiles is requested where code with tiles is loaded, in whatever process."""

import subprocess
import sys

import pytest

from tests.source_files import ROOT
from tuner.core.errors import CandidateError, Stage
from tuner.runtime.cpu import host as tile_permission
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.cpu.jit import JittedModule
from tuner.runtime.cpu.roofline import TILE_DOTS, loop_text

pytestmark = pytest.mark.mlir

LOOP = loop_text("multiply_add_amx").replace("INTRINSIC", TILE_DOTS["bf16"])
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
    done = subprocess.run(
        [sys.executable, "-c", LOADING], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["False", "True"]


def test_code_with_tiles_is_not_loaded_without_the_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_permission, "may_use_tiles", lambda: False)
    with pytest.raises(CandidateError, match=r"^needs AMX, which the operating system refuses") as caught:
        JittedModule(LOOP, ("multiply_add",))
    assert caught.value.stage is Stage.LOAD


def test_code_without_tiles_asks_for_no_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(tile_permission, "may_use_tiles", lambda: asked.append(True))
    tile_permission.request_for("llvm.func @f(%x: vector<16xf32>) { llvm.return }")
    assert asked == []
