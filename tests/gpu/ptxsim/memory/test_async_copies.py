"""Copies by threads and by the TMA: when they land, what waits free, and what is a fault."""

import numpy as np
import pytest

from tests.gpu.ptxsim.ptx.snippets import fault, kinds, run
from tests.texts import text_beside
from tuner.core.compiled_code import TensorMapLayout
from tuner.core.errors import UsageError
from tuner.gpu.ptxsim.memory.tensor_maps import TensorMap, extent_bytes, swizzled
from tuner.gpu.ptxsim.ptx.defects import Defect

BOX = ".shared .align 128 .b8 box[16];\n"
# Thread 0 stores four words of 1 by the TMA; it writes box and reads its target when it has waited.
STORE = text_beside(__file__, "STORE")
OVERWRITE = "mov.u32 %r2, 2; st.shared.b32 [%r8], %r2;"
READ = "ld.global.b32 %r3, [%p0]; st.global.b32 [%p1], %r3;"
FENCE = "fence.proxy.async.shared::cta;"
WAITS = {"none": "", "read": "cp.async.bulk.wait_group.read 0;", "full": "cp.async.bulk.wait_group 0;"}


def stored(wait: str, then: str = "") -> tuple[list[int], int, set[Defect]]:
    target, seen = np.zeros(4, np.uint32), np.full(1, 9, np.uint32)
    found = run(STORE.format(wait=WAITS[wait], then=then), target, seen, variables=BOX)
    return target.tolist(), int(seen[0]), kinds(found)


def test_a_wait_for_the_read_frees_the_source_and_a_whole_wait_tells_of_the_target() -> None:
    for wait, seen in (("read", 0), ("full", 1)):
        assert stored(wait, OVERWRITE) == ([1, 1, 1, 1], 9, set())
        assert stored(wait, READ)[:2] == ([1, 1, 1, 1], seen)
    assert stored("none")[2] == {Defect.UNFINISHED}  # the block ends before its source is read
    assert Defect.IN_FLIGHT in stored("none", OVERWRITE + WAITS["full"])[2]  # written too early


def test_a_store_out_of_bounds_of_which_only_the_read_was_waited_for_is_reported_at_the_end() -> None:
    code = STORE.format(wait=WAITS["read"], then="").replace("[%p0], [%r8], 16", "[%rd8], [%r8], 16")
    with fault(Defect.OUT_OF_BOUNDS, match="1 bytes at byte 1048576 of a0, which has 16"):
        run(f"add.s64 %rd8, %p0, 1048576; {code}", np.zeros(4, np.uint32), variables=BOX)


def test_a_box_is_read_row_by_row_with_zeros_outside() -> None:
    a = np.arange(20 * 16, dtype=np.float32).reshape(20, 16)
    tensor = TensorMap(a, (4, 8), swizzle_bytes=0)
    found = tensor.content((12, 18)).view(np.float32).reshape(4, 8)  # column 12, row 18
    expected = np.zeros((4, 8), np.float32)
    expected[:2, :4] = a[18:, 12:]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(tensor.content((-4, 0)).view(np.float32).reshape(4, 8)[:, 4:], a[:4, :4])


def test_a_box_is_written_inside_alone_of_any_dimensions_and_tf32_rounds() -> None:
    a = np.zeros((6, 8), np.float32)
    TensorMap(a, (4, 8), swizzle_bytes=0).store((0, 4), np.arange(32, dtype=np.float32).view(np.uint8))
    np.testing.assert_array_equal(a[4:], np.arange(16).reshape(2, 8))
    assert not a[:4].any()
    cube = np.arange(4 * 6 * 8, dtype=np.int32).reshape(4, 6, 8)
    found = TensorMap(cube, (2, 3, 4), swizzle_bytes=0).content((4, 3, 2)).view(np.int32)
    np.testing.assert_array_equal(found.reshape(2, 3, 4), cube[2:4, 3:6, 4:8])
    a = np.array([[1 + 2.0**-11, 1 + 2.0**-12, -3, 0]], np.float32)
    found = TensorMap(a, (1, 4), swizzle_bytes=0, is_tf32=True).content((0, 0)).view(np.float32)
    assert found.tolist() == [1 + 2.0**-10, 1, -3, 0]
    # from its first element to its last
    assert extent_bytes(TensorMapLayout((64, 8), (128,), (32, 4), 6, swizzle=2)) == 1024


@pytest.mark.parametrize(("span", "bits"), [(0, 0), (32, 1), (64, 2), (128, 3)])
def test_swizzles_exchange_chunks_by_their_row(span: int, bits: int) -> None:
    addresses = np.arange(4096)
    found = swizzled(addresses, span)
    for address in (0, 16, 128, 144, 1024 + 400, 4095):
        chunk, row = address >> 4 & 7, address >> 7
        assert found[address] == (address & ~0x70) | (chunk ^ row & ((1 << bits) - 1)) << 4
    np.testing.assert_array_equal(np.sort(found), addresses)


