"""Runs payloads on the simulated GPU, and holds that they end as on the host, with nothing left over."""

import zlib
from functools import cache
from typing import Any

import numpy as np

from benchmarks.program_compiler import compiler_of
from tests.programs.lowering.device_programs import BUFFER, KERNELS, ONE_BLOCK
from tuner.core.candidate import TargetName
from tuner.core.gpu import STREAM_ORDERS
from tuner.programs.execution import copies
from tuner.programs.request import DEFAULTS, DeviceOptions
from tuner.programs.run.device_function import DeviceFunction
from tuner.programs.run.host_function import HostFunction
from tuner.programs.run.recording_device import RecordingDevice
from tuner.simulator.device.simulated_device import SimulatedDevice

__all__ = ["BUFFER", "KERNELS", "ONE_BLOCK", "A", "B", "ended", "launched", "listed", "payload", "trace_of"]
A = np.arange(16, dtype=np.float32)
B = 10 + 2 * A
SIMULATOR, CPU = TargetName.parse("simulator:sm_90"), TargetName("cpu")


def payload(*lines: str, results: str = "", arguments: str = "", kernels: str = KERNELS) -> str:
    """Returns a module whose @main takes %a and %b of 16 floats; %c0, %c1, %c3, %c16 are indices."""
    constants = [f"%c{number} = arith.constant {number} : index" for number in (0, 1, 3, 16)]
    signature = ", ".join(filter(None, [f"%a: {BUFFER}, %b: {BUFFER}", arguments]))
    body = "\n".join([*constants, "%one = arith.constant 1.0 : f32", *lines])
    return f"""module attributes {{gpu.container_module}} {{
  func.func private @printMemrefF32(memref<*xf32>)
  func.func @main({signature}) {f"-> ({results})" if results else ""} {{
    {body}
    {"" if "return" in lines[-1] else "return"}
  }}
{kernels}}}"""


def launched(kernel: str, *names: str) -> str:
    arguments = ", ".join(f"%{name} : {BUFFER}" for name in names)
    return f"gpu.launch_func @m::@{kernel} {ONE_BLOCK} args({arguments})"


def one_order(name: str) -> tuple[str, ...]:
    """Returns the order for a lone kernel, which changes places with nothing: each order gets some."""
    return (STREAM_ORDERS[zlib.crc32(name.encode()) % len(STREAM_ORDERS)],)


@cache
def compiled(text: str, target: TargetName, options: DeviceOptions = DEFAULTS) -> Any:
    return compiler_of(target).compile(text, "main", None, options).code


def ended(text: str, *arguments: Any, options: DeviceOptions = DEFAULTS) -> tuple[Any, ...]:
    """Returns results, then arguments, of a run on the simulator: under each order what the host gives.

    Nothing is reported, nothing leaks on either side, and device memory is freed once.
    """
    plain = HostFunction(compiled(text, CPU), lambda _: None)
    own = copies(arguments)
    expected = (*listed(plain(*own)), *own)
    assert plain.allocations == 0
    code = compiled(text, SIMULATOR, options)
    for order in STREAM_ORDERS:
        device = SimulatedDevice("sm_90", order, seed=1)
        program = DeviceFunction(code, device, lambda _: None)
        own = copies(arguments)
        try:
            found = (*listed(program(*own)), *own)
        finally:
            program.close()
        assert not device.reports, [str(report) for report in device.reports]
        assert device.counts.allocations == device.counts.frees
        assert program.host_allocations == 0
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    return expected


def trace_of(text: str, *arguments: Any, options: DeviceOptions = DEFAULTS) -> list[str]:
    """Returns what a program asks of a device in one call, one line each."""
    recorder = RecordingDevice(SimulatedDevice("sm_90"))
    program = DeviceFunction(compiled(text, SIMULATOR, options), recorder, lambda _: None)
    before = len(recorder.trace)
    program(*copies(arguments))
    trace = list(recorder.trace[before:])
    program.close()
    return trace


def listed(results: Any) -> tuple[Any, ...]:
    return () if results is None else results if isinstance(results, tuple) else (results,)
