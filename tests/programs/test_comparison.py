import math
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tuner.core.gpu_code import BufferType, DeviceProgram, ScalarType
from tuner.programs.comparison import compare, compare_printed, max_error, outputs, samples_of, tolerance
from tuner.programs.request import KernelSample
from tuner.programs.run.sampled_launches import ComparedElements, LaunchSample

F32 = BufferType("f32", (2, 3))


def program(results: tuple[Any, ...] = (F32,), written: tuple[bool, ...] = (False, True)) -> DeviceProgram:
    return DeviceProgram("", "f", (BufferType("f32", (2, 100)), BufferType("i32", (2,))), results, written)


def array(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def test_results_come_before_arguments_that_may_be_written() -> None:
    first, second = array(1), array(2)
    assert outputs(program(), "result", (first, second)) == ("result", second)
    assert outputs(program((F32, ScalarType("f32"))), (1, 2), (first, second)) == (1, 2, second)
    assert outputs(program((), (False, False)), None, (first, second)) == ()


def test_rounding_is_no_difference_and_a_wrong_element_is_one() -> None:
    expected = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    wrong = expected.copy()
    wrong[1, 1] += 1e-3
    near = expected * np.float32(1 + 2**-23)
    whole = np.arange(2, dtype=np.int32)
    right, unchanged = compare(program(), (near, whole), (expected, whole))
    assert right.is_equal
    assert unchanged.is_equal
    assert (right.name, unchanged.name) == ("result 0", "argument 1")
    assert not compare(program(), (wrong, whole), (expected, whole))[0].is_equal


def test_whole_numbers_must_be_the_same() -> None:
    result = np.zeros((2, 3), np.float32)
    _, argument = compare(program(), (result, np.array([1, 2])), (result, np.array([1, 3])))
    assert (argument.tolerance, argument.is_equal) == (0.0, False)
    large = np.array([2**60], np.int64)  # no float is as exact
    assert 0 < max_error(large + 1, large) < 1e-9


@pytest.mark.parametrize("scale", [1e-8, 1.0])
def test_what_zeros_are_within_as_well_is_reported_and_is_not_equal(scale: float) -> None:
    kind, terms = ("bf16", 5000) if scale == 1 else ("f32", 100)
    code = DeviceProgram("", "f", (BufferType(kind, (2, terms)),), (F32,), (False,))
    expected = scale * np.ones((2, 3), np.float32)
    (same,), (zeros,) = (compare(code, (found,), (expected,)) for found in (expected, 0 * expected))
    assert same.is_equal
    assert (zeros.is_equal, zeros.verdict) == (False, "unclear")


def test_zeros_are_equal_to_rounding_around_zero() -> None:
    result, _ = compare(program(), (np.full((2, 3), 1e-8, np.float32), array()), (np.zeros((2, 3)), array()))
    assert result.is_equal


def test_the_coarsest_type_decides_what_rounding_may_do() -> None:
    result = np.zeros((2, 3), np.float32)
    codes = (
        DeviceProgram("", "f", (BufferType(each, (2, 100)),), (F32,), (False,)) for each in ("f16", "f32")
    )
    (coarse,), (fine,) = (compare(each, (result,), (result,)) for each in codes)
    assert coarse.tolerance == tolerance("f16", 100) > fine.tolerance == tolerance("f32", 100)
    assert tolerance("f32", 10_000) > tolerance("f32", 100) > tolerance("f64", 100)


@pytest.mark.parametrize(
    ("found", "expected", "error"),
    [
        (array(1, 2), array(1, 2), 0.0),
        (array(1, 3), array(1, 2), 0.5),
        (array(0.25), array(0.5), 0.25),  # of 1 at least: small numbers are no rounding's yardstick
        (array(math.nan), array(1), math.inf),
        (array(1), array(math.nan), math.inf),
        (array(math.nan), array(math.nan), 0.0),
        (array(math.inf), array(math.inf), 0.0),
        (array(-math.inf), array(math.inf), math.inf),
        (array(1), array(1, 2), math.inf),
        (array(), array(), 0.0),
        (np.array([1, 2], ml_dtypes.bfloat16), np.array([1, 3], ml_dtypes.bfloat16), 1 / 3),
        (np.array([2**60], np.int64), np.array([2**60], np.int64), 0.0),
    ],
)  # fmt: skip
def test_the_largest_difference_is_reported(found: Any, expected: Any, error: float) -> None:
    assert max_error(found, expected) == error


PRINTING = DeviceProgram("", "main", (), (), ())


@pytest.mark.parametrize(
    ("llvm", "found", "expected", "verdicts"),
    [
        ("", "", "", []),
        ("", "base@ = 0x10 rank = 1\n[1, 2]\n", "base@ = 0x7f rank = 1\n[1, 2]\n", ["equal"]),
        ("", "[1, 2]\n", "[1, 3]\n", ["WRONG"]),
        ("", "1\n2\n", "2\n1\n", ["WRONG"]),
        ("call vprintf", "1\n2\n", "2\n1\n", ["equal"]),
        ("call vprintf", "1\n2\n", "2\n2\n", ["WRONG"]),
        ("llvm.func @rtclock()", "0.1 s\n", "0.2 s\n", []),
        ("", "[1]\n", "", ["WRONG"]),
    ],
)
def test_what_was_printed_is_the_same_but_for_addresses_times_and_the_order_of_threads(
    llvm: str, found: str, expected: str, verdicts: list[str]
) -> None:
    compared = compare_printed(replace(PRINTING, llvm=llvm), found, expected)
    assert [one.verdict for one in compared] == verdicts


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


@pytest.mark.parametrize(
    ("launches", "is_right"),
    [
        ([launch(ONES), launch(2 * ONES), launch(ONES)], False),  # one wrong launch
        ([launch(ONES + np.float32(2e-3), element="tf32")], True),  # products of rounded factors
        ([launch(ONES * 1.1, element="tf32")], False),
        ([launch(np.arange(8), np.arange(8)[::-1], element="i32")], False),  # whole numbers
        ([LaunchSample("k", 70, 7, "the interpreter")], False),  # blocks that wrote nothing
    ],
)
def test_a_kernel_is_right_where_all_its_launches_are(launches: list[LaunchSample], is_right: bool) -> None:
    (sample,) = samples_of(launches)
    assert sample.is_right is is_right
    assert (sample.comparison is None) == (launches[0].compared == ())


def test_a_launch_that_ran_whole_has_nothing_to_compare() -> None:
    (sample,) = samples_of([LaunchSample("k", 7, 7)])
    assert sample == KernelSample("k", 1, 7, 7)
    assert sample.is_right


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
