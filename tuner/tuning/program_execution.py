"""Runs compiled programs: on a device, traced, checked and timed as it can be, or on the host."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tuner.device import AbstractDevice
from tuner.device_program import DeviceProgram
from tuner.program_run import ProgramRequest
from tuner.program_times import ProgramTimes
from tuner.target_name import TargetName
from tuner.tuning.finals import FINAL_EFFORT
from tuner.tuning.program_comparison import outputs
from tuner.tuning.program_devices import open_device


@dataclass(frozen=True, eq=False)
class Ran:
    """What a run left."""

    outputs: tuple[Any, ...]  # results, then written arguments
    trace: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    times: ProgramTimes | None = None


def run_on_device(
    request: ProgramRequest, target: TargetName, code: DeviceProgram, arguments: tuple[Any, ...]
) -> Ran:
    """Runs once; on hardware then times. Raises CandidateError(LOAD), DeviceError, UsageError."""
    from tuner.runtime.program import LoadedProgram
    from tuner.runtime.recorder import RecordingDevice

    device = open_device(target, request.order, request.seed)
    recorder = RecordingDevice(device)
    own = copies(arguments)
    program = LoadedProgram(code, recorder if request.is_traced else device)
    try:
        found = outputs(code, program(*own), own)
    finally:
        program.close()
    return Ran(
        found, tuple(recorder.trace), reports_of(device), _device_times(request, target, code, arguments)
    )


def run_on_host(request: ProgramRequest, code: DeviceProgram, arguments: tuple[Any, ...]) -> Ran:
    """Runs once, then times. Raises CandidateError(LOAD), UsageError."""
    from tuner.runtime.host_function import HostFunction

    own = copies(arguments)
    function = HostFunction(code)
    found = outputs(code, function(*own), own)
    leaks = function.allocations
    reports = (f"leak: {leaks} allocations on the host are never freed",) if leaks else ()
    return Ran(found, (), reports, host_times(code, arguments, request.seed) if request.is_timed else None)


def host_times(code: DeviceProgram, arguments: tuple[Any, ...], seed: int) -> ProgramTimes:
    """Times whole calls on the host, on one set of arguments that stays in place."""
    from tuner.runtime.host_function import HostFunction
    from tuner.runtime.timing import measure

    function = HostFunction(code)
    call = function.prepare(*copies(arguments))
    measurement = measure(
        lambda times: function.repeat(call, times), FINAL_EFFORT, np.random.default_rng(seed)
    )
    return ProgramTimes(measurement.median_s)


def reports_of(device: AbstractDevice) -> tuple[str, ...]:
    """Returns what a simulated device found wrong; nothing of real ones, which do not look."""
    from tuner.runtime.simulated_device import SimulatedDevice

    return tuple(map(str, device.reports)) if isinstance(device, SimulatedDevice) else ()


def copies(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns arguments that a program may write."""
    return tuple(each.copy() if isinstance(each, np.ndarray) else each for each in arguments)


def _device_times(
    request: ProgramRequest, target: TargetName, code: DeviceProgram, arguments: tuple[Any, ...]
) -> ProgramTimes | None:
    if target.kind != "cuda" or not request.is_timed:
        return None
    from tuner.tuning.program_timing import time_on_device

    return time_on_device(open_device(target), code, copies(arguments), request.seed)
