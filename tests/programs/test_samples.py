import math

import numpy as np
import pytest

from tuner.programs.comparison import samples_of
from tuner.programs.request import KernelSample

pytest.importorskip("tuner.mlir.bindings")

from tuner.programs.run.sampled_launches import ComparedElements, LaunchSample

ONES = np.ones(8, np.float32)


def launch(found: object, expected: object = ONES, element: str = "f32", kernel: str = "k") -> LaunchSample:
    compared = ComparedElements(element, 16, np.asarray(found), np.asarray(expected))
    return LaunchSample(kernel, 100, 4, "the interpreter", 100, (compared,))


def test_launches_of_one_kernel_are_reported_together_with_the_worst_of_them() -> None:
    (sample,) = samples_of([launch(ONES), launch(ONES + np.float32(1e-6)), launch(ONES)])
    assert (sample.launches, sample.blocks, sample.simulated, sample.elements) == (3, 300, 12, 24)
    assert sample.comparison is not None
    assert sample.comparison.max_error == pytest.approx(1e-6, rel=0.1)
    assert sample.is_right


def test_one_wrong_launch_makes_the_kernel_wrong() -> None:
    (sample,) = samples_of([launch(ONES), launch(2 * ONES), launch(ONES)])
    assert not sample.is_right


@pytest.mark.parametrize(("found", "is_right"), [(ONES + np.float32(2e-3), True), (ONES * 1.1, False)])
def test_products_of_rounded_factors_have_a_wider_tolerance(found: object, is_right: bool) -> None:
    (sample,) = samples_of([launch(found, element="tf32")])
    assert sample.is_right is is_right


def test_whole_numbers_must_be_the_same() -> None:
    (sample,) = samples_of([launch(np.arange(8), np.arange(8)[::-1], element="i32")])
    assert not sample.is_right


def test_a_launch_that_ran_whole_has_nothing_to_compare() -> None:
    (sample,) = samples_of([LaunchSample("k", 7, 7)])
    assert sample == KernelSample("k", 1, 7, 7)
    assert sample.is_right


def test_blocks_that_wrote_nothing_are_not_right() -> None:
    (sample,) = samples_of([LaunchSample("k", 70, 7, "the interpreter")])
    assert sample.comparison is None
    assert not sample.is_right


def test_a_number_that_is_missing_is_the_worst() -> None:
    found = ONES.copy()
    found[3] = np.nan
    (sample,) = samples_of([launch(found), launch(2 * ONES)])
    assert sample.comparison is not None
    assert sample.comparison.max_error == math.inf


def test_blocks_that_a_reference_left_out_are_counted() -> None:
    launches = [LaunchSample("k", 70, 7, "the interpreter", finished) for finished in (70, 30)]
    (sample,) = samples_of(launches)
    assert (sample.blocks, sample.finished) == (140, 100)
