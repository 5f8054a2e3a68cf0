"""Programs of fusions on the simulated GPU: results, launches and bytes of a call, defects, leaks."""

from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tests.models.payload_runs import listed
from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.device_programs import DeviceWork
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.run.device_function import DeviceFunction
from tuner.models.compiler import CompiledProgram
from tuner.models.recording_device import RecordingDevice

SIMULATOR = TargetName("simulator", "sm_90")
# Payloads whose fusions become one kernel: the smallest form of layers of models
LAYER_NORM, CONVOLUTION = text_beside(__file__, "LAYER_NORM"), text_beside(__file__, "CONVOLUTION")
ROWS_OF_A_TABLE = text_beside(__file__, "ROWS_OF_A_TABLE")


@dataclass(frozen=True, eq=False)
class Simulated:
    """Two calls of a program: their results are equal, and nothing is reported."""

    compiled: CompiledProgram
    results: tuple[Any, ...]
    loaded: DeviceWork  # before the first call
    work: DeviceWork  # of the second call
    kernels: tuple[str, ...]  # names, in the order of the launches of the second call
    streams: tuple[str, ...]  # of these launches


@cache
def compiled(text: str, *, as_fusions: bool = True) -> CompiledProgram:
    """Returns a program for the simulator, compiled once; of fusions, unless it cannot be."""
    return compiler_of(SIMULATOR).compile(text, as_fusions=as_fusions, is_checked=True)


def simulated(text: str, *arguments: Any, as_fusions: bool = True) -> Simulated:
    """Calls a program twice on a simulated GPU; fails for a defect, a leak, a second result that differs."""
    made = compiled(text, as_fusions=as_fusions)
    device = SimulatedDevice("sm_90")
    recorder = RecordingDevice(device)
    with closing(DeviceFunction(made.code, recorder, lambda _: None)) as program:
        loaded = recorder.work
        first = listed(program(*arguments))
        after_first, lines = recorder.work, len(recorder.trace)
        second = listed(program(*arguments))
        work = recorder.work.since(after_first)
    assert program.host_allocations == 0
    assert not device.reports, [str(report) for report in device.reports]
    assert device.counts.allocations == device.counts.frees
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    launches = [line.split() for line in recorder.trace[lines:] if line.startswith("launch ")]
    names, streams = (tuple(words[at] for words in launches) for at in (1, -1))
    return Simulated(made, second, loaded, work, names, streams)


def without_fusions(text: str) -> DeviceWork:
    """Returns the launches and bytes of a call of a program that is compiled as a whole, by counting."""
    found = compiler_of(SIMULATOR).work_without_fusions(text, None)
    assert found is not None
    return found


def require_close(found: Any, wanted: Any, tolerance: float = 2e-6) -> None:
    """Fails for a result whose error relative to the largest number is above ``tolerance``."""
    assert (found.shape, found.dtype) == (wanted.shape, np.float32)
    exact = np.asarray(wanted, np.float64)
    error = np.abs(found.astype(np.float64) - exact).max() / np.abs(exact).max()
    assert error <= tolerance, error
