"""Matrices of wgmma against CuTe's canonical layouts, cute/arch/mma_sm90_desc.hpp, and products of each."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.default_suite import ALL
from tests.gpu.ptxsim.ptx.snippets import Array, run
from tuner.gpu.ptxsim.ptx.defects import Defect, Fault, SimulationError, UnsupportedInstruction
from tuner.gpu.ptxsim.state.fragments import accumulator, accumulator_registers, operand_addresses

Flags = tuple[bool, bool]
UNIT = 8  # elements of 16 bits in 16 bytes
LEADING, STRIDE = 8192, 1024  # bytes between groups, so that no two elements meet
MODES = {"none": (0, 0), "32": (3, 1), "64": (2, 2), "128": (1, 3)}  # swizzle: descriptor's mode, bits


def canonical(swizzle: str, is_transposed: bool) -> Callable[[int, int], int]:
    """Returns the byte of an element (row, k): strides in elements, then Swizzle<bits, 4, 3>."""
    t, leading, stride = UNIT, LEADING // 2, STRIDE // 2
    width = {"none": 1, "32": 2, "64": 4, "128": 8}[swizzle]  # units of a row
    bits = MODES[swizzle][1]

    def place(row: int, k: int) -> int:
        if not is_transposed and swizzle == "none":  # ((8,m),(T,2)) : ((1T,SBO),(1,LBO))
            element = row % 8 * t + row // 8 * stride + k % t + k // t * leading
        elif not is_transposed:  # ((8,m),(T,2)) : ((wT,SBO),(1,T))
            element = row % 8 * width * t + row // 8 * stride + k % t + k // t * t
        elif swizzle == "none":  # ((T,1,m),(8,k)) : ((1,T,SBO),(1T,LBO))
            element = row % t + row // t * stride + k % 8 * t + k // 8 * leading
        else:  # ((T,w,m),(8,k)) : ((1,T,LBO),(wT,SBO))
            element = row % t + row // t % width * t + row // (width * t) * leading
            element += k % 8 * width * t + k // 8 * stride
        byte = 2 * element
        return byte ^ (byte >> 3 & ((1 << bits) - 1) << 4)

    return place


def descriptor(swizzle: str, start: int) -> int:
    return MODES[swizzle][0] << 62 | (STRIDE >> 4) << 32 | (LEADING >> 4) << 16 | start >> 4


@pytest.mark.parametrize("swizzle", MODES)
@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("start", [0, 8192])
def test_operands_stand_where_canonical_layouts_say(swizzle: str, is_transposed: bool, start: int) -> None:
    place = canonical(swizzle, is_transposed)
    found = operand_addresses(descriptor(swizzle, start), 64, 16, 2, is_transposed)
    np.testing.assert_array_equal(found, [[start + place(row, k) for k in range(16)] for row in range(64)])
    assert len(np.unique(found)) == found.size


def test_the_accumulator_is_that_of_four_stacked_mma() -> None:
    matrix = np.arange(64 * 16, dtype=np.float64).reshape(64, 16)
    registers = np.stack(accumulator_registers(matrix.astype(np.float32)), axis=1).view(np.float32)
    for lane in range(128):
        row, column = 16 * (lane // 32) + lane % 32 // 4, 2 * (lane % 4)
        for i in range(8):  # d[4j + 2h + i]
            assert registers[lane, i] == matrix[row + 8 * (i // 2 % 2), column + 8 * (i // 4) + i % 2]
    for result, dtype in (("f32", np.float32), ("f16", np.float16), ("s32", np.int32)):
        held = accumulator_registers(matrix.astype(dtype))
        np.testing.assert_array_equal(accumulator(held, result), matrix)


def test_a_base_offset_is_refused() -> None:
    with pytest.raises(Fault, match="found a base offset"):
        operand_addresses(1 << 49, 64, 16, 2, False)


BYTES = 65536
A_START, B_START = 0, 32768
FILL = f"""mov.u32 %r1, %t; LOOP: mul.wide.u32 %rd1, %r1, 16; add.s64 %rd2, %p0, %rd1;
  ld.global.v4.b32 {{%r2, %r3, %r4, %r5}}, [%rd2]; st.shared.v4.b32 [%rd1], {{%r2, %r3, %r4, %r5}};
  add.u32 %r1, %r1, 128; setp.lt.u32 %q1, %r1, {BYTES // 16}; @%q1 bra LOOP; fence.proxy.async; bar.sync 0;
  ld.param.u64 %rd3, [a1]; ld.param.u64 %rd4, [a2]; setp.eq.u32 %q2, %t, 999;"""
TILE = ".extern .shared .align 1024 .b8 tile[];\n"


RNG = np.random.default_rng(0)
A, B = (RNG.integers(-4, 5, size).astype(np.float16) for size in ((64, 16), (16, 8)))
EXACT = A.astype(float) @ B.astype(float)


def run_on(memory: Array, swizzle: str, code: str, *arrays: Array) -> Any:
    descriptors = [descriptor(swizzle, start) for start in (A_START, B_START)]
    return run(f"{FILL} {code}", memory, *descriptors, *arrays, threads=128, shared=BYTES, variables=TILE)


def multiply(code: str, *arrays: Array, swizzle: str = "128", transposed: Flags = (False, False)) -> Any:
    memory = np.zeros(BYTES // 2, np.float16)
    for matrix, start, is_transposed in ((A, A_START, transposed[0]), (B.T, B_START, transposed[1])):
        place = canonical(swizzle, is_transposed)
        for (row, k), value in np.ndenumerate(matrix):
            memory[(start + place(row, k)) // 2] = value
    return run_on(memory, swizzle, code, *arrays)


FENCE, COMMIT, WAIT = (f"wgmma.{word}.sync.aligned" for word in ("fence", "commit_group", "wait_group"))
TENS = "mov.b32 %r2, 0f41200000; mov.b32 %r3, %r2; mov.b32 %r4, %r2; mov.b32 %r5, %r2;"
STORE = """mul.wide.u32 %rd5, %t, 16; add.s64 %rd5, %rd5, %p3;
  st.global.v4.b32 [%rd5], {%r2, %r3, %r4, %r5};"""


def product(registers: Array) -> Array:
    return accumulator([registers[:, i].view(np.uint32) for i in range(4)], "f32")


def wgmma(flags: str, result: str = "f32", before: str = "", registers: str = "%r2, %r3, %r4, %r5") -> str:
    return f"""{before} {FENCE};
      wgmma.mma_async.sync.aligned.m64n8k16.{result}.f16.f16 {{{registers}}}, {flags};
      {COMMIT}; {WAIT} 0; {STORE}"""


@pytest.mark.parametrize("swizzle", MODES)
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_every_layout(swizzle: str, transposed: Flags) -> None:
    out = np.zeros((128, 4), np.float32)
    code = wgmma(f"%rd3, %rd4, %q2, 1, 1, {int(transposed[0])}, {int(transposed[1])}")
    assert multiply(code, out, swizzle=swizzle, transposed=transposed).races == ()
    np.testing.assert_array_equal(product(out), EXACT)


def test_a_product_is_negated_and_added_and_an_accumulator_may_be_of_f16() -> None:
    out, halves = np.zeros((128, 4), np.float32), np.zeros((128, 4), np.uint32)
    before = f"{TENS} setp.lt.u32 %q2, %t, 999;"
    multiply(wgmma("%rd3, %rd4, %q2, -1, 1, 0, 0", before=before), out)
    np.testing.assert_array_equal(product(out), 10 - EXACT)
    multiply(wgmma("%rd3, %rd4, %q2, 1, 1, 0, 0", "f16", registers="%r2, %r3"), halves, swizzle="32")
    np.testing.assert_array_equal(accumulator([halves[:, 0], halves[:, 1]], "f16"), EXACT)


def test_a_from_registers() -> None:
    """Each warp holds its 16 rows of A as for mma.sync."""
    out, fragments = np.zeros((128, 4), np.float32), np.zeros((128, 8), np.float16)
    for lane, i in np.ndindex(128, 8):
        row = 16 * (lane // 32) + lane % 32 // 4 + (0 if i in (0, 1, 4, 5) else 8)
        fragments[lane, i] = A[row, lane % 4 * 2 + i % 2 + (8 if i > 3 else 0)]
    load = """ld.param.u64 %rd6, [a4]; mul.wide.u32 %rd7, %t, 16; add.s64 %rd6, %rd6, %rd7;
      ld.global.v4.b32 {%r6, %r7, %r8, %r9}, [%rd6];"""
    multiply(wgmma("{%r6, %r7, %r8, %r9}, %rd4, %q2, 1, 1, 0", before=load), out, fragments, swizzle="64")
    np.testing.assert_array_equal(product(out), EXACT)


def multiply_bytes(a: Array, b: Array, words: str, flags: str, start: str, out: Array) -> None:
    """Multiplies 64 x 32 bytes by 8 x 32, k innermost; ``start`` is what the sums begin with."""
    memory = np.zeros(BYTES, np.uint8)
    place = canonical("128", False)
    for matrix, first in ((a, A_START), (b, B_START)):
        for (row, k), value in np.ndenumerate(matrix.view(np.uint8)):
            memory[first + place(row, k // 2) + k % 2] = value
    code = f"""{TENS.replace("0f41200000", start)} setp.lt.u32 %q2, %t, 999; {FENCE};
      wgmma.mma_async.sync.aligned.m64n8k32.{words} {{%r2, %r3, %r4, %r5}}, %rd3, %rd4, %q2{flags};
      {COMMIT}; {WAIT} 0; {STORE}"""
    run_on(memory.view(np.uint32), "128", code, out)


@pytest.mark.parametrize(("left", "right"), [("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e5m2")])
def test_products_of_8_bit_floats(left: str, right: str) -> None:
    rng = np.random.default_rng(3)
    kinds = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
    a = (rng.integers(-7, 8, (64, 32)) / 4).astype(kinds[left])
    b = rng.integers(-7, 8, (8, 32)).astype(kinds[right])
    out = np.zeros((128, 4), np.float32)
    multiply_bytes(a, b, f"f32.{left}.{right}", ", -1, 1", "0f41200000", out)
    np.testing.assert_array_equal(product(out), 10 - a.astype(float) @ b.astype(float).T)


@pytest.mark.parametrize(("left", "right"), [("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("u8", "u8")])
@pytest.mark.parametrize("word", ["", "satfinite."])
def test_products_of_8_bit_integers_wrap_or_saturate(left: str, right: str, word: str) -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.integers(0, 256, (rows, 32), np.uint8) for rows in (64, 8))
    out, start = np.zeros((128, 4), np.uint32), 2**31 - 2_000
    multiply_bytes(a, b, f"{word}s32.{left}.{right}", "", str(start), out)
    views = {"s8": np.int8, "u8": np.uint8}
    total = a.view(views[left]).astype(np.int64) @ b.view(views[right]).astype(np.int64).T + start
    assert (total > 2**31 - 1).any()
    expected = np.clip(total, -(2**31), 2**31 - 1) if word else total.astype(np.int32)
    np.testing.assert_array_equal(accumulator([out[:, i] for i in range(4)], "s32"), expected)


FROM_REGISTERS = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r2, %r3, %r4, %r5}, "
FROM_REGISTERS += "{%r6, %r7, %r8, %r9}, %rd4, %q2, 1, 1, 0;"
MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r2, %r3, %r4, %r5}, %rd3, %rd4, %q2, 1, 1, 0, 0;"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (f"{FENCE}; {MMA} {COMMIT}; {STORE} {WAIT} 0;", None),  # read too early: NaN
        (f"{FENCE}; {MMA} {COMMIT}; mov.b32 %r2, 0; {MMA} {COMMIT}; {WAIT} 0;", Defect.IN_FLIGHT),
        (f"{FENCE}; {MMA} {COMMIT}; st.shared.b32 [0], %r1; {WAIT} 0;", Defect.IN_FLIGHT),
        (f"{FENCE}; {FROM_REGISTERS} {COMMIT}; mov.b32 %r6, 7; {WAIT} 0;", Defect.IN_FLIGHT),
        (f"{MMA} {COMMIT}; {WAIT} 0;", Defect.MISSING_WGMMA_FENCE),
        (f"{FENCE}; {MMA} {COMMIT};", Defect.UNFINISHED),
        (f"st.shared.b32 [0], %r1; bar.sync 0; {FENCE}; {MMA} {COMMIT}; {WAIT} 0;", Defect.MISSING_FENCE),
    ],
)
def test_a_broken_order_is_noticed(code: str, kind: Defect | None) -> None:
    out = np.zeros((128, 4), np.float32)
    found = multiply(code, out)
    if kind is None:
        assert np.isnan(out).all()
    else:
        assert kind in {hazard.kind for hazard in found.races}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (f"setp.lt.u32 %q3, %t, 96; @%q3 {FENCE};", "found 96 of its 128 threads here, allowed all"),
        (f"cvt.u64.u32 %rd7, %t; add.s64 %rd3, %rd3, %rd7; {MMA}", "found different values of descriptor"),
        (f"add.s64 %rd3, %rd3, 4000; {MMA}", "allowed 65536"),
    ],
)
def test_a_wrong_operation_is_a_fault(code: str, reason: str) -> None:
    with pytest.raises(SimulationError, match=reason):
        multiply(code, np.zeros((128, 4), np.float32))


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    "code",
    [
        MMA.replace("f32.f16.f16", "f32.e4m3.e4m3"),
        MMA.replace("m64n8k16.f32.f16.f16", "m64n8k32.f32.e4m3.s8"),
        MMA.replace("m64n8k16.f32.f16.f16", "m64n8k32.f32.s8.s8"),
        MMA.replace("m64n8k16.f32.f16.f16", "m64n8k32.s32.s8.s8"),  # which has no signs
        MMA.replace("m64n8k16.f32.f16.f16", "m64n40k32.s32.s8.s8"),
        MMA.replace("m64n8k16.f32.f16.f16", "m64n8k16.satfinite.f32.f16.f16"),
        MMA.replace("m64n8k16.f32.f16.f16", "m64n8k32.f32.e4m3.e4m3"),  # which is not transposed
        MMA.replace("m64n8k16", "m64n8k8"),
        MMA.replace("m64n8k16", "m64n12k16"),
        MMA.replace("1, 1, 0, 0", "2, 1, 0, 0"),
        MMA.replace("{%r2, %r3, %r4, %r5}", "{%r2, %r3}"),
        "setmaxnreg.inc.sync.aligned.u32 100;",
        MMA.replace("mma_async", "mma_async.sp"),
    ],
)
def test_what_is_not_known_is_refused(code: str) -> None:
    with pytest.raises(UnsupportedInstruction, match="does not know"):
        multiply(code, np.zeros((128, 4), np.float32))
