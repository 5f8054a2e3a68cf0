"""Replaces calls of MLIR's CUDA runtime that a program makes itself.

Takes a module with functions without a body; removes the calls that this runtime implements differently. A
program runs on the device that it was given, and registration becomes an operation of the GPU dialect.
Rejected: a device other than number 0.

    call @mgpuSetDefaultDevice(%c0_i32) : (i32) -> ()
    call @mgpuMemHostRegisterFloat(%a) : (memref<*xf32>) -> ()
  becomes
    gpu.host_register %a : memref<*xf32>
"""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.building import create
from tuner.mlir.rewrite.definitions import constant_of
from tuner.mlir.rewrite.located_error import location_of
from tuner.mlir.rewrite.symbols import callee_of
from tuner.mlir.rewrite.walking import walk

SET_DEVICE = "mgpuSetDefaultDevice"
# Functions on an unranked memref, with the names of CudaRuntimeWrappers.cpp until 2021.
REGISTRATIONS = frozenset({"mgpuMemHostRegisterFloat", "mgpuMemHostRegisterInt32"})


def replace_runtime_calls(module: ir.Module) -> None:
    """Removes a program's calls of MLIR's CUDA runtime that select a device or register memory, in place.

    These are mgpuSetDefaultDevice, mgpuMemHostRegisterFloat and mgpuMemHostRegisterInt32; a registration
    becomes ``gpu.host_register``. Raises CandidateError(BIND) for a device other than the constant 0.
    """
    calls = [call for call in walk(module, "func.call") if callee_of(call) in {SET_DEVICE, *REGISTRATIONS}]
    for call in calls:
        if callee_of(call) == SET_DEVICE:
            _require_first_device(call)
        else:
            with call.location, ir.InsertionPoint(call):
                create("gpu.host_register", [], [call.operands[0]])
    for call in reversed(calls):
        call.erase()


def _require_first_device(call: Op) -> None:
    if constant_of(call.operands[0]) != 0:
        where = f"@{SET_DEVICE} ({location_of(call)})"
        raise CandidateError(Stage.BIND, f"payload: {where}: a program runs on one device, number 0")
