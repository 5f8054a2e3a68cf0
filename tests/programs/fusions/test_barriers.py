"""Threads wait before a fusion that needs what another thread does, and before no other."""

import pytest

from tests.programs.fusions.group_texts import flat, fusion
from tuner.core.fusions import Fusion, FusionCode, TensorType, View
from tuner.programs.fusions.linking import waits

ALL, FIRST = True, False  # who runs a fusion
SLOT = 7


def found(*steps: tuple[bool, list[tuple[int, int]], tuple[int, int]]) -> tuple[bool, ...]:
    """Returns before which steps threads wait; a step has who runs it, and ranges of f32 in and out."""
    fusions: list[Fusion] = []
    codes, places = [], []
    for is_divided, reads, write in steps:
        views = [flat(0, stop - start) for start, stop in (*reads, write)]
        fusions.append(fusion(tuple(views[:-1]), views[-1], "arith.addf"))
        codes.append(FusionCode("", (None,) * len(reads), is_divided))
        places.append([(SLOT, 4 * start) for start, _ in (*reads, write)])
    return waits(fusions, codes, places)


A, B, C = (0, 16), (16, 32), (32, 48)


def test_a_reader_waits_for_the_writer() -> None:
    assert found((ALL, [A], B), (ALL, [B], C)) == (False, True)
    assert found((ALL, [A], B), (FIRST, [B], C)) == (False, True)
    assert found((FIRST, [A], B), (ALL, [B], C)) == (False, True)


def test_fusions_of_the_first_thread_need_no_barrier_between_them() -> None:
    assert found((FIRST, [A], B), (FIRST, [B], C), (FIRST, [C], A)) == (False, False, False)


def test_fusions_that_touch_other_memory_or_only_read_the_same_run_without_waiting() -> None:
    assert found((ALL, [A], B), (ALL, [A], C)) == (False, False)


def test_memory_that_is_used_again_is_waited_for() -> None:
    """A fusion writes where an earlier one reads: the memory plan gives memory of dead buffers away."""
    assert found((ALL, [A], B), (ALL, [C], A)) == (False, True)
    assert found((ALL, [A], B), (ALL, [C], (24, 40))) == (False, True)
    assert found((FIRST, [A], B), (ALL, [C], B)) == (False, True)


def test_one_barrier_is_enough_for_all_fusions_before_it() -> None:
    steps = [(ALL, [A], B), (ALL, [A], C), (ALL, [B], A), (ALL, [C], B)]
    assert found(*steps) == (False, False, True, True)
    assert found((ALL, [A], B), (ALL, [B], C), (ALL, [B], A)) == (False, True, False)


@pytest.mark.parametrize("is_near", [True, False])
def test_strided_views_are_taken_as_all_bytes_from_the_first_to_the_last(is_near: bool) -> None:
    column = View(0, 0, TensorType((4, 1), "f32"), (8, 1))  # 25 elements from the first to the last
    fusions = [fusion((flat(0, 4),), column, "arith.addf"), fusion((flat(0, 4),), flat(0, 4), "arith.addf")]
    codes = [FusionCode("", (None,), ALL)] * 2
    start = 4 * (24 if is_near else 25)
    assert waits(fusions, codes, [[(1, 0), (2, 0)], [(2, start), (3, 0)]]) == (False, is_near)
