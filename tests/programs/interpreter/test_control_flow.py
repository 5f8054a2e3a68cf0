"""Branches, loops and calls in which lanes go different ways, as in Python lane by lane; parameters."""

import struct
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.programs.interpreter.lane_kernels import applied, kernel_of, launch, module_text
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.programs.interpreter.kernels import LaneLaunch

pytestmark = pytest.mark.mlir
CONSTANTS = "\n".join(f"%c{n} = arith.constant {n} : i64" for n in range(8))
NUMBERS = np.array([1, 2, 3, 6, 7, 9, 27, 97, 5, 16], np.int64)
FOR = text_beside(__file__, "FOR")
SMALL = st.lists(st.integers(-20, 20), min_size=12, max_size=12)
STEPS = st.lists(st.integers(1, 7), min_size=12, max_size=12)


def collatz(number: int) -> int:
    steps = 0
    while number != 1:
        number = 3 * number + 1 if number % 2 else number // 2
        steps += 1
    return steps


LOOPS = {"WHILE": collatz, "GRAPH": collatz, "SQUARES": lambda x: (x - 1) ** 2}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_and_a_graph_of_blocks_end_in_each_lane_and_what_it_has_computed_stays(name: str) -> None:
    lines = f"{CONSTANTS}\n{text_beside(__file__, name)}"
    assert applied(lines, np.int64, NUMBERS).tolist() == [LOOPS[name](int(x)) for x in NUMBERS]


def test_lanes_that_return_early_take_no_part_in_what_follows() -> None:
    found = np.zeros(8, np.int64)
    launch(text_beside(__file__, "EARLY_RETURN"), found, block=(8, 1, 1))
    assert found.tolist() == [4, 4, 4, 4, 0, 0, 0, 0]


@hypothesis.given(SMALL, SMALL, STEPS)
@hypothesis.settings(max_examples=20, deadline=None)
def test_each_lane_counts_by_its_own_bounds(low: list[int], high: list[int], by: list[int]) -> None:
    found = applied(f"{CONSTANTS}\n{FOR}", np.int64, *(np.array(each) for each in (low, high, by)))
    spans = zip(low, high, by, strict=True)
    assert found.tolist() == [sum(i * i for i in range(*span)) for span in spans]


def test_a_step_below_one_is_a_fault() -> None:
    numbers = [np.array(each) for each in ([0, 0], [4, 4], [1, 0])]
    message = r"scf\.for at .*: found step 0, allowed above 0, in .*thread \(1,"
    with pytest.raises(CandidateError, match=message) as caught:
        applied(f"{CONSTANTS}\n{FOR}", np.int64, *numbers)
    assert caught.value.stage is Stage.RUN


def test_unsigned_bounds_are_compared_as_such() -> None:
    lines = text_beside(__file__, "UNSIGNED")
    found = applied(lines, np.int8, np.array([0, 5, -56], np.int8))
    assert found.tolist() == [0, 5, -56]


@pytest.mark.parametrize("name", ["SWITCH", "JUMPS"])
def test_a_switch_takes_the_case_of_each_lane(name: str) -> None:
    found = applied(f"{CONSTANTS}\n{text_beside(__file__, name)}", np.int64, np.array([2, 7, 3, 2, -7]))
    assert found.tolist() == [1, 14, 5, 1, 5]


def test_a_function_next_to_the_kernel_is_called_by_the_lanes_that_get_there() -> None:
    surrounding = text_beside(__file__, "FUNCTIONS")
    found = np.array([-1.0, 2.0, 3.0, -4.0], np.float32)
    launch(text_beside(__file__, "CALL"), found, block=(4, 1, 1), surrounding=surrounding)
    assert found.tolist() == [0, 4, 6, 0]


RECURSIVE = "func.func @f(%x: i32) -> i32 { %y = func.call @f(%x) : (i32) -> i32 return %y : i32 }"


@pytest.mark.parametrize(
    ("surrounding", "message"),
    [
        ("func.func private @f(i32) -> i32", r"func\.call at .*: found @f, which has no body"),
        (RECURSIVE, r"func\.call at .*: found @f, which calls itself"),
    ],
)
def test_a_call_that_leads_nowhere_is_refused(surrounding: str, message: str) -> None:
    body = "%z = arith.constant 0 : i32 %r = func.call @f(%z) : (i32) -> i32"
    with pytest.raises(CandidateError, match=message) as caught:
        launch(body, surrounding=surrounding)
    assert caught.value.stage is Stage.COMPILE


def test_a_nest_of_parallel_loops_runs_in_each_lane() -> None:
    found = np.zeros((3, 4), np.int64)
    launch(text_beside(__file__, "NEST"), found, block=(1, 1, 1))
    np.testing.assert_array_equal(found, np.arange(3)[:, None] * np.arange(4))


def test_an_assertion_names_the_lane_that_fails() -> None:
    bound = "%t = gpu.thread_id x %c3 = arith.constant 3 : index %p = arith.cmpi ult, %t, %c3 : index"
    message = r"cf\.assert at .*found false, 'too far', in .*thread \(3, 0, 0\)"
    with pytest.raises(CandidateError, match=message):
        launch(f'{bound} cf.assert %p, "too far"')


SCALE = """%t = gpu.thread_id x %x = memref.load %0[%t] : KIND
  %y = arith.mulf %x, %1 : f32 memref.store %y, %0[%t] : KIND"""


def kernel(kind: str = "memref<4xf32>") -> Any:
    return kernel_of(module_text(SCALE.replace("KIND", kind), (kind, "f32")))


def options(*numbers: int) -> list[bytes]:
    return [struct.pack("<q", number) for number in numbers]


def launched(one: Any, contents: list[bytes]) -> None:
    one.launch_bytes(LaneLaunch((1, 1, 1), (4, 1, 1)), contents)


@pytest.mark.parametrize("is_bare", [True, False])
def test_a_memref_is_an_address_or_a_descriptor(is_bare: bool) -> None:
    a = np.arange(4, dtype=np.float32)
    address = a.ctypes.data
    memref = options(address) if is_bare else options(address, address, 0, 4, 1)
    launched(kernel(), [*memref, struct.pack("<f", 3.0)])
    assert a.tolist() == [0, 3, 6, 9]


def test_a_descriptor_reports_offset_and_strides() -> None:
    a = np.arange(9, dtype=np.float32)
    address = a.ctypes.data
    dynamic = kernel("memref<?xf32, strided<[?], offset: ?>>")
    launched(dynamic, [*options(address, address, 1, 4, 2), struct.pack("<f", 10.0)])
    assert a.tolist() == [0, 10, 2, 30, 4, 50, 6, 70, 8]
    assert dynamic.pointers([*options(address, address, 1, 4, 2), bytes(4)]) == [(address + 4, "f32")]


@pytest.mark.parametrize(
    ("size", "contents", "message"),
    [
        ("4", options(0, 0, 0), "found 3 parameters, allowed 6"),
        ("?", [*options(16), bytes(4)], "found an address alone, allowed a descriptor"),
        ("4", [*options(16), bytes(2)], "found 2 bytes, allowed 4"),
    ],
)
def test_what_does_not_fit_is_refused(size: str, contents: list[bytes], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        launched(kernel(f"memref<{size}xf32>"), contents)


def test_terms_of_a_sum_are_the_longest_dimension_that_is_known() -> None:
    assert (kernel("memref<40xf32>").terms, kernel("memref<?xf32>").terms) == (40, 1)
