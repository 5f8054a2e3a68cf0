"""Runs compiled programs on the host, or on a device: traced, checked and timed as the device supports."""

import functools
import sys
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tuner.core.device_program import DeviceProgram
from tuner.core.round_quality import reliability_in_round
from tuner.programs.comparison import outputs
from tuner.programs.options import ProgramOptions
from tuner.programs.request import KernelSample, ProgramRequest
from tuner.programs.run.device_work import DeviceWork
from tuner.programs.samples import samples_of
from tuner.programs.times import ProgramTimes
from tuner.tuning.remeasurement import FINAL_EFFORT
from tuner.tuning.target_kind import ProgramSupport

if TYPE_CHECKING:
    from tuner.core.device import AbstractDevice
    from tuner.core.explained_group import ExplainedGroup
    from tuner.programs.compiler import CompiledProgram
    from tuner.programs.run.grouped_function import GroupedFunction
    from tuner.programs.run.host_function import HostFunction
    from tuner.programs.run.runner_functions import Write
    from tuner.programs.run.sampled.sampled_launches import LaunchSample
    from tuner.simulator.device.kernels import RunLaunch


@dataclass(frozen=True, eq=False)
class ProgramRun:
    """The outputs of one run of a program, with its trace, defect reports, times and printed text."""

    outputs: tuple[Any, ...]  # results, then written arguments
    trace: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    times: ProgramTimes | None = None
    printed: str = ""  # by the program: its kernels, and the functions of MLIR's runner libraries
    samples: tuple[KernelSample, ...] = ()
    work: DeviceWork | None = None  # of the one call; None: no device ran it
    groups: "tuple[ExplainedGroup, ...]" = ()  # of a program of groups


def run_on_device(
    request: ProgramRequest,
    support: ProgramSupport,
    code: DeviceProgram,
    arguments: tuple[Any, ...],
    printed: list[str],
) -> ProgramRun:
    """Runs a program once on a device; on hardware, if the request asks for times, times further calls.

    Works on copies of ``arguments``. Appends what the program prints to ``printed``. Raises
    CandidateError(LOAD), DeviceError, UsageError; on the simulator also CandidateError(RUN) where an
    assertion of the host code fails.
    """
    from tuner.programs.run.device_function import DeviceFunction
    from tuner.programs.run.recording_device import RecordingDevice

    launches: list[LaunchSample] = []
    run_launch = _sampling(request, code, launches)
    device = _opened(request, support, write=printed.append, run_launch=run_launch)
    recorder = RecordingDevice(device)
    own = copies(arguments)
    with closing(DeviceFunction(code, recorder, printed.append)) as program:
        loaded = recorder.work
        found = outputs(code, program(*own), own)
        work = recorder.work.since(loaded)
    times = _device_times(request, support, code, arguments)
    return ProgramRun(
        found,
        tuple(recorder.trace) if request.options.trace else (),
        reports_of(device),
        times,
        "".join(printed),
        samples=samples_of(launches),
        work=work,
    )


def host_function(
    compiled: "CompiledProgram", write: "Write" = sys.stdout.write
) -> "GroupedFunction | HostFunction":
    """Returns a program that runs on this processor as a function; ``write`` receives what it prints.

    Raises CandidateError(LOAD).
    """
    if compiled.image is not None:
        from tuner.programs.run.grouped_function import GroupedFunction

        return GroupedFunction(compiled.image.code, compiled.image.weights)
    from tuner.programs.run.host_function import HostFunction

    return HostFunction(compiled.code, write, compiled.why_no_groups)


def run_on_host(
    request: ProgramRequest, compiled: "CompiledProgram", arguments: tuple[Any, ...], printed: list[str]
) -> ProgramRun:
    """Runs a program once on the host and, if the request asks for times, times further calls.

    Works on copies of ``arguments``. Appends what the program prints to ``printed``. A program with
    interpreted kernels is not timed. Memory that is never freed is reported as a defect. Raises
    CandidateError(LOAD, RUN), UsageError.
    """
    code = compiled.code
    own = copies(arguments)
    function = host_function(compiled, printed.append)
    found = outputs(code, function(*own), own)
    leaks = function.allocations
    reports = (f"leak: {leaks} allocations on the host are never freed",) if leaks else ()
    is_timed = request.is_timed and not code.interpreted  # the interpreter's speed is not the kernel's
    times = host_times(compiled, arguments, request.options) if is_timed else None
    groups = _groups(request, compiled, function, arguments)
    return ProgramRun(found, (), reports, times, "".join(printed), groups=groups)


def _groups(
    request: ProgramRequest, compiled: "CompiledProgram", function: Any, arguments: tuple[Any, ...]
) -> "tuple[ExplainedGroup, ...]":
    """Returns the groups of a program, timed where the request asks for it; () without groups."""
    from tuner.programs.explained_groups import timed_groups, untimed

    if compiled.image is None:
        return ()
    if not request.is_explained:
        return untimed(compiled.image.code.groups)
    from tuner.runtime.cpu.describe_host import describe_machine

    return timed_groups(function, arguments, describe_machine(), request.options)


def host_times(
    compiled: "CompiledProgram", arguments: tuple[Any, ...], options: ProgramOptions
) -> ProgramTimes:
    """Returns the median time of a call on the host; all calls use one copy of ``arguments``.

    The program is timed twice, interleaved, next to a reference kernel: so its reliability is known.
    ``options`` has the seed of the measurement's random numbers, and the number of threads.
    """
    from tuner.programs.run.runner_functions import discard
    from tuner.programs.watched_times import evidence_of, host_watch, timed_watching
    from tuner.runtime.cpu.describe_host import describe_machine

    function: Any = host_function(compiled, discard)
    call = function.prepare(*copies(arguments))
    repeat = functools.partial(function.repeat, call)
    rng = np.random.default_rng(options.seed)
    first, again = timed_watching((repeat, repeat), FINAL_EFFORT, rng, host_watch())
    spare_cores = describe_machine().physical_cores - options.threads
    reliability = reliability_in_round(first, evidence_of(first, again, None, spare_cores))
    return ProgramTimes(first.median_s, interval_s=first.interval_s, reliability=reliability)


def reports_of(device: "AbstractDevice") -> tuple[str, ...]:
    """Returns the defects that a simulated device found, one line each; () for a real device."""
    return () if device.watch is None else device.watch.reports()


def copies(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the arguments with each numpy array copied, so that a program may write to the copies."""
    return tuple(each.copy() if isinstance(each, np.ndarray) else each for each in arguments)


def _opened(request: ProgramRequest, support: ProgramSupport, **simulated: Any) -> "AbstractDevice":
    assert support.open_device is not None
    options = request.options
    return support.open_device(request.target.detail, options.order, options.seed, **simulated)


def _sampling(
    request: ProgramRequest, code: DeviceProgram, launches: "list[LaunchSample]"
) -> "RunLaunch | None":
    """Returns a function that samples the launches of a simulator and appends each sample to ``launches``.

    Returns None where all blocks of all launches run.
    """
    from tuner.programs.run.sampled.sampled_launches import SampledLaunches

    sample = request.options.sample
    return SampledLaunches(code, sample, launches.append).run if sample else None


def _device_times(
    request: ProgramRequest, support: ProgramSupport, code: DeviceProgram, arguments: tuple[Any, ...]
) -> ProgramTimes | None:
    if support.is_simulated or not request.is_timed:
        return None
    from tuner.programs.timing import time_on_device

    return time_on_device(_opened(request, support), code, copies(arguments), request.options.seed)
