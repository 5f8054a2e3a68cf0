"""Races of small kernels, found in every schedule; what lanes ask memory for, and what a kernel touches."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.gpu.ptxsim.ptx.snippets import kinds, run
from tests.texts import text_beside
from tuner.core.errors import UsageError
from tuner.gpu.ptxsim.launch import SimulatedCall, Simulation, kernel_of, prepare, simulate
from tuner.gpu.ptxsim.memory.access_log import SAMPLES, Access, wavefronts
from tuner.gpu.ptxsim.memory.global_memory import Pointer, runs
from tuner.gpu.ptxsim.memory.global_races import GlobalRaces
from tuner.gpu.ptxsim.ptx.defects import Defect, SimulationError
from tuner.gpu.ptxsim.ptx.parser import parse

SHARED = ".shared .align 16 .b8 tile[4096];\n"
SEEDS = [None, 0, 1]
MINE = "mov.u32 %r8, tile; add.u32 %r8, %r8, %t4;"
OTHER = "xor.b32 %r7, %r8, 128;"  # the same lane of the other warp
PLACE = "mad.lo.u32 %r9, %b, %r6, %t; mul.wide.u32 %rd1, %r9, 4; add.s64 %rd1, %rd1, %p0;"
LANES = np.arange(32)
MODULE = parse(text_beside(__file__, "PTX"))
KERNEL = prepare(MODULE, kernel_of(MODULE, "k"))


def shared(code: str, seed: int | None = None, threads: int = 64) -> Simulation:
    return run(f"{MINE} {OTHER} {code}", threads=threads, variables=SHARED, seed=seed)


STORE = "st.shared.u32 [%r8], %t;"
# Kernels that race but for a barrier at {}.
NEED_A_BARRIER = {
    "two warps, write and read": f"{STORE} {{}} ld.shared.u32 %r1, [%r7];",
    "two warps, write and write": f"{STORE} {{}} st.shared.u32 [%r7], %t;",
    "a read before a write": f"{STORE} bar.sync 0; ld.shared.u32 %r1, [%r8]; {{}} st.shared.u32 [%r7], %t;",
    "lanes of a warp": f"{STORE} xor.b32 %r6, %r8, 4; {{}} ld.shared.u32 %r1, [%r6];",
    "many readers before a write": """setp.eq.u32 %q1, %t, 0; @%q1 st.shared.u32 [tile], %t; bar.sync 0;
      ld.shared.u32 %r1, [tile]; {} add.u32 %r5, %t, 1; @%q1 st.shared.u32 [tile], %r5;""",
    # One instruction of the second warp reads the updated word and words that the first warp wrote.
    "words next to one that is updated atomically": """setp.eq.u32 %q1, %t, 0; setp.lt.u32 %q2, %t, 32;
      setp.ge.u32 %q3, %t, 32; st.shared.u32 [%r8], %t; bar.sync 0; @%q1 atom.shared.add.u32 %r1, [tile], 1;
      bar.sync 0; @%q1 bra L; @%q2 st.shared.u32 [%r8], %t; L: {} @%q3 ld.shared.u32 %r2, [%r7];""",
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", NEED_A_BARRIER)
def test_what_another_thread_touches_needs_a_barrier(case: str, seed: int | None) -> None:
    code = NEED_A_BARRIER[case]
    is_read_unwritten = case == "two warps, write and read"
    found = kinds(shared(code.format(""), seed))
    assert Defect.SHARED_RACE in found if is_read_unwritten else found == {Defect.SHARED_RACE}
    barrier = "bar.warp.sync -1;" if case == "lanes of a warp" else "bar.sync 0;"
    assert kinds(shared(code.format(barrier), seed)) == set()


def test_a_collective_read_is_over_for_its_warp_at_once() -> None:
    """Each lane overwrites rows that ldmatrix read through another lane of its warp."""
    code = """shl.b32 %r6, %t, 4; mov.u32 %r5, tile; add.u32 %r5, %r5, %r6; mov.b32 %r1, 0;
      st.shared.v4.b32 [%r5], {%r1, %r1, %r1, %r1}; bar.sync 0;
      ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5]; xor.b32 %r5, %r5, 16;
      add.u32 %r1, %t, 5; st.shared.u32 [%r5], %r1;"""
    assert kinds(shared(code, threads=32)) == set()


def test_what_was_never_written_is_reported() -> None:
    found = shared("st.shared.u32 [%r8], %t; bar.sync 0; ld.shared.u32 %r1, [%r8+64];")
    assert kinds(found) == {Defect.UNINITIALISED}
    (hazard,) = found.races
    assert hazard.count == 16
    assert "thread (48, 0, 0) of block (0, 0, 0) at shared byte 256" in hazard.example


def test_the_same_value_written_twice_does_no_harm() -> None:
    found = shared("mov.u32 %r1, 5; st.shared.u32 [tile], %r1; bar.sync 0; ld.shared.u32 %r2, [tile];")
    assert (found.races, kinds(found)) == ((), {Defect.SAME_VALUE})
    differs = shared("st.shared.u32 [tile], %t; bar.sync 0; ld.shared.u32 %r2, [tile];")
    assert kinds(differs) == {Defect.SHARED_RACE}


def between(code: str, *arrays: Any, grid: int = 2, seed: int | None = None) -> Simulation:
    return run(f"{PLACE} {code}", *arrays, grid=(grid, 1, 1), seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("st.global.u32 [%rd1], %b;", Defect.BLOCK_RACE),  # another value from every block
        ("st.global.u32 [%rd1], %t;", Defect.SAME_VALUE),
        ("@%q1 st.global.u32 [%rd1], %t; @!%q1 ld.global.u32 %r1, [%rd1];", Defect.BLOCK_RACE),
        ("@!%q1 st.global.u32 [%rd1], %t4; @%q1 ld.global.u32 %r1, [%rd1];", Defect.BLOCK_RACE),
        ("@%q1 red.global.add.u32 [%rd1], 1; @!%q1 st.global.u32 [%rd1], 7;", Defect.BLOCK_RACE),
    ],
)
def test_blocks_must_not_share_what_one_of_them_writes(code: str, kind: Defect, seed: int | None) -> None:
    code = f"mov.u32 %r6, 0; {PLACE} setp.eq.u32 %q1, %b, 0; {code}"
    assert kinds(between(code, np.full(32, 99, np.uint32), seed=seed)) == {kind}


@pytest.mark.parametrize(
    "code",
    [
        "ld.global.u32 %r1, [%rd1];",
        "red.global.add.u32 [%rd1], 1;",
        "st.relaxed.gpu.global.u32 [%rd1], %b;",
        "ld.volatile.global.u32 %r1, [%rd1]; red.global.add.u32 [%rd1], 1;",
    ],
)
def test_blocks_may_share_what_they_read_or_update_atomically(code: str) -> None:
    assert kinds(between(f"mov.u32 %r6, 0; {PLACE} {code}", np.zeros(32, np.uint32))) == set()


# A warp of each block stores a word, the other counts; that of the block that is last adds up what all have
# stored. 40 blocks are more than run together.
LAST_BLOCK = """mul.wide.u32 %rd1, %b, 4; add.s64 %rd2, %p0, %rd1; add.u32 %r1, %b, 1;
  setp.eq.u32 %q1, %t, 0; setp.eq.u32 %q2, %t, 32; @%q2 st.global.u32 [%rd2], %r1; bar.sync 0;
  @!%q1 bra L; {count} setp.ne.u32 %q3, %r2, {last}; @%q3 bra L; mov.u32 %r3, 0; mov.u32 %r4, 0; A:
  mul.wide.u32 %rd1, %r4, 4; add.s64 %rd2, %p0, %rd1; ld.global.u32 %r5, [%rd2]; add.u32 %r3, %r3, %r5;
  add.u32 %r4, %r4, 1; setp.lt.u32 %q3, %r4, 40; @%q3 bra A;
  st.global.u32 [%p2], %r3; st.global.u32 [%p2+4], %b; L: bar.sync 0;"""
COUNT = "atom.{order}.global.add.u32 %r2, [%p1], 1;"


def last_block(count: str, seed: int | None, last: int = 39) -> tuple[Simulation, int, int]:
    stored = np.zeros(40, np.uint32)
    total = np.zeros(2, np.uint32)
    code = LAST_BLOCK.format(count=count, last=last)
    found = run(code, stored, np.zeros(1, np.uint32), total, grid=(40, 1, 1), threads=64, seed=seed)
    return found, int(total[0]), int(total[1])


@pytest.mark.parametrize("order", ["acq_rel.gpu", "acq_rel", "acq_rel.sys"])
def test_the_block_that_counts_last_sees_what_all_have_stored_whichever_it_is(order: str) -> None:
    results = [last_block(COUNT.format(order=order), seed) for seed in (None, 0, 1, 2)]
    assert [(kinds(found), total) for found, total, _ in results] == [(set(), 820)] * 4
    assert len({block for _, _, block in results}) > 2  # a seed changes the order of blocks


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "order", ["relaxed.gpu", "acquire.gpu", "release.gpu", "acq_rel.cta", "acq_rel.cluster", "relaxed"]
)
def test_a_count_that_does_not_release_and_acquire_orders_no_blocks(order: str, seed: int | None) -> None:
    found, _, _ = last_block(COUNT.format(order=order), seed)
    assert kinds(found) == {Defect.BLOCK_RACE}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_block_that_does_not_wait_for_all_others_races_with_them(seed: int | None) -> None:
    found, _, _ = last_block(COUNT.format(order="acq_rel.gpu"), seed, last=38)
    assert kinds(found) == {Defect.BLOCK_RACE}


def test_blocks_that_keep_to_their_own_do_not_race_nor_do_those_of_halves_of_a_word() -> None:
    own = f"mov.u32 %r6, 32; {PLACE} st.global.u32 [%rd1], %t;"
    assert kinds(between(own, np.zeros(64, np.uint32))) == set()
    code = """mad.lo.u32 %r9, %t, 2, %b; mul.wide.u32 %rd1, %r9, 2; add.s64 %rd1, %rd1, %p0;
      cvt.u16.u32 %rs1, %b; st.global.u16 [%rd1], %rs1;"""
    assert kinds(run(code, np.zeros(64, np.uint16), grid=(2, 1, 1))) == set()


def test_blocks_far_apart_are_compared_and_a_hazard_reports_line_instruction_and_example() -> None:
    """300 blocks of 32 threads are more than run at once."""
    code = f"mov.u32 %r6, 0; {PLACE}\nst.global.u32 [%rd1], %b;"
    (hazard,) = between(code, np.zeros(32, np.uint32), grid=300).races
    assert hazard.kind is Defect.BLOCK_RACE
    assert hazard.count >= 299 * 32  # of every block but one
    (hazard,) = between(code, np.zeros(32, np.uint32)).races
    place = r"thread \(0, 0, 0\) of block \([01], 0, 0\) at a0 byte 0: not ordered after"
    found = rf"line {hazard.line}: st.global.u32 \[%rd1\], %b: race between blocks: {place}"
    assert re.match(found, str(hazard))


@pytest.mark.parametrize("seed", SEEDS)
def test_threads_of_a_block_need_a_barrier_in_global_memory(seed: int | None) -> None:
    code = """add.s64 %rd1, %p0, %t4w; st.global.u32 [%rd1], %t; xor.b32 %r5, %t4, 128; cvt.u64.u32 %rd3, %r5;
      add.s64 %rd2, %p0, %rd3; {} ld.global.u32 %r1, [%rd2];"""
    out = np.full(64, 99, np.uint32)
    assert kinds(run(code.format(""), out, threads=64, seed=seed)) == {Defect.GLOBAL_RACE}
    assert kinds(run(code.format("bar.sync 0;"), out, threads=64, seed=seed)) == set()
    out[:] = 99
    write = code.replace("ld.global.u32 %r1, [%rd2]", "st.global.u32 [%rd2], %t")
    assert kinds(run(write.format(""), out, threads=64, seed=seed)) == {Defect.GLOBAL_RACE}


def test_two_lanes_of_one_instruction_race_but_not_by_narrow_accesses_next_to_each_other() -> None:
    code = "st.global.u32 [%p0], %t;"
    assert kinds(run(code, np.zeros(1, np.uint32))) == {Defect.GLOBAL_RACE}
    assert kinds(run(code.replace("%t;", "7;"), np.zeros(1, np.uint32))) == {Defect.SAME_VALUE}
    code = """mov.u32 %r5, tile; add.u32 %r5, %r5, %t; cvt.u16.u32 %rs1, %t;
      st.shared.u8 [%r5], %rs1; bar.sync 0; ld.shared.u8 %rs2, [%r5];"""
    assert kinds(shared(code)) == set()


# Every byte of an access lies in a cell of the race detector that the access is recorded for.
@pytest.mark.parametrize("cell_bytes", [1, 2, 4])
@given(st.integers(0, 30), st.integers(1, 32))
def test_an_access_from_a_cell_on_touches_all_of_its_cells(cell_bytes: int, cell: int, size: int) -> None:
    start = cell * cell_bytes
    found = GlobalRaces(1024, cell_bytes).cells(np.array([start]), size)
    assert found.tolist() == [sorted({byte // cell_bytes for byte in range(start, start + size)})]


def accesses(instructions: int = 4000, threads: int = 32) -> tuple[Access, ...]:
    call = SimulatedCall((1, 1, 1), (threads, 1, 1), (np.zeros(64, np.uint32),))
    return KERNEL.accesses(call, instructions)


def test_words_of_lanes_are_kept_for_the_first_accesses_and_of_lanes_that_do_not_run_those_of_the_first() -> (
    None
):
    found = accesses()
    assert len(found) == 2 * SAMPLES
    for access, opcode, width, stride in (
        (found[0], "ld.global.v2.b32", 2, 2),
        (found[-1], "st.shared.b32", 1, 32),
    ):
        assert (access.opcode, access.width, np.diff(access.words).tolist()) == (opcode, width, [stride] * 31)
    words = accesses(threads=4)[0].words
    assert words[4:] == (words[0],) * 28
    assert len(accesses(instructions=20)) == 2 * 3  # eight before the loop, five in each iteration


def test_a_launch_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="argument"):
        KERNEL.accesses(SimulatedCall((1, 1, 1), (32, 1, 1), ()))


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
Ranges = list[list[int]]
# Thread t moves 4 bytes from x + 8 t to y + 4 t.
GATHER = text_beside(__file__, "GATHER")


def gather(x: Pointer, y: Pointer, load: str = "global") -> dict[int, tuple[Ranges, Ranges]]:
    module = parse(GATHER.replace("LOAD", load))
    simulation = simulate(module, module.kernels[0].name, (1, 1, 1), (4, 1, 1), (x, y))
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
