import numpy as np
import pytest

from tests.simulator.ptx.snippets import run
from tuner.simulator.ptx.defects import Defect, SimulationError

TILE = ".shared .align 16 .b8 tile[1024];\n"
PLACE = """mul.lo.u32 %r9, %t, {size}; mov.u32 %r8, tile; add.u32 %r8, %r8, %r9; cvt.u64.u32 %rd9, %r9;
  add.s64 %rd8, %p0, %rd9; add.s64 %rd7, %p1, %rd9;"""
BACK = {
    4: "ld.shared.b32 %r1, [%r8]; st.global.b32 [%rd7], %r1;",
    8: "ld.shared.v2.b32 {%r1, %r2}, [%r8]; st.global.v2.b32 [%rd7], {%r1, %r2};",
    16: "ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r8]; st.global.v4.b32 [%rd7], {%r1, %r2, %r3, %r4};",
}


@pytest.mark.parametrize(
    ("size", "cache"), [(4, "ca"), (8, "ca"), (16, "ca"), (16, "cg"), (16, "cg.L2::128B")]
)
@pytest.mark.parametrize("shared", ["shared", "shared::cta"])
def test_a_copy_lands_when_it_is_waited_for(size: int, cache: str, shared: str) -> None:
    parts = cache.split(".")
    opcode = ".".join(["cp.async", parts[0], shared, "global", *parts[1:]])
    a = np.arange(32 * size, dtype=np.uint8)
    out = np.zeros_like(a)
    code = f"{PLACE.format(size=size)} {opcode} [%r8], [%rd8], {size}; cp.async.wait_all; {BACK[size]}"
    found = run(code, a, out, variables=TILE)
    np.testing.assert_array_equal(out, a)
    assert found.hazards == ()


@pytest.mark.parametrize("given", [0, 2, 4, 10, 16])
def test_what_the_source_does_not_give_is_zero(given: int) -> None:
    a = np.arange(1, 32 * 16 + 1, dtype=np.uint8)
    out = np.full_like(a, 7)
    code = f"""{PLACE.format(size=16)} mov.u32 %r7, {given};
      cp.async.cg.shared.global [%r8], [%rd8], 16, %r7; cp.async.wait_all; {BACK[16]}"""
    run(code, a, out, variables=TILE)
    expected = a.reshape(32, 16).copy()
    expected[:, given:] = 0
    np.testing.assert_array_equal(out.reshape(32, 16), expected)


def test_a_copy_of_nothing_touches_no_global_memory() -> None:
    out = np.full(512, 7, np.uint8)
    code = f"""{PLACE.format(size=16)} cp.async.cg.shared.global [%r8], [%rd8+4096], 16, 0;
      cp.async.wait_all; {BACK[16]}"""
    run(code, np.zeros(16, np.uint8), out, variables=TILE)
    assert not out.any()


@pytest.mark.parametrize(("waits", "is_there"), [(2, [0, 0, 0]), (1, [1, 0, 0]), (0, [1, 1, 0])])
def test_waiting_leaves_the_newest_groups_and_what_is_not_committed(waits: int, is_there: list[int]) -> None:
    a = np.ones((3, 32), np.float32)
    out = np.zeros_like(a)
    copies = "cp.async.commit_group;".join(
        f"cp.async.ca.shared.global [%r8+{128 * i}], [%rd8+{128 * i}], 4; " for i in range(3)
    )
    back = "".join(
        f"ld.shared.b32 %r1, [%r8+{128 * i}]; st.global.b32 [%rd7+{128 * i}], %r1; " for i in range(3)
    )
    code = f"{PLACE.format(size=4)} {copies} cp.async.wait_group {waits}; {back}"
    found = run(code, a, out, variables=TILE)
    assert (~np.isnan(out[:, 0])).astype(int).tolist() == is_there
    in_flight = [hazard for hazard in found.races if hazard.kind is Defect.IN_FLIGHT]
    assert len(in_flight) == 3 - sum(is_there)
    assert Defect.UNFINISHED in {hazard.kind for hazard in found.races}


def test_groups_are_counted_by_each_thread() -> None:
    """Odd threads commit an empty group first, so that one group more stays in flight for them."""
    a, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    code = f"""{PLACE.format(size=4)} and.b32 %r6, %t, 1; setp.eq.u32 %q1, %r6, 0;
      cp.async.ca.shared.global [%r8], [%rd8], 4; cp.async.commit_group; @%q1 cp.async.commit_group;
      cp.async.wait_group 1; {BACK[4]} cp.async.wait_all;"""
    run(code, a, out, variables=TILE)
    np.testing.assert_array_equal(np.isnan(out), np.arange(32) % 2 == 1)


def test_others_see_a_copy_after_a_barrier_only() -> None:
    a, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    code = f"""{PLACE.format(size=4)} cp.async.ca.shared.global [%r8], [%rd8], 4; cp.async.wait_all;
      {{barrier}}
      xor.b32 %r8, %r8, 128; {BACK[4]}"""
    good = run(code.format(barrier="bar.sync 0;"), a, out, threads=64, variables=TILE)
    assert good.races == ()
    np.testing.assert_array_equal(out, a[np.arange(64) ^ 32])
    bad = run(code.format(barrier=""), a, out, threads=64, variables=TILE)
    assert {hazard.kind for hazard in bad.races} == {Defect.SHARED_RACE}


def test_zero_fills_that_nobody_waits_for_do_no_harm() -> None:
    code = f"{PLACE.format(size=16)} cp.async.cg.shared.global [%r8], [%rd8], 16, 0; cp.async.commit_group;"
    assert run(code, np.zeros(512, np.uint8), np.zeros(4, np.uint8), variables=TILE).hazards == ()


@pytest.mark.parametrize(
    ("copy", "kind", "reason"),
    [
        ("[%r8], [%rd8+4], 16", Defect.MISALIGNED, "allowed multiples of 16"),
        ("[%r8+4], [%rd8], 16", Defect.MISALIGNED, "allowed multiples of 16"),
        ("[%r8+1024], [%rd8], 16", Defect.OUT_OF_BOUNDS, "shared address 1024, allowed up to 1024"),
        ("[%r8], [%rd8+512], 16", Defect.OUT_OF_BOUNDS, "16 bytes at byte 512 of a0, which has 512"),
        ("[%r8], [%rd8], 16, 17", Defect.ILLEGAL, "a source of 17 bytes, allowed 16"),
    ],
)
def test_a_wrong_copy_is_a_fault(copy: str, kind: Defect, reason: str) -> None:
    with pytest.raises(SimulationError, match=reason) as error:
        run(
            f"{PLACE.format(size=16)} cp.async.cg.shared.global {copy};",
            np.zeros(512, np.uint8),
            np.zeros(4, np.uint8),
            variables=TILE,
        )
    assert error.value.kind is kind
