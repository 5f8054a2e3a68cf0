"""Calls of the CUDA runtime that a program makes by itself."""

import pytest

from tests.programs.lower.reading import read, refusal
from tuner.core.errors import Stage

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.bindings")

CALLS = """
func.func private @mgpuSetDefaultDevice(i32)
func.func private @mgpuMemHostRegisterFloat(memref<*xf32>)
func.func @main(%a: memref<4xf32>) {{
  %device = arith.constant {device} : i32
  call @mgpuSetDefaultDevice(%device) : (i32) -> ()
  %any = memref.cast %a : memref<4xf32> to memref<*xf32>
  call @mgpuMemHostRegisterFloat(%any) : (memref<*xf32>) -> ()
  return
}}
"""


def test_the_device_is_that_of_the_run_and_registration_is_an_op() -> None:
    found = read(CALLS.format(device=0))
    assert "mgpu" not in found
    assert "gpu.host_register" in found


def test_another_device_is_refused() -> None:
    stage, reason = refusal(CALLS.format(device=1))
    assert stage is Stage.BIND
    assert "call of @mgpuSetDefaultDevice with another device" in reason
    assert reason.endswith("allowed 0: the one that the program is run on")
