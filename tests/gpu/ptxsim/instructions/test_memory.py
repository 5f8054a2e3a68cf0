from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.default_suite import ALL
from tests.gpu.ptxsim.ptx.matmuls import DATA
from tests.gpu.ptxsim.ptx.snippets import each_lane, fault, kernel, run
from tests.texts import text_beside
from tuner.gpu.ptxsim.launch import simulate
from tuner.gpu.ptxsim.ptx.defects import Defect

SHARED = ".shared .align 16 .b8 tile[512];\n"
# a generic address cut to 32 bits is not a shared address
CUT_ADDRESS = "mov.u64 %rd1, tile; cvta.shared.u64 %rd1, %rd1; cvt.u32.u64 %r2, %rd1; st.shared.b32 [%r2], 0;"
BOUNDS = Defect.OUT_OF_BOUNDS


VECTORS = {"b32": "%r1, %r2", "f32": "%r1, %r2, %r3, %r4", "b64": "%rd2, %rd3"}
VECTORS |= {"b16": "%rs1, %rs2, %rs3, %rs4"}
NUMBERS: dict[str, Any] = {"f32": np.float32, "f64": np.float64, "u64": np.uint64}
NUMBERS |= {"noftz.f16": np.float16, "noftz.f16x2": np.float16, "noftz.bf16x2": ml_dtypes.bfloat16}


@pytest.mark.parametrize("type_", VECTORS)
@pytest.mark.parametrize("space", ["global", "shared"])
def test_vectors_are_loaded_and_stored_whole(space: str, type_: str) -> None:
    registers = VECTORS[type_]
    count = registers.count("%")
    size = int(type_[1:]) // 8 * count
    a = np.arange(32 * size, dtype=np.uint8)
    out = np.zeros_like(a)
    through = f"""mul.lo.u32 %r9, %t, {size}; cvt.u64.u32 %rd8, %r9; mov.u64 %rd9, tile;
      add.s64 %rd8, %rd8, %rd9; st.shared.v{count}.{type_} [%rd8], {{{registers}}};
      ld.shared.v{count}.{type_} {{{registers}}}, [%rd8];"""
    code = f"""mul.wide.u32 %rd1, %t, {size}; add.s64 %rd4, %p0, %rd1; add.s64 %rd5, %p1, %rd1;
      ld.global.v{count}.{type_} {{{registers}}}, [%rd4];
      {through if space == "shared" else ""}
      st.global.v{count}.{type_} [%rd5], {{{registers}}};"""
    found = run(code, a, out, variables=".shared .align 16 .b8 tile[1024];\n")
    np.testing.assert_array_equal(out, a)
    assert found.hazards == ()


def test_narrow_loads_extend_by_their_sign() -> None:
    a = np.array([0x80, 0x7F, 0xFF, 1], np.uint8)
    code = "ld.param.u64 %at, [pa]; add.s64 %at, %at, %tid64; ld.global.{} %d, [%at];"
    assert each_lane(code.format("s8"), a, result="i4").tolist() == [-128, 127, -1, 1]
    assert each_lane(code.format("u8"), a, result="i4").tolist() == [128, 127, 255, 1]


def test_lanes_that_do_not_load_keep_their_registers() -> None:
    a = np.arange(32, dtype=np.float32)
    out = np.zeros(32, np.float32)
    code = """mov.b32 %r1, 0f41200000; setp.lt.u32 %q1, %t, 5; add.s64 %rd1, %p0, %t4w;
      add.s64 %rd2, %p1, %t4w; @%q1 ld.global.b32 %r1, [%rd1]; st.global.b32 [%rd2], %r1;"""
    run(code, a, out)
    assert out.tolist() == [0, 1, 2, 3, 4] + [10] * 27


def test_generic_addresses_reach_shared_local_and_global_memory() -> None:
    out = np.zeros((3, 32), np.uint32)
    run(text_beside(__file__, "GENERIC"), out, variables=f"{SHARED}.local .align 8 .b8 stack[16];\n")
    np.testing.assert_array_equal(out, np.arange(32) * np.array([[1], [4], [1]]))


def test_constants_and_parameters_of_every_type_are_read() -> None:
    text = kernel(
        """ld.param.u64 %rd1, [out]; ld.param.u16 %rs1, [small]; cvt.u32.u16 %r1, %rs1;
        ld.param.f32 %r2, [real]; ld.const.u32 %r3, [table+4]; ld.param.s32 %r4, [pair+4];
        ld.global.u8 %r5, [byte]; st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};
        st.global.u32 [%rd1+16], %r5;""",
        [".param .u64 out", ".param .u16 small", ".param .f32 real", ".param .align 4 .b8 pair[8]"],
        ".reg .b32 %r<6>; .reg .b16 %rs<2>; .reg .b64 %rd<2>;",
        variables=".const .align 4 .u32 table[3] = {7, 0x11, 9};\n.global .align 1 .u8 byte = 200;\n",
    )
    out = np.zeros(5, np.int32)
    simulate(text, "snippet", (1, 1, 1), (1, 1, 1), (out, 65535, 2.5, np.array([1, -2], np.int32).tobytes()))
    assert out.tolist() == [65535, int(np.float32(2.5).view(np.int32)), 17, -2, 200]


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        ("ld.global.b32 %r1, [%p0+128];", BOUNDS, r"4 bytes at byte 128 of a0, which has 128"),
        ("ld.global.b32 %r1, [%p0-4];", BOUNDS, r"4 bytes at byte -4 of a0"),
        ("ld.global.b32 %r1, [%t4w];", BOUNDS, r"global address 0x0, which is in no buffer"),
        ("ld.global.v2.b32 {%r1, %r2}, [%p0+4];", Defect.MISALIGNED, r"allowed multiples of 8 bytes"),
        ("st.shared.b32 [tile+512], %r1;", BOUNDS, r"4 bytes at shared address 512, allowed up to 512"),
        ("st.shared.b32 [tile+2], %r1;", Defect.MISALIGNED, r"found address 0x2, allowed multiples of 4"),
        ("mov.u64 %rd1, tile; ld.u32 %r1, [%rd1];", BOUNDS, "in no buffer"),
        ("st.const.b32 [fixed], %r1;", BOUNDS, "a write to fixed, which is constant"),
        (
            "mov.u64 %rd1, fixed; atom.add.u32 %r2, [%rd1], %r1;",
            BOUNDS,
            "a write to fixed, which is constant",
        ),
        ("mov.u64 %rd1, -1; ld.u32 %r1, [%rd1+1];", BOUNDS, "in no buffer"),
        (CUT_ADDRESS, BOUNDS, "shared address 16777216, allowed up to 512"),
    ],
)
def test_a_wrong_access_is_a_fault_that_names_line_and_thread(code: str, kind: Defect, reason: str) -> None:
    place = r"line [1-9]\d*: .*thread \(0, 0, 0\) of block \(0, 0, 0\)"
    with fault(kind, match=f"{place}.*{reason}"):
        run(code, np.zeros(32, np.float32), variables=f"{SHARED}.const .align 4 .u32 fixed = 1;\n")


