"""Runs a kernel program on the simulated GPU, with numpy arrays as its buffers."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from tuner.core.device import DeviceError
from tuner.core.errors import TunerError, UsageError
from tuner.core.kernel_program import KernelBuffer, KernelProgram
from tuner.simulator.device.kernels import Near, PreparedLaunch
from tuner.simulator.device.lazy_streams import Order
from tuner.simulator.device.memory import MemoryRegion
from tuner.simulator.device.simulated_device import SimulatedDevice
from tuner.simulator.ptx.geometry import Index3
from tuner.simulator.ptx.launch import Turns
from tuner.simulator.ptx.simulation import Simulation
from tuner.targets.gpu.loaded_kernels import LoadedKernels

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]  # by the names of buffers


def simulate_program(
    program: KernelProgram,
    arrays: Arrays,
    blocks: Mapping[int, tuple[Index3, ...]] | None = None,
    schedule_seed: int | None = None,
) -> tuple[Simulation, ...]:
    """Simulates the launches of a program in order, from its PTX; returns one simulation per launch.

    ``arrays``: inputs and outputs by buffer name, C-contiguous, read and written in place; a scratch buffer
    without an array is device memory filled with NaN. ``blocks``: the thread blocks to execute, by index of
    the launch; a launch without an entry runs all blocks. ``schedule_seed`` None: threads run in a fixed
    order, many lanes simulated at once; a number: in a random order, several times slower. The races found
    do not depend on the order.

    Raises UsageError for arrays or a launch that do not fit, SimulationError for a fault and for text that
    is not PTX, UnsupportedInstruction for an instruction that is not simulated, DeviceError for other errors
    of the simulated device.
    """
    simulations: list[Simulation] = []

    def run(launch: PreparedLaunch, near: Near, seed: int | None) -> Turns:
        chosen = (blocks or {}).get(len(simulations))
        simulations.append((yield from launch.turns(_by_parameters(launch, near), seed, chosen)))
        return simulations[-1]

    for buffer in program.buffers:
        _require_fitting(buffer, arrays)
    order: Order = "fifo" if schedule_seed is None else "random"
    with _errors_of_the_simulator():
        device = SimulatedDevice(program.chip, order, schedule_seed or 0, _ignore, run)
        for array in arrays.values():
            device.register_host(array.ctypes.data, array.nbytes)
        loaded = LoadedKernels(device, _without_scratch_of(program, arrays))
        loaded.work({name: array.ctypes.data for name, array in arrays.items()})(0)
        device.synchronize_stream(0)
    return tuple(simulations)


def _require_fitting(buffer: KernelBuffer, arrays: Arrays) -> None:
    array = arrays.get(buffer.name)
    if array is None and buffer.role != "scratch":
        raise UsageError(f"buffer {buffer.name}: found nothing, allowed an array of {buffer.bytes} bytes")
    if array is not None and array.nbytes != buffer.bytes:
        raise UsageError(f"buffer {buffer.name}: found {array.nbytes} bytes, allowed {buffer.bytes}")
    if array is not None and not array.flags.c_contiguous:
        raise UsageError(f"buffer {buffer.name}: the array is not C-contiguous")


def _without_scratch_of(program: KernelProgram, arrays: Arrays) -> KernelProgram:
    """Returns the program without cubin; scratch buffers that ``arrays`` contains become inputs."""
    given = (replace(each, role="input") if each.name in arrays else each for each in program.buffers)
    return replace(program, cubin=b"", buffers=tuple(given))


def _by_parameters(launch: PreparedLaunch, near: Near) -> Near:
    """Returns ``near`` whose regions are named after the first kernel parameter that points to them."""
    names: dict[int, str] = {}
    for parameter, content in zip(launch.kernel.entry.parameters, launch.parameters, strict=True):
        names.setdefault(int.from_bytes(content, "little"), parameter.name)

    def named(address: int) -> MemoryRegion | None:
        region = near(address)
        return region and replace(region, name=names.get(address, region.name))

    return named


@contextlib.contextmanager
def _errors_of_the_simulator() -> Iterator[None]:
    """Raises the simulator's error in place of the DeviceError that wraps it."""
    try:
        yield
    except DeviceError as error:
        if isinstance(error.__cause__, TunerError):
            raise error.__cause__ from None
        raise


def _ignore(printed: str) -> None:
    """Drops text that kernels print."""
