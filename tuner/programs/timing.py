"""Times a whole program on a GPU: calls from host to host, and each kernel between events."""

import functools
from collections.abc import Callable
from contextlib import closing
from statistics import median
from typing import Any

import numpy as np

from tuner.core.device import AbstractDevice
from tuner.core.device_program import DeviceProgram
from tuner.core.round_quality import reliability_in_round
from tuner.programs.times import KernelTime, ProgramTimes
from tuner.tuning.remeasurement import FINAL_EFFORT

ROUNDS = 11  # calls whose kernels are timed; the call with the median sum of kernel times is reported


def time_on_device(
    device: AbstractDevice, code: DeviceProgram, arguments: tuple[Any, ...], seed: int
) -> ProgramTimes:
    """Returns the median time of whole calls on a device, and the kernel times of one typical call.

    ``seed`` seeds the random numbers of the measurement. Raises DeviceError.
    """
    from tuner.programs.run.device_function import DeviceFunction
    from tuner.programs.run.runner_functions import discard
    from tuner.programs.watched_times import evidence_of
    from tuner.runtime.timing import measure_together

    with closing(DeviceFunction(code, device, discard)) as program:
        call = functools.partial(repeat, program, arguments)
        first, again = measure_together((call, call), FINAL_EFFORT, np.random.default_rng(seed))
    return ProgramTimes(
        first.median_s,
        kernel_times(device, code, arguments),
        code.stream_slots,
        interval_s=first.interval_s,
        reliability=reliability_in_round(first, evidence_of(first, again, again, spare_cores=0)),
    )


def kernel_times(
    device: AbstractDevice, code: DeviceProgram, arguments: tuple[Any, ...]
) -> tuple[KernelTime, ...]:
    """Runs a program 12 times and returns the kernel times of one call, on the device's clock.

    Of the calls without the first, the one with the median sum of kernel times is chosen.
    """
    from tuner.programs.launch_timer import LaunchTimer
    from tuner.programs.run.device_function import DeviceFunction
    from tuner.programs.run.runner_functions import discard

    rounds = []
    with (
        closing(LaunchTimer(device)) as timer,
        closing(DeviceFunction(code, timer.as_device(), discard)) as program,
    ):
        for _ in range(ROUNDS + 1):
            program(*arguments)
            rounds.append(timer.take())
    return typical(rounds[1:])  # the first call loads and warms up


def typical(rounds: list[tuple[KernelTime, ...]]) -> tuple[KernelTime, ...]:
    """Returns the call whose sum of kernel times is nearest to the median; of equal calls the first.

    ``rounds`` has the kernel times of one call per element.
    """
    sums = [sum(kernel.stop_s - kernel.start_s for kernel in kernels) for kernels in rounds]
    middle = median(sums)
    return rounds[min(range(len(rounds)), key=lambda number: abs(sums[number] - middle))]


def repeat(program: Callable[..., object], arguments: tuple[Any, ...], times: int) -> None:
    """Calls ``program(*arguments)`` a number of times, one call after another, and drops the results."""
    for _ in range(times):
        program(*arguments)
