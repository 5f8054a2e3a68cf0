"""Runs a program on the simulated GPU and as loops on the host, and compares bit by bit."""

from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.gpu_check.program_runs import uploaded
from tests.support.fuzzing.host_programs import RandomProgram
from tests.support.program_compiler import compiler_of
from tuner.core.candidate import TargetName
from tuner.core.device_programs import DeviceOptions
from tuner.models.execution import copies

if TYPE_CHECKING:
    from tuner.gpu.ptxsim.device.simulated_device import DeviceCounts, SimulatedDevice
    from tuner.gpu.run.device_function import DeviceFunction

SIMULATOR = TargetName.parse("simulator:sm_90")
CALLS = 2  # what the first leaves in globals, the second reads


def check_program(program: RandomProgram, form: str, order: str) -> None:
    """Raises AssertionError with the program's text for any difference, report, leak or double free."""
    options = DeviceOptions(form=form)  # type: ignore[arg-type] # one of its words
    check_calls(program.text, program.arguments, options, order)


def check_calls(
    text: str, arguments: tuple[Any, ...], options: DeviceOptions, order: str = "fifo"
) -> "DeviceCounts":
    """Checks calls of @main as ``check_program`` does; returns the device work of the last call."""
    from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
    from tuner.gpu.run.device_function import DeviceFunction
    from tuner.models.run.host_function import HostFunction

    where = f"{options}, order {order}\n{text}"
    code = compiler_of(SIMULATOR).compile(text, "main", None, options).code
    plain = HostFunction(compiler_of(TargetName("cpu")).compile(text, "main", None).code)
    on_host, on_device = copies(arguments), copies(arguments)
    device = SimulatedDevice("sm_90", order, seed=0)  # type: ignore[arg-type] # one of its words
    with closing(DeviceFunction(code, device)) as loaded:
        for _ in range(CALLS):
            expected = _listed(plain(*on_host))
            found, counts = _called(loaded, device, on_device)
            for one, other in zip((*found, *on_device), (*expected, *on_host), strict=True):
                np.testing.assert_array_equal(one, other, where)
            assert counts.allocations == counts.frees, where
        assert loaded.host_allocations == plain.allocations == 0, where
    assert not device.reports, f"{[str(report) for report in device.reports]}, {where}"
    return counts


def _called(
    loaded: "DeviceFunction", device: "SimulatedDevice", arguments: tuple[Any, ...]
) -> tuple[tuple[Any, ...], "DeviceCounts"]:
    """Calls a program; returns its results, and its device work."""
    from tuner.gpu.ptxsim.device.simulated_device import DeviceCounts

    is_uploaded = loaded.program.device_arguments
    arrays = tuple(each for each in arguments if is_uploaded and isinstance(each, np.ndarray))
    views = uploaded(device, arrays)
    device.counts = counts = DeviceCounts()
    results = _listed(loaded(*views, *arguments[len(views) :]))
    device.counts = DeviceCounts()
    for view, array in zip(views, arrays, strict=True):
        device.copy(array.ctypes.data, view.address, array.nbytes, 0)
        device.free(view.address, 0)
    device.synchronize_stream(0)
    return results, counts


def _listed(results: Any) -> tuple[Any, ...]:
    return () if results is None else results if isinstance(results, tuple) else (results,)
