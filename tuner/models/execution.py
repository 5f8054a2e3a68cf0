"""Runs compiled programs on the host or on a device: traced, checked and, on hardware, timed.

``run_on_host`` and ``run_on_device`` give a ProgramRun; ``host_times`` and ``time_on_device`` time calls.
"""

import contextlib
import functools
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tuner.core.device import AbstractDevice, KernelLaunch
from tuner.core.device_programs import DeviceProgram, DeviceWork
from tuner.core.errors import CandidateError
from tuner.core.interfaces import FINAL_EFFORT
from tuner.core.programs import ExplainedFusion
from tuner.core.progress import step
from tuner.models.comparison import outputs, samples_of
from tuner.models.fusion_times import timed_fusions
from tuner.models.program_times import KernelTime, ProgramTimes
from tuner.models.recording_device import RecordingDevice
from tuner.models.report import KernelSample
from tuner.models.request import ProgramOptions, ProgramRequest
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.host_function import HostFunction
from tuner.models.watched_times import host_watch, interleaved, reliability_of
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.programs.devices import device_runtime
from tuner.runtime.programs.runner_functions import discard
from tuner.targets.target import ProgramSupport

if TYPE_CHECKING:
    from tuner.gpu.run.sampled_launches import LaunchSample
    from tuner.models.compiler import CompiledProgram
    from tuner.runtime.programs.runner_functions import Write

PROGRAM = "the program"  # the step in which a program runs
ROUNDS = 11  # calls whose kernels are timed; the call with the median sum of kernel times is reported


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
    fusions: tuple[ExplainedFusion, ...] = ()  # of a program of fusions


def run_on_device(
    request: ProgramRequest,
    support: ProgramSupport,
    code: DeviceProgram,
    arguments: tuple[Any, ...],
    printed: list[str],
) -> ProgramRun:
    """Runs a program once, on a GPU or a simulated one, with copies of ``arguments``.

    Returns its results, with traces, defect reports and times as far as there are any. A real GPU then times
    further calls if the request asks for times. What the program prints is appended to ``printed``. Raises
    CandidateError(LOAD) where the code does not load, DeviceError where the device refuses, UsageError for
    unsuitable arguments; on the simulator also CandidateError(RUN) for a failing assertion of the host code.
    """
    launches: list[LaunchSample] = []
    run_launch = None
    if request.options.sample:
        run_launch = device_runtime().sampled_launches(code, request.options.sample, launches.append)
    device = _opened(request, support, write=printed.append, run_launch=run_launch)
    recorder = RecordingDevice(device)
    own = copies(arguments)
    with closing(device_runtime().function(code, recorder, printed.append)) as program:
        loaded = recorder.work
        with step(PROGRAM):
            results = outputs(code, program(*own), own)
        work = recorder.work.since(loaded)
    times = None
    if request.is_timed and not support.is_simulated:
        times = time_on_device(_opened(request, support), code, copies(arguments), request.options.seed)
    return ProgramRun(
        results,
        tuple(recorder.trace) if request.options.trace else (),
        reports_of(device),
        times,
        "".join(printed),
        samples=samples_of(launches),
        work=work,
    )


def host_function(
    compiled: "CompiledProgram", write: "Write" = sys.stdout.write
) -> "FusedFunction | HostFunction":
    """Loads a compiled program on this processor; returns it as a function.

    ``write`` receives the text that the program prints. Raises CandidateError(LOAD) where loading fails.
    """
    if compiled.image is not None:
        return FusedFunction(compiled.image.code, compiled.image.weights)
    return HostFunction(compiled.code, write, compiled.why_no_fusions, compiled.object_code)


def run_on_host(
    request: ProgramRequest, compiled: "CompiledProgram", arguments: tuple[Any, ...], printed: list[str]
) -> ProgramRun:
    """Runs a program once on the host, with copies of ``arguments``; times further calls if requested.

    What the program prints is appended to ``printed``. A program with interpreted kernels is not timed.
    Memory that is never freed is reported. Raises CandidateError(LOAD) where the code does not load,
    CandidateError(RUN) for a failing assertion or kernel, UsageError for unsuitable arguments.
    """
    code = compiled.code
    own = copies(arguments)
    function = host_function(compiled, printed.append)
    with step(PROGRAM):
        results = outputs(code, function(*own), own)
    leaks = function.allocations
    reports = (f"leak: {leaks} allocations on the host are never freed",) if leaks else ()
    changes = isinstance(function, FusedFunction) and bool(function.code.changed)
    times = None
    if request.is_timed and not code.interpreted:  # the interpreter's speed is not the kernel's
        with step("timing of the program"), _failing_later(changes):
            times = host_times(compiled, arguments, request.options)
    fusions: tuple[ExplainedFusion, ...] = ()
    if isinstance(function, FusedFunction):
        fusions = tuple(map(ExplainedFusion, function.code.fusions))
        if request.is_explained:
            with _failing_later(changes):
                fusions = timed_fusions(function, arguments, describe_machine(), request.options)
    return ProgramRun(results, (), reports, times, "".join(printed), fusions=fusions)


def _failing_later(changes: bool) -> contextlib.AbstractContextManager[None]:
    """Context manager of repeated calls: ignores their CandidateError if ``changes``.

    A program that changes its arguments may fail then, such as when a cache is full that each call fills
    further.
    """
    return contextlib.suppress(CandidateError) if changes else contextlib.nullcontext()


