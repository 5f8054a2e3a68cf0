from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulator.ptx.snippets import each_lane, kernel, run
from tuner.simulator.launch import simulate
from tuner.simulator.ptx.defects import Defect, SimulationError

Array = NDArray[Any]
SHARED = ".shared .align 16 .b8 tile[512];\n"


@pytest.mark.parametrize(
    ("type_", "count", "registers"),
    [
        ("b32", 2, "%r1, %r2"),
        ("f32", 4, "%r1, %r2, %r3, %r4"),
        ("b16", 4, "%rs1, %rs2, %rs3, %rs4"),
        ("b64", 2, "%rd2, %rd3"),
    ],
)
@pytest.mark.parametrize("space", ["global", "shared"])
def test_vectors_are_loaded_and_stored_whole(space: str, type_: str, count: int, registers: str) -> None:
    size = int(type_[1:]) // 8 * count
    a = np.arange(32 * size, dtype=np.uint8)
    out = np.zeros_like(a)
    through = f"""mul.lo.u32 %r9, %t, {size}; cvt.u64.u32 %rd8, %r9;
      mov.u64 %rd9, tile; add.s64 %rd8, %rd8, %rd9;
      st.shared.v{count}.{type_} [%rd8], {{{registers}}};
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
      add.s64 %rd2, %p1, %t4w;
      @%q1 ld.global.b32 %r1, [%rd1]; st.global.b32 [%rd2], %r1;"""
    run(code, a, out)
    assert out.tolist() == [0, 1, 2, 3, 4] + [10] * 27


def test_generic_addresses_reach_shared_local_and_global_memory() -> None:
    out = np.zeros((3, 32), np.uint32)
    code = """mov.u64 %rd1, tile; cvta.shared.u64 %rd1, %rd1; add.s64 %rd1, %rd1, %t4w;
      st.u32 [%rd1], %t; ld.u32 %r1, [%rd1];
      mov.u64 %rd2, stack; cvta.local.u64 %rd2, %rd2; st.u32 [%rd2+4], %t4; ld.u32 %r2, [%rd2+4];
      cvta.global.u64 %rd3, %p0; add.s64 %rd3, %rd3, %t4w; st.u32 [%rd3], %r1;
      st.u32 [%rd3+128], %r2;
      setp.lt.u32 %q1, %t, 16; selp.b64 %rd4, %rd1, %rd3, %q1; ld.u32 %r3, [%rd4]; st.u32 [%rd3+256], %r3;"""
    variables = f"{SHARED}.local .align 8 .b8 stack[16];\n"
    run(code, out, variables=variables)
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
    pair = np.array([1, -2], np.int32).tobytes()
    simulate(text, "snippet", (1, 1, 1), (1, 1, 1), (out, 65535, 2.5, pair))
    assert out.tolist() == [65535, int(np.float32(2.5).view(np.int32)), 17, -2, 200]


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        ("ld.global.b32 %r1, [%p0+128];", Defect.OUT_OF_BOUNDS, r"4 bytes at byte 128 of a0, which has 128"),
        ("ld.global.b32 %r1, [%p0-4];", Defect.OUT_OF_BOUNDS, r"4 bytes at byte -4 of a0"),
        ("ld.global.b32 %r1, [%t4w];", Defect.OUT_OF_BOUNDS, r"global address 0x0, which is in no buffer"),
        ("ld.global.v2.b32 {%r1, %r2}, [%p0+4];", Defect.MISALIGNED, r"allowed multiples of 8 bytes"),
        (
            "st.shared.b32 [tile+512], %r1;",
            Defect.OUT_OF_BOUNDS,
            r"4 bytes at shared address 512, allowed up to 512",
        ),
        ("st.shared.b32 [tile+2], %r1;", Defect.MISALIGNED, r"found address 0x2, allowed multiples of 4"),
        ("mov.u64 %rd1, tile; ld.u32 %r1, [%rd1];", Defect.OUT_OF_BOUNDS, "in no buffer"),
        ("st.const.b32 [fixed], %r1;", Defect.OUT_OF_BOUNDS, "a write to fixed, which is constant"),
        ("mov.u64 %rd1, -1; ld.u32 %r1, [%rd1+1];", Defect.OUT_OF_BOUNDS, "in no buffer"),
    ],
)
def test_a_wrong_access_is_a_fault_that_names_line_and_thread(code: str, kind: Defect, reason: str) -> None:
    a = np.zeros(32, np.float32)
    with pytest.raises(
        SimulationError, match=rf"line \d+: .*thread \(0, 0, 0\) of block \(0, 0, 0\).*{reason}"
    ) as error:
        run(code, a, variables=f"{SHARED}.const .align 4 .u32 fixed = 1;\n")
    assert error.value.kind is kind
    assert error.value.line > 0


def test_a_generic_address_cut_to_32_bits_is_no_shared_address() -> None:
    code = "mov.u64 %rd1, tile; cvta.shared.u64 %rd1, %rd1; cvt.u32.u64 %r2, %rd1; st.shared.b32 [%r2], %r1;"
    with pytest.raises(SimulationError, match="shared address 16777216, allowed up to 512"):
        run(code, variables=SHARED)