ATOMICS_SHARED = ".shared .align 16 .b8 tile[16];\n"
INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add.u32": lambda old, x: old + x,
    "min.u32": min,
    "max.u32": max,
    "and.b32": lambda old, x: old & x,
    "or.b32": lambda old, x: old | x,
    "xor.b32": lambda old, x: old ^ x,
    "exch.b32": lambda _old, x: x,
    "inc.u32": lambda old, x: 0 if old >= x else old + 1,
    "dec.u32": lambda old, x: x if old == 0 or old > x else old - 1,
}


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("name", INTEGERS)
def test_lanes_update_one_after_the_other(name: str, space: str) -> None:
    place, seen = np.array([5], np.uint32), np.zeros(32, np.uint32)
    target, back = ("[tile]", "@%q1 st.global.u32 [%p0], %r4;") if space == "shared" else ("[%p0]", "")
    code = f"""ld.global.u32 %r3, [%p0]; setp.eq.u32 %q1, %t, 0; @%q1 st.shared.u32 [tile], %r3; bar.sync 0;
      xor.b32 %r1, %t, 21; atom.{space}.{name} %r2, {target}, %r1;
      add.s64 %rd1, %p1, %t4w; st.global.u32 [%rd1], %r2;
      bar.sync 0; ld.shared.u32 %r4, [tile]; {back}"""
    found = run(code, place, seen, variables=ATOMICS_SHARED)
    old, expected = 5, []
    for lane in range(32):
        expected.append(old)
        old = INTEGERS[name](old, lane ^ 21)
    assert (seen.tolist(), place[0], found.races) == (expected, old, ())


@pytest.mark.parametrize("type_", NUMBERS)
@pytest.mark.parametrize("space", ["global", "shared"])
def test_sums_of_every_type(space: str, type_: str) -> None:
    number = NUMBERS[type_]
    count = 2 if "x2" in type_ else 1  # numbers in a register
    a, total = np.arange(1, 32 * count + 1).astype(number), np.zeros(count, number)
    bits = 8 * a.itemsize * count
    register = {16: "%rs1", 32: "%r1", 64: "%rd5"}[bits]
    target = "[tile]" if space == "shared" else "[%p1]"
    back = f"@%q1 st.global.b{bits} [%p1], {register};" if space == "shared" else ""
    code = f"""mul.wide.u32 %rd1, %t, {bits // 8}; add.s64 %rd1, %rd1, %p0;
      ld.global.b{bits} {register}, [%rd1]; setp.eq.u32 %q1, %t, 0; mov.b64 %rd6, 0;
      @%q1 st.shared.b64 [tile], %rd6; bar.sync 0; red.relaxed.gpu.{space}.add.{type_} {target}, {register};
      bar.sync 0; ld.shared.b{bits} {register}, [tile]; {back}"""
    assert run(code, a, total, variables=ATOMICS_SHARED).races == ()
    expected = a.reshape(32, -1).astype(np.float64).sum(axis=0)
    np.testing.assert_allclose(total.astype(np.float64), expected, rtol=0.02 if "noftz" in type_ else 0)


def test_vectors_are_added_element_by_element() -> None:
    total = np.zeros(4, np.float32)
    run("cvt.rn.f32.u32 %r1, %t; red.global.add.v4.f32 [%p0], {%r1, %r1, %r1, %r1};", total)
    assert total.tolist() == [496] * 4


def test_compare_and_swap_in_a_loop_of_diverged_lanes() -> None:
    text = (DATA / "atomics.ptx").read_text()
    values = np.linspace(-3, 9, 256, dtype=np.float32)
    histogram, largest, unused = np.zeros(16, np.int32), np.zeros(1, np.float32), np.zeros(1, np.float16)
    found = simulate(text, "kernel", (4, 1, 1), (64, 1, 1), (values, histogram, largest, unused))
    assert histogram.tolist() == [16] * 16
    assert largest[0] >= values.max()
    assert found.races == ()


def test_a_plain_access_that_is_not_ordered_after_atomics_races() -> None:
    code = """setp.eq.u32 %q1, %t, 0; mov.b32 %r2, 0; @%q1 st.shared.b32 [tile], %r2; bar.sync 0;
      red.shared.add.u32 [tile], %t; ld.shared.u32 %r1, [tile];"""
    found = run(code, variables=ATOMICS_SHARED, threads=64)
    assert [hazard.kind.value for hazard in found.races] == ["race in shared memory"]
