from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.simulator.ptx.snippets import each_lane, run
from tuner.simulator.ptx.defects import Defect, SimulationError

Array = NDArray[Any]
EVERYONE = 0xFFFFFFFF
IOTA = np.arange(32, dtype=np.uint32)


def shuffled(mode: str, lane: int, amount: int, segment: int, clamp: int) -> tuple[int, bool]:
    """Returns what the ISA's pseudo code gives: the lane that is read, and whether it is in range."""
    mask = segment
    largest = (lane & mask) | (clamp & ~mask & 31)
    lowest = lane & mask
    if mode == "up":
        source, found = lane - amount, lane - amount >= largest
    elif mode == "down":
        source, found = lane + amount, lane + amount <= largest
    elif mode == "bfly":
        source, found = lane ^ amount, lane ^ amount <= largest
    else:
        source = lowest | (amount & ~mask & 31)
        found = source <= largest
    return (source if found else lane), found


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@settings(max_examples=12)
@given(amount=st.integers(0, 31), width=st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_shuffles(mode: str, amount: int, width: int) -> None:
    segment = 32 - width
    clamp = 0 if mode == "up" else 31
    code = f"""shfl.sync.{mode}.b32 %d|%q, %a, {amount}, {segment << 8 | clamp}, {EVERYONE};
      selp.b32 %r, 256, 0, %q; or.b32 %d, %d, %r;"""
    found = each_lane(code, IOTA, result="u4", declare=".reg .pred %q; .reg .b32 %r;")
    for lane in range(32):
        source, is_there = shuffled(mode, lane, amount, segment, clamp)
        assert found[lane] == source | (256 if is_there else 0)


def test_a_shuffle_from_a_lane_that_is_not_there_gives_nan() -> None:
    code = "setp.lt.u32 %q, %a, 8; mov.b32 %d, 0; @%q shfl.sync.down.b32 %d, %a, 4, 31, 255;"
    found = each_lane(code, IOTA, result="u4", declare=".reg .pred %q;")
    assert found.tolist() == [4, 5, 6, 7] + [0xFFFFFFFF] * 4 + [0] * 24


def test_votes() -> None:
    declare = ".reg .pred %q, %s; .reg .b32 %r;"
    code = "setp.lt.u32 %q, %a, 3; vote.sync.ballot.b32 %d, %q, 0xffffffff;"
    assert set(each_lane(code, IOTA, result="u4", declare=declare).tolist()) == {7}
    for mode, expected in (("all", 0), ("any", 1), ("uni", 0)):
        code = f"setp.lt.u32 %q, %a, 3; vote.sync.{mode}.pred %s, %q, 0xffffffff; selp.b32 %d, 1, 0, %s;"
        assert set(each_lane(code, IOTA, result="u4", declare=declare).tolist()) == {expected}
    code = "setp.lt.u32 %q, %a, 64; vote.sync.uni.pred %s, !%q, 0xffffffff; selp.b32 %d, 1, 0, %s;"
    assert set(each_lane(code, IOTA, result="u4", declare=declare).tolist()) == {1}


def test_active_lanes() -> None:
    code = "setp.lt.u32 %q, %a, 5; mov.b32 %d, 0; @!%q bra OUT; activemask.b32 %d; OUT:"
    found = each_lane(code, IOTA, result="u4", declare=".reg .pred %q;")
    assert found.tolist() == [31] * 5 + [0] * 27


@pytest.mark.parametrize(
    ("operation", "expected"),
    [("add.u32", 496), ("min.u32", 0), ("max.s32", 31), ("and.b32", 0), ("or.b32", 31), ("xor.b32", 0)],
)
def test_reductions_of_a_warp(operation: str, expected: int) -> None:
    found = each_lane(f"redux.sync.{operation} %d, %a, 0xffffffff;", IOTA, result="u4")
    assert set(found.tolist()) == {expected}


def test_the_lowest_lane_is_elected() -> None:
    code = "elect.sync %d|%q, 0xffffffff; selp.b32 %r, 100, 0, %q; add.u32 %d, %d, %r;"
    found = each_lane(code, IOTA, result="u4", declare=".reg .pred %q; .reg .b32 %r;")
    assert found.tolist() == [100] + [0] * 31


def test_a_warp_barrier_orders_its_members() -> None:
    tile = ".shared .align 4 .b8 tile[128];\n"
    code = """mov.u32 %r3, tile; add.u32 %r3, %r3, %t4; xor.b32 %r4, %r3, 4; st.shared.u32 [%r3], %t;
      {} ld.shared.u32 %r1, [%r4]; add.s64 %rd1, %p0, %t4w; st.global.u32 [%rd1], %r1;"""
    out = np.zeros(32, np.uint32)
    assert run(code.format("bar.warp.sync 0xffffffff;"), out, variables=tile).races == ()
    np.testing.assert_array_equal(out, IOTA ^ 1)
    assert {h.kind for h in run(code.format(""), out, variables=tile).races} == {Defect.SHARED_RACE}


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (
            "shfl.sync.idx.b32 %r1, %t, 0, 31, 1;",
            Defect.ILLEGAL,
            r"thread \(1, 0, 0\).*not in its own member mask",
        ),
        ("setp.lt.u32 %q1, %t, 9; @%q1 vote.sync.any.pred %q2, %q1, -1;", Defect.DIVERGENCE, "but not here"),
    ],
)
def test_a_wrong_member_mask_is_a_fault(code: str, kind: Defect, reason: str) -> None:
    with pytest.raises(SimulationError, match=reason) as error:
        run(code)
    assert error.value.kind is kind


def test_lanes_that_have_ended_need_not_take_part() -> None:
    out = np.zeros(32, np.uint32)
    code = """setp.ge.u32 %q1, %t, 20; @%q1 exit; setp.lt.u32 %q2, %t, 64;
      vote.sync.ballot.b32 %r1, %q2, 0xffffffff;
      add.s64 %rd1, %p0, %t4w; st.global.u32 [%rd1], %r1;"""
    run(code, out)
    assert out.tolist() == [(1 << 20) - 1] * 20 + [0] * 12
