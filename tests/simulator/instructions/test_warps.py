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
    largest, lowest = (lane & segment) | (clamp & ~segment & 31), lane & segment
    ways = {"up": lane - amount, "down": lane + amount, "bfly": lane ^ amount}
    source = ways.get(mode, lowest | (amount & ~segment & 31))
    found = source >= largest if mode == "up" else source <= largest
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


BELOW_3 = "setp.lt.u32 %q, %a, 3;"
VOTE = "vote.sync.{}.pred %s, {}%q, 0xffffffff; selp.b32 %d, 1, 0, %s;"
REDUCTIONS = {"add.u32": 496, "min.u32": 0, "max.s32": 31, "and.b32": 0, "or.b32": 31, "xor.b32": 0}
LANES: dict[str, list[int]] = {
    # from a lane that is not there: NaN
    "setp.lt.u32 %q, %a, 8; mov.b32 %d, 0; @%q shfl.sync.down.b32 %d, %a, 4, 31, 255;": (
        [4, 5, 6, 7] + [0xFFFFFFFF] * 4 + [0] * 24
    ),
    f"{BELOW_3} vote.sync.ballot.b32 %d, %q, 0xffffffff;": [7] * 32,
    **{f"{BELOW_3} {VOTE.format(mode, '')}": [n] * 32 for mode, n in (("all", 0), ("any", 1), ("uni", 0))},
    f"setp.lt.u32 %q, %a, 64; {VOTE.format('uni', '!')}": [1] * 32,
    "setp.lt.u32 %q, %a, 5; mov.b32 %d, 0; @!%q bra OUT; activemask.b32 %d; OUT:": [31] * 5 + [0] * 27,
    **{f"redux.sync.{name} %d, %a, 0xffffffff;": [n] * 32 for name, n in REDUCTIONS.items()},
    # the lowest lane is elected
    "elect.sync %d|%q, 0xffffffff; selp.b32 %r, 100, 0, %q; add.u32 %d, %d, %r;": [100] + [0] * 31,
}


@pytest.mark.parametrize("code", LANES)
def test_votes_reductions_and_what_lanes_know_of_each_other(code: str) -> None:
    found = each_lane(code, IOTA, result="u4", declare=".reg .pred %q, %s; .reg .b32 %r;")
    assert found.tolist() == LANES[code]


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
