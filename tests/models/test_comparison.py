"""Comparison of results with a reference: differences, kernels, and PTX against interpreted IR."""

import math
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.default_suite import ALL
from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.device_programs import BufferType, DeviceProgram, ScalarType
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.run.device_function import DeviceFunction
from tuner.gpu.run.sampled_launches import ComparedElements, LaunchSample
from tuner.models.comparison import compare, compare_printed, max_error, outputs, samples_of, tolerance
from tuner.models.execution import copies
from tuner.models.report import KernelSample
from tuner.models.run.host_function import HostFunction

F32 = BufferType("f32", (2, 3))
PRINTING = DeviceProgram("", "main", (), (), ())
ONES = np.ones(8, np.float32)
SIMULATOR = TargetName.parse("simulator:sm_90")


def program(results: tuple[Any, ...] = (F32,), written: tuple[bool, ...] = (False, True)) -> DeviceProgram:
    return DeviceProgram("", "f", (BufferType("f32", (2, 100)), BufferType("i32", (2,))), results, written)


def array(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def test_the_tolerance_is_that_of_the_mode_in_which_f32_was_multiplied() -> None:
    of_mode = {}
    for dtype in ("f32", "tf32x3", "bf16x6", "tf32"):
        result, _ = compare(program(), (ONES, array()), (ONES, array()), frozenset({dtype}))
        of_mode[dtype] = result.tolerance
    assert of_mode["f32"] == of_mode["tf32x3"] == of_mode["bf16x6"] == tolerance("f32", 100)
    assert of_mode["tf32"] == tolerance("tf32", 100) == of_mode["f32"] * 2**13


def test_rounding_is_no_difference_and_results_come_before_arguments() -> None:
    expected = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    wrong = expected.copy()
    wrong[1, 1] += 1e-3
    near = expected * np.float32(1 + 2**-23)
    whole = np.arange(2, dtype=np.int32)
    right, unchanged = compare(program(), (near, whole), (expected, whole))
    assert (right.is_equal, right.name) == (True, "result 0")
    assert (unchanged.is_equal, unchanged.name) == (True, "argument 1")
    assert not compare(program(), (wrong, whole), (expected, whole))[0].is_equal
    result = np.zeros((2, 3), np.float32)
    _, argument = compare(program(), (result, np.array([1, 2])), (result, np.array([1, 3])))
    assert (argument.tolerance, argument.is_equal) == (0.0, False)
    large = np.array([2**60], np.int64)  # no float is as exact
    assert 0 < max_error(large + 1, large) < 1e-9
    first, second = array(1), array(2)
    assert outputs(program(), "result", (first, second)) == ("result", second)
    assert outputs(program((F32, ScalarType("f32"))), (1, 2), (first, second)) == (1, 2, second)
    assert outputs(program((), (False, False)), None, (first, second)) == ()
    (sample,) = samples_of([launch(ONES), launch(ONES + np.float32(1e-6)), launch(ONES)])
    counts = (sample.launches, sample.blocks, sample.simulated, sample.elements)
    assert (counts, sample.is_right) == ((3, 300, 12, 24), True)
    assert sample.comparison is not None
    assert sample.comparison.max_error == pytest.approx(1e-6, rel=0.1)
    (sample,) = samples_of([launch(np.where(np.arange(8) == 3, np.nan, ONES)), launch(2 * ONES)])
    assert sample.comparison is not None
    assert sample.comparison.max_error == math.inf


@pytest.mark.parametrize("scale", [1e-8, 1.0])
def test_what_zeros_are_within_as_well_is_reported_and_is_not_equal(scale: float) -> None:
    kind, terms = ("bf16", 5000) if scale == 1 else ("f32", 100)
    code = DeviceProgram("", "f", (BufferType(kind, (2, terms)),), (F32,), (False,))
    expected = scale * np.ones((2, 3), np.float32)
    (same,), (zeros,) = (compare(code, (found,), (expected,)) for found in (expected, 0 * expected))
    assert same.is_equal
    assert (zeros.is_equal, zeros.verdict) == (False, "unclear")


def test_zeros_are_equal_to_rounding_whose_size_the_coarsest_type_decides() -> None:
    result, _ = compare(program(), (np.full((2, 3), 1e-8, np.float32), array()), (np.zeros((2, 3)), array()))
    assert result.is_equal
    zeros = np.zeros((2, 3), np.float32)
    kinds = (BufferType(each, (2, 100)) for each in ("f16", "f32"))
    codes = (DeviceProgram("", "f", (kind,), (F32,), (False,)) for kind in kinds)
    (coarse,), (fine,) = (compare(each, (zeros,), (zeros,)) for each in codes)
    assert coarse.tolerance == tolerance("f16", 100) > fine.tolerance == tolerance("f32", 100)
    assert tolerance("f32", 10_000) > tolerance("f32", 100) > tolerance("f64", 100)


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("found", "expected", "error"),
    [
        (array(1, 2), array(1, 2), 0.0),
        (array(1, 3), array(1, 2), 0.5),
        (array(0.25), array(0.5), 0.25),  # of 1 at least: small numbers are not rounding's yardstick
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
def test_addresses_times_and_the_order_of_threads_are_not_compared(
    llvm: str, found: str, expected: str, verdicts: list[str]
) -> None:
    compared = compare_printed(replace(PRINTING, llvm=llvm), found, expected)
    assert [one.verdict for one in compared] == verdicts


def launch(found: object, expected: object = ONES, element: str = "f32", kernel: str = "k") -> LaunchSample:
    compared = ComparedElements(element, 16, np.asarray(found), np.asarray(expected))
    return LaunchSample(kernel, 100, 4, "the interpreter", 100, (compared,))


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


def test_a_launch_that_ran_whole_has_nothing_to_compare_and_blocks_left_out_are_counted() -> None:
    (sample,) = samples_of([LaunchSample("k", 7, 7)])
    assert sample == KernelSample("k", 1, 7, 7)
    assert sample.is_right
    launches = [LaunchSample("k", 70, 7, "the interpreter", finished) for finished in (70, 30)]
    (sample,) = samples_of(launches)
    assert (sample.blocks, sample.finished) == (140, 100)


@dataclass(frozen=True)
class SharedProgram:
    """A program of arrays, the last of which is written; threads wait for one another, and share memory."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    expected: Callable[..., Any]  # of the arrays before: the last of them after
    dtype: Any = np.float32  # of the last array

    @property
    def text(self) -> str:
        return re.sub(r"^// change: .*\n", "", text_beside(__file__, self.name), flags=re.MULTILINE)

    @property
    def mutations(self) -> list[tuple[str, str]]:
        """Returns (text, what stands there instead) that change what the program computes."""
        return re.findall(r"^// change: (.*) => (.*)$", text_beside(__file__, self.name), re.MULTILINE)

    def arguments(self) -> tuple[Any, ...]:
        rng = np.random.default_rng(0)
        *first, last = (rng.integers(1, 8, shape).astype(np.float32) for shape in self.shapes)
        return (*first, last.astype(self.dtype))


def reductions(a: Any) -> Any:
    """Row n: n times its largest number is added to all its numbers; from row 2 on, the sum of all."""
    rows = []
    for number, row in enumerate(a):
        for _ in range(number):
            row = row + row.max()
        rows.append(np.broadcast_to(row.sum(), row.shape) if number >= 2 else row)
    return np.stack(rows)


def shuffled(a: Any) -> Any:
    before = np.roll(a, 1, 1)
    before[:, ::32] = 0
    return a.reshape(2, 2, 32).sum(-1).repeat(32, 1) - before


def counted(a: Any) -> Any:
    return np.stack([np.bincount(row.astype(int), minlength=8) for row in a])


PROGRAMS = (
    SharedProgram("MATMUL", ((32, 48), (48, 32), (32, 32)), lambda a, b, _: a @ b),  # with two tiles
    SharedProgram("TRANSPOSE", ((64, 32), (32, 64)), lambda a, _: a.T),  # with a padded tile
    SharedProgram("TREE", ((8, 64), (8,)), lambda a, _: a.sum(1)),  # sums of rows
    SharedProgram("REDUCTIONS", ((4, 33), (4, 33)), lambda a, _: reductions(a)),  # in a loop and a branch
    SharedProgram("SHUFFLES", ((2, 64), (2, 64)), lambda a, _: shuffled(a)),
    SharedProgram("HISTOGRAM", ((4, 64), (4, 8)), lambda a, _: counted(a), np.int32),  # by atomic updates
)
MUTATIONS = {f"{each.name}, {change[1]}": (each, change) for each in PROGRAMS for change in each.mutations}


def interpreted(text: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    code = compiler_of(TargetName("cpu")).compile(text, None, None).code
    assert code.interpreted
    own = copies(arguments)
    return outputs(code, HostFunction(code)(*own), own)


@cache
def right(program: SharedProgram) -> tuple[Any, ...]:
    return interpreted(program.text, program.arguments())


def simulated(text: str, arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    code, own = compiler_of(SIMULATOR).compile(text, None, None).code, copies(arguments)
    device = SimulatedDevice("sm_90")  # may report: a changed program has races
    with closing(DeviceFunction(code, device)) as program:
        return code, outputs(code, program(*own), own)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_interpretation_gives_what_numpy_gives_and_so_does_the_simulator(program: SharedProgram) -> None:
    arguments = program.arguments()
    (on_host,) = right(program)
    np.testing.assert_array_equal(on_host, program.expected(*arguments))
    code, found = simulated(program.text, arguments)
    assert [one.verdict for one in compare(code, found, (on_host,))] == ["equal"]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("program", "change"), MUTATIONS.values(), ids=MUTATIONS)
def test_a_wrong_index_or_operation_is_noticed(program: SharedProgram, change: tuple[str, str]) -> None:
    """On the device a changed program gives other numbers than the right one, its interpretation too."""
    assert program.text.count(change[0]) == 1
    arguments, text = program.arguments(), program.text.replace(*change)
    code, found = simulated(text, arguments)
    assert [one.verdict for one in compare(code, found, right(program))] == ["WRONG"]
    assert [one.verdict for one in compare(code, found, interpreted(text, arguments))] == ["equal"]
