"""The GPU check, second part: the GPU against its simulator on small points of every strategy.

Same code, same inputs; every element of C is compared with float64 and with the simulator's. Different bits
are counted, but are not failures: tensor cores add in an unspecified order.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.gpu_check.checks import Check, CheckOutcome, evaluated, failed
from benchmarks.gpu_check.device_runs import named, run_on
from benchmarks.gpu_check.device_under_test import Bed
from benchmarks.gpu_check.points import ROUNDS, Case, built, cases
from benchmarks.gpu_check.unchanged import EarlierRows, ptx_sha256
from tests.support.gpu_point import GpuPoint
from tuner.core.bounded import TINY
from tuner.core.compiled_code import KernelCode
from tuner.core.device import AbstractDevice
from tuner.gpu.ptxsim.target.evaluator import simulated_launches
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base
from tuner.payload.reference import Array, Inputs

LISTED = 5  # disagreements of a point that are printed
SEED = 1


def checks(bed: Bed) -> tuple[Check, ...]:
    """Returns one check for each point."""
    device = _Opened(bed)
    earlier = EarlierRows.read(bed.earlier)
    chosen = cases(bed.chip, ROUNDS if bed.is_hardware else 1)
    return tuple(
        _check(bed, case, device, earlier) for case in (_smallest_of_each(chosen) if bed.is_quick else chosen)
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


def _check(bed: Bed, case: Case, device: _Opened, earlier: EarlierRows) -> Check:
    return Check(case.name, lambda: agree_if_changed(bed, case, device, earlier))


def _smallest_of_each(chosen: tuple[Case, ...]) -> tuple[Case, ...]:
    smallest = sorted(chosen, key=lambda case: case.problem.flop, reverse=True)
    return tuple({case.strategy: case for case in smallest}.values())


def agree_if_changed(bed: Bed, case: Case, device: _Opened, earlier: EarlierRows) -> CheckOutcome:
    """Compiles a point; runs it unless the same PTX has passed before. Raises CandidateError, DeviceError."""
    point, program = built(case, bed.target)
    return earlier.or_ask(
        "strategies", case.name, ptx_sha256(program), lambda: agree(case, device.get(), point, program)
    )


def agree(case: Case, device: AbstractDevice, point: GpuPoint, program: KernelCode) -> CheckOutcome:
    """Runs one point on the device and on the simulator, and compares. Raises DeviceError."""
    rng = np.random.default_rng(SEED)
    inputs = draw(case.problem, draw_base(case.problem, rng), rng)
    found, stray_bytes = run_on(device, program, inputs)
    simulated = inputs.output_before
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
