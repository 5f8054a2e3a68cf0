"""Runs payloads on the simulated GPU, and holds that they end as on the host, with nothing left over."""

import zlib
from contextlib import closing
from functools import cache
from typing import Any

import numpy as np

from tests.models.file_check import filled
from tests.models.lowering.device_programs import BUFFER, KERNELS, ONE_BLOCK
from tests.support.program_compiler import compiler_of
from tuner.core.candidate import TargetName
from tuner.core.device import STREAM_ORDERS
from tuner.core.device_programs import DEFAULTS, DeviceOptions
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.run.device_function import DeviceFunction
from tuner.models.execution import copies
from tuner.models.recording_device import RecordingDevice
from tuner.models.run.host_function import HostFunction

A = np.arange(16, dtype=np.float32)
B = 10 + 2 * A
SIMULATOR, CPU = TargetName.parse("simulator:sm_90"), TargetName("cpu")


def payload(*lines: str, results: str = "", arguments: str = "") -> str:
    """Returns a module whose @main takes %a and %b of 16 floats; %c0, %c1, %c3, %c16 are indices."""
    body = "\n".join([*lines, "" if "return" in lines[-1] else "return"])
    more = arguments and f", {arguments}"
    return filled(__file__, "PAYLOAD", more=more, results=results, body=body, kernels=KERNELS)


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
        own = copies(arguments)
        with closing(DeviceFunction(code, device, lambda _: None)) as program:
            found = (*listed(program(*own)), *own)
        assert not device.reports, [str(report) for report in device.reports]
        assert device.counts.allocations == device.counts.frees
        assert program.host_allocations == 0
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    return expected


def traced(code: Any, *arguments: Any, order: str = "fifo") -> tuple[list[str], Any]:
    """Returns what a program asks of a device in one call, one line each, and its results."""
    device = SimulatedDevice("sm_90", order)  # type: ignore[arg-type] # one of its words
    recorder = RecordingDevice(device)
    with closing(DeviceFunction(code, recorder, lambda _: None)) as program:
        before = len(recorder.trace)
        results = program(*arguments)
        trace = list(recorder.trace[before:])
    assert device.reports == ()
    return trace, results


def trace_of(text: str, *arguments: Any, options: DeviceOptions = DEFAULTS) -> list[str]:
    return traced(compiled(text, SIMULATOR, options), *copies(arguments))[0]


def listed(results: Any) -> tuple[Any, ...]:
    return () if results is None else results if isinstance(results, tuple) else (results,)
