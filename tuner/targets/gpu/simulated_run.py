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
    """Runs the launches of a program in order, from its PTX; returns a simulation of each.

    ``arrays`` are the inputs and outputs, C-contiguous, which the device reads and writes in place. Scratch
    buffers that are not among them are device memory full of NaN. ``blocks`` are the thread blocks to execute
    of a launch, by its number; launches without an entry run whole. Threads run in a fixed order, with many
    lanes simulated at once, or several times slower in a random one by the seed; the races found do not
    depend on it. Raises UsageError for arrays or a launch that do not fit, SimulationError for a fault and
    for text that is no PTX, UnsupportedInstruction for an instruction that is not simulated, DeviceError for
    what else the device refuses.
    """
    simulations: list[Simulation] = []

    def run(launch: PreparedLaunch, near: Near, seed: int | None) -> Simulation:
        chosen = (blocks or {}).get(len(simulations))
        simulations.append(launch.run(_by_parameters(launch, near), seed, chosen))
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
        raise UsageError(f"buffer {buffer.name}: found a strided array, allowed a C-contiguous one")


def _without_scratch_of(program: KernelProgram, arrays: Arrays) -> KernelProgram:
    """Returns the program as PTX, with the buffers that arrays stand for none of its scratch memory."""
    given = (replace(each, role="input") if each.name in arrays else each for each in program.buffers)
    return replace(program, cubin=b"", buffers=tuple(given))


def _by_parameters(launch: PreparedLaunch, near: Near) -> Near:
    """Returns ``near`` with each region under the name of the first parameter that points to it."""
    names: dict[int, str] = {}
    for parameter, content in zip(launch.kernel.entry.parameters, launch.parameters, strict=True):
        names.setdefault(int.from_bytes(content, "little"), parameter.name)

    def named(address: int) -> MemoryRegion | None:
        region = near(address)
        return region and replace(region, name=names.get(address, region.name))

    return named


@contextlib.contextmanager
def _errors_of_the_simulator() -> Iterator[None]:
    """Raises the simulator's error where the device names it as a driver does."""
    try:
        yield
    except DeviceError as error:
        if isinstance(error.__cause__, TunerError):
            raise error.__cause__ from None
        raise


def _ignore(printed: str) -> None:
    """Drops what kernels print."""
