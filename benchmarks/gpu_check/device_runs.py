"""Runs of one program on a device, with guards around C; needs no compiler."""

import contextlib
from collections.abc import Iterator

import numpy as np

from tuner.core.compiled_code import KernelCode
from tuner.core.device import AbstractDevice
from tuner.core.problem import Problem
from tuner.gpu.target.arrays import LoadedKernels
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base, with_special_numbers
from tuner.payload.reference import Array, Inputs, output_dtype
from tuner.runtime.cpu.memory import GUARD_BYTES, GuardedArray


def run_on(device: AbstractDevice, program: KernelCode, inputs: Inputs) -> tuple[Array, int]:
    """Runs a program once on fresh memory; returns C and how many bytes around C were changed."""
    problem = inputs.problem
    c = GuardedArray.placed((problem.rows, problem.sizes[1]), output_dtype(problem))
    c.fill_from(inputs.output_before)
    loaded = LoadedKernels(device, program)
    loaded.poison()
    with uploaded(device, named(inputs) | {"c": c.memory}) as addresses:
        loaded.work(addresses | {"c": addresses["c"] + GUARD_BYTES})(0)
        c.poison()
        device.copy(c.memory.ctypes.data, addresses["c"], c.memory.nbytes, 0)
        device.synchronize_stream(0)
    return c.array, c.stray_bytes()


@contextlib.contextmanager
def uploaded(device: AbstractDevice, arrays: dict[str, Array]) -> Iterator[dict[str, int]]:
    """Gives the addresses of copies in device memory, freed at the end."""
    addresses = {name: device.allocate(array.nbytes, 0) for name, array in arrays.items()}
    for name, array in arrays.items():
        device.copy(addresses[name], array.ctypes.data, array.nbytes, 0)
    device.synchronize_stream(0)
    yield addresses
    for address in addresses.values():
        device.free(address, 0)


def named(inputs: Inputs) -> dict[str, Array]:
    """Returns the inputs by the names of their buffers."""
    return inputs.named


def fault_of(device: AbstractDevice, problem: Problem, program: KernelCode) -> str:
    """Runs a program on usual inputs, then on special numbers where its arguments have some.

    Returns "" if C is right both times, else what is wrong. Raises TunerError.
    """
    rng = np.random.default_rng(0)
    usual = draw(problem, draw_base(problem, rng), rng)
    fault = _fault(device, program, usual)
    if fault:
        return fault
    special = with_special_numbers(usual, rng)
    if special.special is None and not special.extra:
        return ""
    return _fault(device, program, special)


def _fault(device: AbstractDevice, program: KernelCode, inputs: Inputs) -> str:
    found, stray_bytes = run_on(device, program, inputs)
    evaluation, phrase = compare(inputs, found)
    kind = "" if inputs.special is None else "with special numbers: "
    if stray_bytes:
        return f"{kind}wrote {stray_bytes} bytes outside of C"
    return "" if evaluation.max_error <= 1.0 else f"{kind}{phrase}"
