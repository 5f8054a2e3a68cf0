"""The GPU check, second part: the GPU against its simulator on small points of every strategy.

Same code, same inputs; every element of C is compared with float64 and with the simulator's. Different bits
are counted, but are not failures: tensor cores add in an unspecified order.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.gpu_check.checks import Check, CheckOutcome, evaluated, failed
from benchmarks.gpu_check.device_under_test import Bed
from benchmarks.gpu_check.points import ROUNDS, Case, built, cases
from tuner.core.gpu import AbstractDevice
from tuner.core.gpu_code import KernelProgram
from tuner.payload.reference import TINY, Array, Inputs, compare, draw, draw_base, output_dtype
from tuner.runtime.cpu.memory import GUARD_BYTES, GuardedArray
from tuner.targets.gpu.arrays import LoadedKernels
from tuner.targets.gpu.simulator import simulated_launches

LISTED = 5  # disagreements of a point that are printed
SEED = 1


def checks(bed: Bed) -> tuple[Check, ...]:
    """Returns one check for each point."""
    device = _Opened(bed)
    chosen = cases(bed.chip, ROUNDS if bed.is_hardware else 1)
    return tuple(
        _check(bed, case, device) for case in (_smallest_of_each(chosen) if bed.is_quick else chosen)
    )


class _Opened:
    """The device, opened by the first check that needs it."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._device: AbstractDevice | None = None

    def get(self) -> AbstractDevice:
        """Returns the device. Raises DeviceError."""
        self._device = self._device or self._bed.open()
        return self._device


def _check(bed: Bed, case: Case, device: _Opened) -> Check:
    return Check(case.name, lambda: agree(bed, case, device.get()))


def _smallest_of_each(chosen: tuple[Case, ...]) -> tuple[Case, ...]:
    smallest = sorted(chosen, key=lambda case: case.problem.flop, reverse=True)
    return tuple({case.strategy: case for case in smallest}.values())


def agree(bed: Bed, case: Case, device: AbstractDevice) -> CheckOutcome:
    """Runs one point on the device and on the simulator, and compares. Raises CandidateError, DeviceError."""
    point, program = built(case, bed.target)
    rng = np.random.default_rng(SEED)
    inputs = draw(case.problem, draw_base(case.problem, rng), rng)
    found, stray_bytes = run_on(device, program, inputs)
    simulated = GuardedArray.placed(
        (case.problem.rows, case.problem.sizes[1]), output_dtype(case.problem)
    ).array
    simulated_launches(program, named(inputs) | {"c": simulated}, {})
    knobs = dict(point.candidate.choices)
    if stray_bytes:
        return failed(f"wrote {stray_bytes} bytes outside of C", knobs=knobs)
    return compared(inputs, found, simulated, knobs)


def compared(inputs: Inputs, found: Array, simulated: Array, knobs: dict[str, Any]) -> CheckOutcome:
    """Returns an outcome: passed if both results are right, and differ by no more than rounding."""
    of_gpu, gpu_result = compare(inputs, found)
    of_simulator, simulator_result = compare(inputs, simulated)
    apart = differences(inputs, found, simulated)
    kind = f"i{found.itemsize}"
    # sums that are near the middle of two numbers of a narrow type are rounded to either
    steps = np.abs(found.view(kind).astype(np.int64) - simulated.view(kind))
    wrong = (apart > 1.0) & (steps > 1)
    facts = {
        "knobs": knobs,
        "gpu_error": of_gpu.max_error,  # 1 is the tolerance
        "simulator_error": of_simulator.max_error,
        "difference": float(apart.max()),
        "other_bits": int(np.count_nonzero(found.view(kind) != simulated.view(kind))),
        "elements": found.size,
        "disagreements": list(listed(inputs, found, simulated, wrong)),
    }
    if not of_gpu.max_error <= 1.0:
        return failed(f"the GPU is wrong: {gpu_result}", **facts)
    if not of_simulator.max_error <= 1.0:
        return failed(f"the simulator is wrong: {simulator_result}", **facts)
    text = (
        f"{facts['other_bits']} of {found.size} elements have other bits, {facts['difference']:.2g} at most"
    )
    return evaluated(not wrong.any(), text, **facts)


def differences(inputs: Inputs, one: Array, other: Array) -> Array:
    """Returns differences in tolerances of each element; inf where only one result has a number."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(one.astype(np.float64) - other.astype(np.float64)) / np.maximum(inputs.tolerance, TINY)
    is_nan = np.isnan(one.astype(np.float64)) & np.isnan(other.astype(np.float64))
    apart[np.isnan(apart)] = np.inf
    apart[is_nan] = 0.0
    return apart


def listed(inputs: Inputs, found: Array, simulated: Array, wrong: Array) -> Iterator[dict[str, Any]]:
    """Yields the first places where both disagree."""
    expected = inputs.expected
    for row, column in np.argwhere(wrong)[:LISTED]:
        numbers = {"gpu": found, "simulator": simulated, "expected": expected}
        given = {name: str(array[row, column]) for name, array in numbers.items()}
        yield {"row": int(row), "column": int(column), **given}


def run_on(device: AbstractDevice, program: KernelProgram, inputs: Inputs) -> tuple[Array, int]:
    """Runs a program once on fresh memory; returns C and how many bytes around C were changed."""
    problem = inputs.problem
    c = GuardedArray.placed((problem.rows, problem.sizes[1]), output_dtype(problem))
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
    return dict(zip(("a", "b", "bias"), inputs.arrays, strict=False))
