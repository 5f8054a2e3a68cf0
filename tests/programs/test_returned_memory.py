"""Memory that programs return, free themselves, or leave to us: no leak, no double free, no wrong owner."""

from typing import Any

import numpy as np
import pytest

from tests.programs.payload_runs import BUFFER, A, B, ended, payload
from tests.texts import text_beside
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.deallocation")


@pytest.mark.parametrize(
    ("name", "place", "expected"),
    [
        ("memory_that_a_kernel_fills_is_returned", 0, 2 * A),
        ("memory_that_is_neither_freed_nor_returned_is_freed", 0, 4 * A),
        ("what_the_author_frees_is_freed_once_next_to_what_he_leaves", 1, 4 * A + 1),
        ("shared_memory_is_returned_after_a_wait", 0, 2 * (A + 1)),
        ("memory_of_asynchronous_work_is_freed_after_the_wait", 1, A + 1),
        ("memory_of_an_iteration_is_freed_in_it", 1, B + 6 * A),
    ],
)
def test_numbers_are_right_and_nothing_is_left(name: str, place: int, expected: Any) -> None:
    text = text_beside(__file__, name)
    found = ended(payload(text, results=BUFFER if "return" in text else ""), A, B)
    np.testing.assert_array_equal(found[place], expected)


@pytest.mark.parametrize(
    ("name", "flag", "expected"),
    [
        ("memory_of_either_branch_is_returned", True, 2 * A),
        ("memory_of_either_branch_is_returned", False, 2 * B),
        ("an_argument_or_own_memory_is_returned", True, 2 * A),
        ("an_argument_or_own_memory_is_returned", False, B),
    ],
)
def test_control_flow_decides_what_is_returned(name: str, flag: bool, expected: Any) -> None:
    text = payload(text_beside(__file__, name), arguments="%flag: i1", results=BUFFER)
    np.testing.assert_array_equal(ended(text, A, B, flag)[0], expected)


def test_the_same_memory_and_a_view_of_it_are_returned_once_each() -> None:
    part = "memref<8xf32, strided<[1], offset: 8>>"
    text = payload(
        text_beside(__file__, "the_same_memory_and_a_view_of_it_are_returned_once_each"),
        results=f"{BUFFER}, {part}, {BUFFER}",
    )
    whole, view, same = ended(text, A, B)[:3]
    np.testing.assert_array_equal(whole[8:], view)
    np.testing.assert_array_equal(same, A)


def test_memory_that_leaves_an_iteration_is_refused_by_name() -> None:
    text = payload(text_beside(__file__, "memory_that_leaves_an_iteration_is_refused_by_name"))
    found = "memref.alloc at .*: found memory that leaves scf.for and that nobody frees, allowed memory that"
    with pytest.raises(CandidateError, match=found):
        ended(text, A, B)
