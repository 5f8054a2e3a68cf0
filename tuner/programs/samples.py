"""Aggregates the samples of launches per kernel."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tuner.programs.comparison import FLOATS, is_blind, max_error, tolerance
from tuner.programs.request import Comparison, KernelSample

if TYPE_CHECKING:
    from tuner.programs.run.sampled.references import ComparedElements
    from tuner.programs.run.sampled.sampled_launches import LaunchSample

AS_COARSE = {"tf32": "f16"}  # both have 10 bits of mantissa


def samples_of(launches: "Iterable[LaunchSample]") -> tuple[KernelSample, ...]:
    """Sums up sampled launches per kernel and reference, in the order of their first launches.

    Each result has the total blocks and elements, and the worst comparison: one that is not equal before one
    that is, then the largest error.
    """
    found: dict[tuple[str, str], KernelSample] = {}
    for launch in launches:
        one = _of_launch(launch)
        key = (one.kernel, one.reference)
        found[key] = _added(found[key], one) if key in found else one
    return tuple(found.values())


def _of_launch(launch: "LaunchSample") -> KernelSample:
    comparisons = [_comparison(launch.kernel, each) for each in launch.compared if each.found.size]
    elements = sum(each.found.size for each in launch.compared)
    share = (1, launch.blocks, launch.simulated, elements)
    return KernelSample(launch.kernel, *share, launch.reference, launch.finished, _worst(comparisons))


def _added(one: KernelSample, other: KernelSample) -> KernelSample:
    comparisons = [each.comparison for each in (one, other) if each.comparison is not None]
    return replace(
        one,
        launches=one.launches + other.launches,
        blocks=one.blocks + other.blocks,
        simulated=one.simulated + other.simulated,
        elements=one.elements + other.elements,
        finished=one.finished + other.finished,
        comparison=_worst(comparisons),
    )


def _comparison(kernel: str, compared: "ComparedElements") -> Comparison:
    element = AS_COARSE.get(compared.element, compared.element)
    allowed = tolerance(element, compared.terms) if element in FLOATS else 0.0
    found, expected = np.ravel(compared.found), np.ravel(compared.expected)
    return Comparison(kernel, max_error(found, expected), allowed, is_blind(expected, allowed))


def _worst(comparisons: list[Comparison]) -> Comparison | None:
    return max(comparisons, key=lambda each: (not each.is_equal, each.max_error), default=None)