@pytest.mark.parametrize(
    ("shape", "box", "swizzle", "message"),
    [
        ((8, 8), (4, 8), 48, r"found swizzle 48, allowed \(0, 32, 64, 128\)"),
        ((8, 8), (4,), 0, "allowed 2 sizes from 1 to 256"),
        ((8, 8), (0, 8), 0, "allowed 2 sizes from 1 to 256"),
        ((8, 300), (4, 257), 0, "allowed 2 sizes from 1 to 256"),
        ((8, 5), (4, 4), 0, r"found strides \(20, 4\), allowed multiples of 16 bytes"),
        ((8, 64), (4, 64), 128, "a box 256 bytes wide, allowed 128"),
    ],
)
def test_the_driver_refuses(shape: tuple[int, ...], box: tuple[int, ...], swizzle: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TensorMap(np.zeros(shape, np.float32), box, swizzle)


MEMORY = ".shared .align 128 .b8 tile[4096];\n.shared .align 8 .b8 full[256];\n"
BEGIN = """setp.eq.u32 %q1, %t, 0; mov.u32 %r2, 1; @%q1 mbarrier.init.shared.b64 [full], %r2; bar.sync 0;
  mov.u32 %r3, 128; mov.u32 %r4, 0; @!%q1 bra WAIT; mbarrier.arrive.expect_tx.shared.b64 %rd1, [full], %r3;"""
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%p0], %r3, [full];"
WAIT = """WAIT: mbarrier.try_wait.parity.shared.b64 %q2, [full], %r4;
  mov.u32 %r8, tile; add.u32 %r8, %r8, %t4;"""
BACK_OF_TILE = "ld.shared.b32 %r1, [%r8]; add.s64 %rd2, %p1, %t4w; st.global.b32 [%rd2], %r1;"


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_plain_bulk_load_completes_at_its_mbarrier(seed: int | None) -> None:
    a, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    found = run(f"{BEGIN} {LOAD} {WAIT} {BACK_OF_TILE}", a, out, variables=MEMORY, seed=seed)
    np.testing.assert_array_equal(out, a)
    assert found.races == ()


def test_a_bulk_load_that_is_not_waited_for_is_nan() -> None:
    a, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    code = f"{BEGIN} {LOAD} WAIT: mov.u32 %r8, tile; add.u32 %r8, %r8, %t4; {BACK_OF_TILE}"
    assert kinds(run(code, a, out, variables=MEMORY)) >= {Defect.SHARED_RACE, Defect.UNFINISHED}
    assert np.isnan(out).all()


TENSOR_MAP_STORE = text_beside(__file__, "TENSOR_MAP_STORE")


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_bulk_stores_of_two_blocks_to_one_place_race(seed: int | None) -> None:
    """The race detector's cells are of 4 bytes, and the store goes byte by byte."""
    code = TENSOR_MAP_STORE.format(fence=FENCE, after=WAITS["full"])
    different = code.replace("], %t;", "], %b;")
    for stores, kind in ((different, Defect.BLOCK_RACE), (code, Defect.SAME_VALUE)):
        found = run(stores, np.zeros(32, np.uint32), variables=MEMORY, grid=(2, 1, 1), seed=seed)
        assert {hazard.kind for hazard in found.races or found.benign} == {kind}


def test_a_plain_bulk_store_needs_a_fence_and_a_wait() -> None:
    out = np.zeros(32, np.uint32)
    for before, after, defects in (
        (FENCE, WAITS["full"], set()),
        ("", WAITS["full"], {Defect.MISSING_FENCE}),
        (FENCE, "", {Defect.UNFINISHED}),
        (FENCE, f"st.shared.b32 [tile], %r3; {WAITS['full']}", {Defect.IN_FLIGHT}),
    ):
        assert (
            kinds(run(TENSOR_MAP_STORE.format(fence=before, after=after), out, variables=MEMORY)) == defects
        )
        if not defects:
            np.testing.assert_array_equal(out, np.arange(32))


def load_of(old: str, new: str) -> str:
    return f"{BEGIN} {LOAD.replace(old, new)} WAIT:"


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (f"mov.u32 %r3, 128; {LOAD}", Defect.BARRIER, "no initialised mbarrier at shared address 4096"),
        (load_of("[tile]", "[tile+8]"), Defect.MISALIGNED, "found 0x8, allowed multiples of 16"),
        (load_of("[tile]", "[tile+4240]"), Defect.OUT_OF_BOUNDS, "allowed up to 4352"),
        (load_of("[tile]", "[tile+3984]"), Defect.OUT_OF_BOUNDS, "over the mbarrier at 4096"),
        (load_of("[%p0]", "[%p0+16]"), Defect.OUT_OF_BOUNDS, "128 bytes at byte 16 of a0"),
        (f"{BEGIN} {WAIT}", Defect.DEADLOCK, "waits at an mbarrier"),
    ],
)
def test_a_wrong_bulk_copy_is_a_fault(code: str, kind: Defect, reason: str) -> None:
    with fault(kind, match=reason):
        run(code, np.zeros(32, np.float32), np.zeros(32, np.float32), variables=MEMORY)


