"""Compares the results of a program with those of a reference; adds up sampled launches per kernel."""

import math
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tuner.core.device_programs import BufferType, DeviceProgram
from tuner.core.dtypes import FLOATS, MODES, number_type
from tuner.mlir.effects.runner_signatures import CLOCKS
from tuner.models.report import Comparison, KernelSample

if TYPE_CHECKING:
    from tuner.gpu.run.sampled_launches import ComparedElements, LaunchSample


# Two orders of a sum differ by a random walk of roundings: the square root of the number of terms. Allowed is
# twice that number of roundings, plus a constant for operations other than sums.
WALKS = 2.0
ROUNDINGS = 16.0
ADDRESS = re.compile(r"0x[0-9a-f]+")  # an address in a printed memref
PRINTF = "vprintf"  # in PTX; CUDA programming guide, formatted output


def compare(
    code: DeviceProgram,
    actual: tuple[Any, ...],
    expected: tuple[Any, ...],
    multiplied: frozenset[str] = frozenset(),
) -> tuple[Comparison, ...]:
    """Compares the results and the written arguments of two runs of ``code``: one ``Comparison`` per value.

    ``actual``, ``expected``: what ``outputs`` returned for the runs. Values of type f16, bf16, f32 and f64
    may differ by a tolerance for sums in a different order; all others must be equal. ``multiplied``: types
    of the matmuls that scripts compute; where f32 was multiplied in tf32, the tolerance is that of tf32.
    """
    taken = {kind.element for kind in code.arguments}
    buffers = [kind for kind in code.arguments if isinstance(kind, BufferType)]
    # the longest static dimension of an argument, as an estimate of the terms of a sum
    terms = max((size for kind in buffers for size in kind.shape if size is not None), default=1)
    names = [f"result {number}" for number in range(len(code.results))]
    names += [f"argument {index}" for index, is_written in enumerate(code.written) if is_written]
    kinds = [kind.element for kind in code.results]
    pairs = zip(code.arguments, code.written, strict=True)
    kinds += [kind.element for kind, is_written in pairs if is_written]
    modes = multiplied.intersection(MODES)  # all at least as coarse as f32
    tolerances = [  # of the coarsest floating-point type: intermediate values may be rounded to it
        max(tolerance(element, terms) for element in (taken | {kind}).intersection(FLOATS) | modes)
        if kind in FLOATS
        else 0.0
        for kind in kinds
    ]
    return tuple(
        Comparison(name, max_error(value, other), allowed, is_blind(other, allowed))
        for name, value, other, allowed in zip(names, actual, expected, tolerances, strict=True)
    )


def compare_printed(code: DeviceProgram, actual: str, expected: str) -> tuple[Comparison, ...]:
    """Compares the texts that two runs printed: one ``Comparison`` with the error 0 or infinity.

    Addresses are not compared. Where kernels print, the lines may have any order. Returns () where neither
    run printed, and for a program that reads a clock.
    """
    if not (actual or expected) or any(name in code.llvm for name in CLOCKS):
        return ()
    texts = [ADDRESS.sub("", text) for text in (actual, expected)]
    if PRINTF in code.llvm:  # threads print in any order
        texts = ["\n".join(sorted(text.splitlines())) for text in texts]
    return (Comparison("printed", 0.0 if texts[0] == texts[1] else math.inf, 0.0),)


def outputs(code: DeviceProgram, results: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the results of a call of ``code``, then the arguments that it may write, as one tuple.

    ``results``: what the call returned: one value, a tuple of several, or None.
    """
    listed = () if not code.results else results if len(code.results) > 1 else (results,)
    written = (argument for argument, is_written in zip(arguments, code.written, strict=True) if is_written)
    return (*listed, *written)


def tolerance(element: str, terms: int) -> float:
    """Returns the allowed error of a sum of ``terms`` numbers of type ``element``, added in any order.

    The error is relative to the largest expected magnitude, or to 1 if that is larger, as in ``max_error``.
    """
    return number_type(element).epsilon * (ROUNDINGS + WALKS * math.sqrt(terms))


def is_blind(expected: Any, allowed: float) -> bool:
    """Returns whether zeros in place of ``expected`` would pass the comparison too.

    That is: no expected number is larger than ``allowed``, the largest ``max_error`` that passes. False where
    all expected numbers are zero.
    """
    numbers = np.asarray(expected)
    return bool(numbers.any()) and max_error(np.zeros_like(numbers), numbers) <= allowed


def max_error(actual: Any, expected: Any) -> float:
    """Returns the largest difference, divided by the largest expected magnitude or by 1, whichever is larger.

    Returns inf where shapes, NaNs or infinities differ. Unequal integers give at least the smallest positive
    normal float, since float64 does not distinguish all integers of 64 bits.
    """
    if np.asarray(expected).dtype.kind in "iub" and not np.array_equal(actual, expected):
        return max(_float_error(actual, expected), sys.float_info.min)
    return _float_error(actual, expected)


def _float_error(actual: Any, expected: Any) -> float:
    one, other = (np.asarray(value).astype(np.float64) for value in (actual, expected))
    if one.shape != other.shape:
        return math.inf
    is_number = np.isfinite(other)
    if not np.array_equal(one[~is_number], other[~is_number], equal_nan=True):
        return math.inf
    if not is_number.any():
        return 0.0
    differences = np.abs(one[is_number] - other[is_number])
    if np.isnan(differences).any():
        return math.inf
    return float(differences.max() / max(np.abs(other[is_number]).max(), 1.0))


def samples_of(launches: "Iterable[LaunchSample]") -> tuple[KernelSample, ...]:
    """Adds up sampled launches: one ``KernelSample`` per kernel and reference, in order of first launches.

    A sample has the worst comparison of its launches: a comparison that fails is worse than one that passes;
    of several that fail, or pass, the one with the largest error is the worst.
    """
    samples: dict[tuple[str, str], KernelSample] = {}
    for launch in launches:
        known = samples.get((launch.kernel, launch.reference), KernelSample(launch.kernel, 0, 0, 0))
        comparisons = [
            _comparison(launch.kernel, elements) for elements in launch.compared if elements.actual.size
        ]
        if known.comparison is not None:
            comparisons.insert(0, known.comparison)
        samples[launch.kernel, launch.reference] = KernelSample(
            launch.kernel,
            launches=known.launches + 1,
            blocks=known.blocks + launch.blocks,
            simulated=known.simulated + launch.simulated,
            elements=known.elements + sum(elements.actual.size for elements in launch.compared),
            reference=launch.reference,
            finished=known.finished + launch.finished,
            comparison=max(
                comparisons,
                key=lambda comparison: (not comparison.is_equal, comparison.max_error),
                default=None,
            ),
        )
    return tuple(samples.values())


def _comparison(kernel: str, compared: "ComparedElements") -> Comparison:
    is_float = compared.element in (*FLOATS, "tf32")
    allowed = tolerance(compared.element, compared.terms) if is_float else 0.0
    actual = np.ravel(compared.actual)
    expected = np.ravel(compared.expected)
    return Comparison(kernel, max_error(actual, expected), allowed, is_blind(expected, allowed))
