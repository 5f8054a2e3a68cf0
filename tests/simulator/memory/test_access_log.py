"""What lanes ask memory for, and the ranges of bytes that a kernel touches of its buffers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.simulator.ptx.snippets import kernel
from tests.texts import text_beside
from tuner.core.errors import UsageError
from tuner.simulator.launch import kernel_of, prepare
from tuner.simulator.memory.access_log import SAMPLES, Access, wavefronts
from tuner.simulator.memory.global_memory import Pointer, runs
from tuner.simulator.ptx.defects import SimulationError
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


def test_lanes_that_do_not_run_ask_for_what_the_first_asks_for_and_it_ends_after_some_instructions() -> None:
    words = accesses(threads=4)[0].words
    assert words[4:] == (words[0],) * 28
    assert len(accesses(instructions=20)) == 2 * 3  # eight before the loop, five in each iteration


def test_a_launch_that_does_not_fit_is_refused() -> None:
    module = parse(PTX)
    with pytest.raises(UsageError, match="argument"):
        prepare(module, kernel_of(module, "k")).accesses((1, 1, 1), (32, 1, 1), ())


LANES = np.arange(32)


@pytest.mark.parametrize(
    ("size", "expected"),  # stride -> wavefronts that are needed, and that there would be without conflicts
    [
        (4, {n: (waves, 1) for n, waves in ((4, 1), (0, 1), (8, 2), (12, 1), (16, 4), (128, 32), (132, 1))}),
        (4, {64: (16, 1), 2: (1, 1)}),
        (8, {8: (2, 2), 16: (4, 2)}),  # wide accesses are served by parts of a warp
        (16, {16: (4, 4), 32: (8, 4), 128: (32, 4), 144: (4, 4)}),
        (1, {1: (1, 1)}),  # narrow ones share words
        (2, {2: (1, 1)}),
    ],
)
def test_words_of_one_bank_are_served_one_after_the_other(size: int, expected: dict[int, Any]) -> None:
    assert {stride: wavefronts(LANES, LANES * stride, size) for stride in expected} == expected


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


# What a kernel touches of its buffers, told as ranges of bytes; pointers into the middle of arrays.

# Thread t moves 4 bytes from x + 8 t to y + 4 t.
GATHER = kernel(
    """ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; mul.wide.u32 %rd3, %t, 8; add.s64 %rd1, %rd1, %rd3;
    mul.wide.u32 %rd3, %t, 4; add.s64 %rd2, %rd2, %rd3; ld.LOAD.f32 %r2, [%rd1];
    st.global.f32 [%rd2], %r2;""",
    [".param .u64 x", ".param .u64 y"],
    ".reg .b32 %t, %r<3>; .reg .b64 %rd<4>;",
    "mov.u32 %t, %tid.x;",
)


def gather(
    x: Pointer, y: Pointer, load: str = "global"
) -> dict[int, tuple[list[list[int]], list[list[int]]]]:
    module = parse(GATHER.replace("LOAD", load))
    simulation = prepare(module, module.kernels[0]).run((1, 1, 1), (4, 1, 1), (x, y))
    return {one.address: (one.reads.tolist(), one.writes.tolist()) for one in simulation.touched}


@pytest.mark.parametrize("load", ["global", "volatile.global"])
def test_ranges_are_what_the_threads_touched(load: str) -> None:
    x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    found = gather(Pointer("x", x, 16), Pointer("y", y, 32), load)
    assert y.tolist() == [0] * 8 + [4, 6, 8, 10] + [0] * 4
    assert found[x.ctypes.data] == ([[16, 20], [24, 28], [32, 36], [40, 44]], [])
    assert found[y.ctypes.data] == ([], [[32, 48]])


def test_pointers_into_one_array_are_one_buffer_and_what_is_read_and_then_written_counts_as_both() -> None:
    array = np.arange(16, dtype=np.float32)
    found = gather(Pointer("x", array, 32), Pointer("x", array, 0))
    assert array[:4].tolist() == [8, 10, 12, 14]
    assert found == {array.ctypes.data: ([[32, 36], [40, 44], [48, 52], [56, 60]], [[0, 16]])}
    found = gather(Pointer("x", array, 0), Pointer("x", array, 0))
    assert found[array.ctypes.data] == ([[0, 4], [8, 12], [16, 20], [24, 28]], [[0, 16]])


def test_a_pointer_does_not_lead_out_of_its_array() -> None:
    x, y = np.arange(16, dtype=np.float32), np.zeros(3, np.float32)
    with pytest.raises(SimulationError, match="4 bytes at byte 12 of y, which has 12"):
        gather(Pointer("x", x, 0), Pointer("y", y, 0))


@given(hnp.arrays(bool, st.integers(0, 40)))
def test_runs_cover_what_is_set_and_nothing_else(flags: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> None:
    covered = np.zeros_like(flags)
    for first, end in runs(flags):
        assert not covered[max(first - 1, 0) : end].any()  # apart: the one before is not set
        covered[first:end] = True
    assert (covered == flags).all()