TILE = ".shared .align 16 .b8 tile[1024];\n"
PLACE = """mul.lo.u32 %r9, %t, {size}; mov.u32 %r8, tile; add.u32 %r8, %r8, %r9; cvt.u64.u32 %rd9, %r9;
  add.s64 %rd8, %p0, %rd9; add.s64 %rd7, %p1, %rd9;"""
BACK = {
    4: "ld.shared.b32 %r1, [%r8]; st.global.b32 [%rd7], %r1;",
    8: "ld.shared.v2.b32 {%r1, %r2}, [%r8]; st.global.v2.b32 [%rd7], {%r1, %r2};",
    16: "ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r8]; st.global.v4.b32 [%rd7], {%r1, %r2, %r3, %r4};",
}
OF_16_BYTES = ((16, "cg", ""), (16, "cg", ".L2::128B"))


@pytest.mark.parametrize(("size", "cache", "level"), [*((n, "ca", "") for n in BACK), *OF_16_BYTES])
@pytest.mark.parametrize("shared", ["shared", "shared::cta"])
def test_a_copy_lands_when_it_is_waited_for(size: int, cache: str, level: str, shared: str) -> None:
    opcode = f"cp.async.{cache}.{shared}.global{level}"
    a = np.arange(32 * size, dtype=np.uint8)
    out = np.zeros_like(a)
    code = f"{PLACE.format(size=size)} {opcode} [%r8], [%rd8], {size}; cp.async.wait_all; {BACK[size]}"
    found = run(code, a, out, variables=TILE)
    np.testing.assert_array_equal(out, a)
    assert found.hazards == ()


@pytest.mark.parametrize("given", [0, 2, 4, 10, 16])
def test_what_the_source_does_not_give_is_zero(given: int) -> None:
    a = np.arange(1, 32 * 16 + 1, dtype=np.uint8)
    out, nothing = np.full_like(a, 7), np.full_like(a, 7)
    copy = f"{PLACE.format(size=16)} mov.u32 %r7, {given}; cp.async.cg.shared.global [%r8], [%rd8], 16, %r7;"
    run(f"{copy} cp.async.wait_all; {BACK[16]}", a, out, variables=TILE)
    expected = a.reshape(32, 16).copy()
    expected[:, given:] = 0
    np.testing.assert_array_equal(out.reshape(32, 16), expected)
    if given == 0:  # touches no global memory
        outside = copy.replace("[%rd8]", "[%rd8+4096]")
        run(f"{outside} cp.async.wait_all; {BACK[16]}", np.zeros(16, np.uint8), nothing, variables=TILE)
        assert not nothing.any()


@pytest.mark.parametrize(("waits", "is_there"), [(2, [0, 0, 0]), (1, [1, 0, 0]), (0, [1, 1, 0])])
def test_waiting_leaves_the_newest_groups_and_what_is_not_committed(waits: int, is_there: list[int]) -> None:
    a = np.ones((3, 32), np.float32)
    out = np.zeros_like(a)
    copy = "cp.async.ca.shared.global [%r8+{0}], [%rd8+{0}], 4; "
    copies = "cp.async.commit_group;".join(copy.format(128 * i) for i in range(3))
    places = (0, 128, 256)
    back = "".join(f"ld.shared.b32 %r1, [%r8+{at}]; st.global.b32 [%rd7+{at}], %r1; " for at in places)
    found = run(
        f"{PLACE.format(size=4)} {copies} cp.async.wait_group {waits}; {back}", a, out, variables=TILE
    )
    assert (~np.isnan(out[:, 0])).astype(int).tolist() == is_there
    defects = [hazard.kind for hazard in found.races]
    assert defects.count(Defect.IN_FLIGHT) == 3 - sum(is_there)
    assert Defect.UNFINISHED in defects


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
      {{barrier}} xor.b32 %r8, %r8, 128; {BACK[4]}"""
    assert run(code.format(barrier="bar.sync 0;"), a, out, threads=64, variables=TILE).races == ()
    np.testing.assert_array_equal(out, a[np.arange(64) ^ 32])
    assert kinds(run(code.format(barrier=""), a, out, threads=64, variables=TILE)) == {Defect.SHARED_RACE}


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
    code = f"{PLACE.format(size=16)} cp.async.cg.shared.global {copy};"
    with fault(kind, match=reason):
        run(code, np.zeros(512, np.uint8), np.zeros(4, np.uint8), variables=TILE)
