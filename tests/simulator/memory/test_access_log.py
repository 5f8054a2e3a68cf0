"""What lanes ask memory for, by a kernel that copies a transposed tile through shared memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.texts import text_beside
from tuner.core.errors import UsageError
from tuner.simulator.launch import kernel_of, prepare
from tuner.simulator.memory.access_log import SAMPLES, Access, wavefronts
from tuner.simulator.ptx.parser import parse

TURNS = 40
PTX = text_beside(__file__, "PTX")


def accesses(instructions: int = 4000, threads: int = 32) -> tuple[Access, ...]:
    module = parse(PTX)
    kernel = prepare(module, kernel_of(module, "k"))
    return kernel.accesses((1, 1, 1), (threads, 1, 1), (np.zeros(64, np.uint32),), instructions=instructions)


def test_words_of_lanes_are_kept_for_the_first_accesses_of_each_instruction() -> None:
    found = accesses()
    load, store = found[0], found[-1]
    assert len(found) == 2 * SAMPLES
    assert (load.opcode, load.width) == ("ld.global.v2.b32", 2)
    assert np.diff(load.words).tolist() == [2] * 31
    assert (store.opcode, store.width) == ("st.shared.b32", 1)
    assert np.diff(store.words).tolist() == [32] * 31


def test_lanes_that_do_not_run_ask_for_what_the_first_asks_for() -> None:
    words = accesses(threads=4)[0].words
    assert words[4:] == (words[0],) * 28


def test_it_ends_after_some_instructions() -> None:
    assert len(accesses(instructions=20)) == 2 * 3  # eight before the loop, five in each turn


def test_a_launch_that_does_not_fit_is_refused() -> None:
    module = parse(PTX)
    with pytest.raises(UsageError, match="argument"):
        prepare(module, kernel_of(module, "k")).accesses((1, 1, 1), (32, 1, 1), ())


LANES = np.arange(32)


@pytest.mark.parametrize(
    ("stride", "expected"), [(4, 1), (0, 1), (8, 2), (12, 1), (16, 4), (128, 32), (132, 1), (64, 16), (2, 1)]
)
def test_words_of_one_bank_are_served_one_after_the_other(stride: int, expected: int) -> None:
    assert wavefronts(LANES, LANES * stride, 4) == (expected, 1)


@pytest.mark.parametrize(
    ("size", "stride", "expected"),
    [
        (8, 8, (2, 2)),
        (16, 16, (4, 4)),
        (16, 32, (8, 4)),
        (16, 128, (32, 4)),
        (16, 144, (4, 4)),
        (8, 16, (4, 2)),
    ],
)
def test_wide_accesses_are_served_by_parts_of_a_warp(
    size: int, stride: int, expected: tuple[int, int]
) -> None:
    assert wavefronts(LANES, LANES * stride, size) == expected


def test_narrow_accesses_share_words() -> None:
    assert wavefronts(LANES, LANES, 1) == (1, 1)
    assert wavefronts(LANES, LANES * 2, 2) == (1, 1)


def test_the_swizzled_rows_of_ldmatrix_are_free_of_conflicts() -> None:
    rows = np.arange(8)
    assert wavefronts(rows, rows * 128, 16) == (8, 1)
    assert wavefronts(rows, rows * 128 + (rows ^ 3) * 16, 16) == (1, 1)


@settings(max_examples=30)
@given(
    words=st.lists(st.integers(0, 200), min_size=64, max_size=64),
    active=st.lists(st.booleans(), min_size=64, max_size=64).filter(any),
)
def test_any_pattern_of_two_warps(words: list[int], active: list[bool]) -> None:
    lanes = np.flatnonzero(active)
    real = ideal = 0
    for warp in (0, 1):
        here = {words[lane] for lane in lanes.tolist() if lane // 32 == warp}
        real += max((sum(word % 32 == bank for word in here) for bank in range(32)), default=0)
        ideal += bool(here)
    assert wavefronts(lanes, np.array(words)[lanes] * 4, 4) == (real, ideal)