def host_times(
    compiled: "CompiledProgram", arguments: tuple[Any, ...], options: ProgramOptions
) -> ProgramTimes:
    """Returns the median time of a call on the host, and how reliable the time is.

    The calls are timed in two series, interleaved with each other and with a reference kernel; their
    difference shows the noise.
    """
    function: Any = host_function(compiled, discard)
    call = function.prepare(*copies(arguments))
    repeat = functools.partial(function.repeat, call)
    rng = np.random.default_rng(options.seed)
    first, again = interleaved((repeat, repeat), FINAL_EFFORT, rng, host_watch())
    spare_cores = describe_machine().physical_cores - options.threads
    reliability = reliability_of(first, again, None, spare_cores)
    return ProgramTimes(first.median_s, interval_s=first.interval_s, reliability=reliability)


def reports_of(device: "AbstractDevice") -> tuple[str, ...]:
    """Returns a line per defect that a simulated device saw in the program; () for a real device."""
    if device.watch is None:
        return ()
    return device.watch.reports()


def copies(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the arguments with each numpy array copied, so that a program may write to the copies."""
    return tuple(argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments)


def _opened(request: ProgramRequest, support: ProgramSupport, **simulated: Any) -> "AbstractDevice":
    options = request.options
    return support.open_device(request.target.detail, options.order, options.seed, **simulated)


class LaunchTimer:
    """Wraps a device: times each kernel launch on the device's clock, and forwards every other call."""

    def __init__(self, device: AbstractDevice) -> None:
        self._device = device
        self._names: dict[int, str] = {}
        self._timed: list[tuple[str, int, int]] = []  # kernel, event before, event after the launch
        self._start = device.create_event(is_timed=True)
        device.record_event(self._start, 0)
        device.synchronize_event(self._start)

    def as_device(self) -> AbstractDevice:
        """Returns this timer as a device: ``__getattr__`` gives it all methods of the wrapped device."""
        return cast(AbstractDevice, self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def function(self, module: int, name: str) -> int:
        """Returns the device's handle of a kernel of a loaded module; keeps the name for its times."""
        handle = self._device.function(module, name)
        self._names[handle] = name
        return handle

    def launch(self, launch: KernelLaunch, stream: int) -> None:
        """Launches a kernel on a stream, between two events that take its time."""
        before, after = (self._device.create_event(is_timed=True) for _ in range(2))
        self._device.record_event(before, stream)
        self._device.launch(launch, stream)
        self._device.record_event(after, stream)
        self._timed.append((self._names.get(launch.function, "kernel"), before, after))

    def take(self) -> tuple[KernelTime, ...]:
        """Waits for all launches; returns the times of the launches since the last ``take``, in order."""
        times = []
        for name, before, after in self._timed:
            self._device.synchronize_event(after)
            start_s = self._device.elapsed_s(self._start, before)
            times.append(KernelTime(name, start_s, start_s + self._device.elapsed_s(before, after)))
            for event in (before, after):
                self._device.destroy_event(event)
        self._timed.clear()
        return tuple(times)

    def close(self) -> None:
        """Waits for pending launches and destroys the timer's events; does not close the wrapped device."""
        self.take()
        self._device.destroy_event(self._start)


def time_on_device(
    device: AbstractDevice, code: DeviceProgram, arguments: tuple[Any, ...], seed: int
) -> ProgramTimes:
    """Returns the median time of calls on a device, and the kernel times of a typical call.

    ``seed``: of the order of the calls. Raises DeviceError where the device or its driver refuses.
    """
    with closing(device_runtime().function(code, device, discard)) as program:
        call = functools.partial(repeat, program, arguments)
        first, again = interleaved((call, call), FINAL_EFFORT, np.random.default_rng(seed), None)
    return ProgramTimes(
        first.median_s,
        kernel_times(device, code, arguments),
        code.stream_slots,
        interval_s=first.interval_s,
        reliability=reliability_of(first, again, again, spare_cores=0),
    )


def kernel_times(
    device: AbstractDevice, code: DeviceProgram, arguments: tuple[Any, ...]
) -> tuple[KernelTime, ...]:
    """Calls a program several times; returns the kernel times of a typical call, in the order of launches.

    The first call, which loads the kernels, does not count. Times are from the device's clock. Raises
    DeviceError where the device refuses.
    """
    rounds = []
    with (
        closing(LaunchTimer(device)) as timer,
        closing(device_runtime().function(code, timer.as_device(), discard)) as program,
    ):
        for _ in range(ROUNDS + 1):
            program(*arguments)
            rounds.append(timer.take())
    return typical(rounds[1:])  # the first call loads and warms up


def typical(rounds: list[tuple[KernelTime, ...]]) -> tuple[KernelTime, ...]:
    """Returns the kernel times of one of several calls: of the call whose sum is nearest to the median sum.

    ``rounds``: the kernel times of each call, at least one call. Of equally near calls the first is returned.
    """
    sums = [sum(kernel.stop_s - kernel.start_s for kernel in kernels) for kernels in rounds]
    middle = median(sums)
    return rounds[min(range(len(rounds)), key=lambda number: abs(sums[number] - middle))]


def repeat(program: Callable[..., object], arguments: tuple[Any, ...], times: int) -> None:
    """Calls ``program(*arguments)`` a number of times, one call after another, and drops the results."""
    for _ in range(times):
        program(*arguments)
