"""Arithmetic of floats; comparisons, conversions, numbers in the text and special registers."""

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gpu.ptxsim.instructions.test_integers import numpy_name
from tests.gpu.ptxsim.ptx.snippets import Array, each_lane, lanes_of, rounded, run, same_bits

ROUNDED = {"rn": [1, 1, -1, -1], "rz": [1, 1, -1, -1], "rm": [1, 1, -2, -2], "rp": [2, 2, -1, -1]}
VALUES = {"0f3FC00000": 1.5, "0xFF": 255, "-1": -1, "017": 15, "0b101": 5, "1.5": 1.5}
TYPES = {"f16": "f2", "f32": "f4", "f64": "f8"}
INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
UNSIGNED = {"lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}
PREDICATES = ".reg .pred %q, %s, %u;"


def expect(found: Array, dtype: str, function: Callable[..., Any], *inputs: Array) -> None:
    """Compares with the function on fractions, rounded once; on floats where one is not a number."""
    expected = np.zeros(len(found), dtype)
    with np.errstate(all="ignore"):
        for lane in range(len(found)):
            values = [float(array[lane]) for array in inputs]
            plain = function(*(np.float64(value) for value in values))
            if np.isfinite(values).all() and (exact := function(*map(Fraction, values))) != 0:
                plain = rounded(exact, dtype)
            expected[lane] = plain
    assert same_bits(found, expected)


@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=8)
@given(data=st.data())
def test_fma_is_rounded_once(type_: str, data: st.DataObject) -> None:
    dtype = TYPES[type_]
    a, b, c = (np.roll(data.draw(lanes_of(dtype)), shift) for shift in (0, 3, 7))
    with np.errstate(all="ignore"):
        c[::2] = -(a * b)[::2]  # cancels: what is left is the rounding of the product
    found = each_lane(f"fma.rn.{type_} %d, %a, %b, %c;", a, b, c, result=dtype)
    expect(found, dtype, lambda x, y, z: x * y + z, a, b, c)


def test_fma_of_f32_does_not_round_twice() -> None:
    """The product is halfway between two float32; what is added decides, too small for a float64 sum."""
    unit = 2.0**-12
    a = np.array([1 + unit, 1 + unit, 1 + unit], np.float32)
    b = np.array([1 + unit, 1 + 3 * unit, 1 + unit], np.float32)
    c = np.array([2.0**-60, -(2.0**-60), 0], np.float32)
    found = each_lane("fma.rn.f32 %d, %a, %b, %c;", a, b, c, result="f4")
    assert found.tolist() == [1 + 2 * unit + 2.0**-23, 1 + 4 * unit + 2.0**-23, 1 + 2 * unit]
    expect(found, "f4", lambda x, y, z: x * y + z, a, b, c)


@settings(max_examples=6)
@given(a=lanes_of("u2"), b=lanes_of("u2"), c=lanes_of("u2"))
def test_fma_of_bf16_is_rounded_once(a: Array, b: Array, c: Array) -> None:
    x, y, z = (array.view(ml_dtypes.bfloat16).astype(np.float32) for array in (a, b, c))
    found = each_lane("fma.rn.bf16 %d, %a, %b, %c;", a, b, c, result="u2").view(ml_dtypes.bfloat16)
    for lane in range(len(a)):
        values = [float(array[lane]) for array in (x, y, z)]
        if not np.isfinite(values).all():
            continue
        p, q, r = map(Fraction, values)
        assert float(found[lane]) == rounded(p * q + r, "b2")


@pytest.mark.parametrize(
    ("type_", "number", "register"),
    [("f16", np.float16, "u4"), ("bf16", ml_dtypes.bfloat16, "u4"), ("f32", np.float32, "u8")],
)
def test_packed_numbers_are_two(type_: str, number: Any, register: str) -> None:
    numbers = ([1, 2, 3, 4], [0.5, -1, 8, 0.25], [1, 1, -2, 2])
    a, b, c = (np.array(each).astype(number).view(register) for each in numbers)
    for code, operands, expected in (
        (f"fma.rn.{type_}x2 %d, %a, %b, %c;", (a, b, c), [1.5, -1.0, 22.0, 3.0]),
        (f"add.rn.{type_}x2 %d, %a, %b;", (a, b), [1.5, 1.0, 11.0, 4.25]),
        (f"mul.rn.{type_}x2 %d, %a, 0x0;", (a,), [0.0] * 4),
    ):
        assert each_lane(code, *operands, result=register).view(number).astype(float).tolist() == expected


def test_packed_f32_are_flushed_and_rounded_each_as_alone() -> None:
    a = np.array([2.0**-140, 1.0, 2.0**-140, 3.0], np.float32)
    b = np.array([1.0, 2.0**-24, -0.0, 2.0**-22], np.float32)
    for ftz in ("", ".ftz"):
        packed = each_lane(f"add.rn{ftz}.f32x2 %d, %a, %b;", a.view("u8"), b.view("u8"), result="u8")
        alone = each_lane(f"add.rn{ftz}.f32 %d, %a, %b;", a, b, result="f4")
        assert packed.view(np.float32).tolist() == alone.tolist()


@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=3)
@given(data=st.data())
def test_abs_neg_and_copysign_change_the_sign_alone(type_: str, data: st.DataObject) -> None:
    a = data.draw(lanes_of(TYPES[type_]))
    raw = a.view(f"u{a.itemsize}")
    sign = raw.dtype.type(1) << raw.dtype.type(8 * a.itemsize - 1)
    for name, expected in (("abs", raw & ~sign), ("neg", raw ^ sign)):
        found = each_lane(f"{name}.{type_} %d, %a;", raw, result=raw.dtype.str)
        np.testing.assert_array_equal(found, expected)
    one, other = np.array([-1, 2, -0.0], np.float32), np.array([3, -4, 5], np.float32)
    assert each_lane("copysign.f32 %d, %a, %b;", one, other, result="f4").tolist() == [-3, 4, -5]


@settings(max_examples=4)
@given(data=st.data())
def test_roots_and_reciprocals_are_rounded_once(data: st.DataObject) -> None:
    a = data.draw(lanes_of("f4"))
    with np.errstate(all="ignore"):
        assert same_bits(each_lane("sqrt.rn.f32 %d, %a;", a, result="f4"), np.sqrt(a))
        assert same_bits(each_lane("rcp.rn.f32 %d, %a;", a, result="f4"), np.float32(1) / a)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        *(("ex2", np.exp2), ("lg2", np.log2), ("sin", np.sin), ("cos", np.cos), ("tanh", np.tanh)),
        *(("rcp", np.reciprocal), ("rsqrt", lambda x: x**-0.5), ("sqrt", np.sqrt)),
    ],
)
def test_approximations_are_within_a_unit(name: str, function: Callable[[Array], Array]) -> None:
    a = np.linspace(0.125, 3, 64, dtype=np.float32)
    found = each_lane(f"{name}.approx.f32 %d, %a;", a, result="f4")
    np.testing.assert_allclose(found, function(a.astype(np.float64)), rtol=2.0**-23, atol=0)


def test_saturation_relu_and_flushing() -> None:
    a = np.array([-1, 0.5, 2, np.nan, 1e-40, -1e-40], np.float32)
    zero = np.zeros_like(a)
    found = each_lane("add.sat.f32 %d, %a, %b;", a, zero, result="f4")
    assert found.tolist() == [0, 0.5, 1, 0, a[4], 0]
    flushed = each_lane("add.ftz.f32 %d, %a, %b;", a, -zero, result="f4")
    assert (flushed[4], np.signbit(flushed[5])) == (0, True)
    halves = np.array([-1, 2], np.float16)
    found = each_lane("fma.rn.relu.f16 %d, %a, %b, %c;", halves, halves * 0 + 1, halves * 0, result="f2")
    assert found.tolist() == [0, 2]


def test_nan_is_the_integer_of_the_isa_and_subnormals_of_ftz_are_zero_before_anything_else() -> None:
    for target, source, number in (
        *(("s32", "f32", 0), ("u64", "f32", 1 << 63), ("s64", "f32", -(1 << 63))),
        *(("s32", "f64", -(1 << 31)), ("u32", "f64", 1 << 31)),
    ):
        nan = np.array([np.nan], f"f{int(source[1:]) // 8}")
        found = each_lane(f"cvt.rzi.{target}.{source} %d, %a;", nan, result=numpy_name(target))
        assert found.tolist() == [number]
    tiny = np.array([1e-40, -1e-40], np.float32)
    assert each_lane("cvt.rpi.ftz.s32.f32 %d, %a;", tiny, result="i4").tolist() == [0, 0]
    assert each_lane("cvt.rpi.s32.f32 %d, %a;", tiny, result="i4").tolist() == [1, 0]
    assert each_lane("set.eq.ftz.u32.f32 %d, %a, 0f00000000;", tiny, result="u4").tolist() == [2**32 - 1] * 2
    assert each_lane("slct.ftz.u32.f32 %d, 7, 9, %a;", tiny, result="u4").tolist() == [7, 7]
    assert each_lane("cvt.rn.ftz.f32.f64 %d, %a;", tiny.astype(np.float64), result="f4").tolist() == [0, 0]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("source", INTEGERS)
@settings(max_examples=2)
@given(data=st.data())
def test_integers_are_clamped(source: str, data: st.DataObject) -> None:
    a = data.draw(lanes_of(numpy_name(source)))
    for target in INTEGERS:
        found = each_lane(f"cvt.sat.{target}.{source} %d, %a;", a, result=numpy_name(target))
        limits = np.iinfo(numpy_name(target))
        assert found.tolist() == [min(max(value, int(limits.min)), int(limits.max)) for value in a.tolist()]


@pytest.mark.parametrize("mode", ROUNDED)
def test_directed_rounding(mode: str) -> None:
    """1 and 2 stand for the two neighbours of 1 + a quarter of f16's unit."""
    unit = 2.0**-10
    a = np.array([1 + unit / 4, 1 + unit / 2, -1 - unit / 4, -1 - unit / 2], np.float32)
    found = each_lane(f"cvt.{mode}.f16.f32 %d, %a;", a, result="f2").astype(np.float64)
    assert found.tolist() == [np.sign(e) * (1 + (abs(e) - 1) * unit) for e in ROUNDED[mode]]


def test_rounding_towards_zero_does_not_overflow_and_whole_floats_stay_floats() -> None:
    a = np.array([1e6, -1e6, np.inf], np.float32)
    assert each_lane("cvt.rz.f16.f32 %d, %a;", a, result="f2").tolist() == [65504, -65504, np.inf]
    assert each_lane("cvt.rn.f16.f32 %d, %a;", a, result="f2").tolist() == [np.inf, -np.inf, np.inf]
    a = np.array([2.5, 3.5, -2.5, -0.3], np.float32)
    assert each_lane("cvt.rni.f32.f32 %d, %a;", a, result="f4").tolist() == [2, 4, -2, 0]
    assert each_lane("cvt.rmi.f32.f32 %d, %a;", a, result="f4").tolist() == [2, 3, -3, -1]


def test_masks_of_lanes_and_a_register_that_nothing_has_written_is_nan() -> None:
    zeros = np.zeros(32, "u4")
    for name, mask in {"eq": 0x20, "lt": 0x1F, "le": 0x3F, "gt": 0xFFFFFFC0, "ge": 0xFFFFFFE0}.items():
        assert each_lane(f"mov.u32 %d, %lanemask_{name};", zeros, result="u4")[5] == mask
    unwritten = each_lane("add.f32 %d, %u, 0f3F800000;", zeros, result="f4", declare=".reg .f32 %u;")
    assert np.isnan(unwritten).all()


@settings(max_examples=6)
@given(a=lanes_of("f4"))
def test_tf32_keeps_ten_bits_ties_away_from_zero(a: Array) -> None:
    found = each_lane("cvt.rna.tf32.f32 %d, %a;", a, result="u4")
    finite = np.isfinite(a) & (np.abs(a) < 3e38)
    expected = (a.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    np.testing.assert_array_equal(found[finite], expected[finite])


@pytest.mark.parametrize(("type_", "half"), [("f16x2", np.float16), ("bf16x2", ml_dtypes.bfloat16)])
@settings(max_examples=3)
@given(data=st.data())
def test_the_first_of_a_pair_goes_above(type_: str, half: Any, data: st.DataObject) -> None:
    a, b = data.draw(lanes_of("f4")), data.draw(lanes_of("f4"))[::-1]
    with np.errstate(all="ignore"):
        high, low = (x.astype(half).view(np.uint16).astype(np.uint32) for x in (a, b))
        zeroed = [np.where(x < 0, np.float32(0), x).astype(half).view(np.uint16) for x in (a, b)]
    number = ~(np.isnan(a) | np.isnan(b))
    found = each_lane(f"cvt.rn.{type_}.f32 %d, %a, %b;", a, b, result="u4")
    np.testing.assert_array_equal(found[number], (high << 16 | low)[number])
    found = each_lane(f"cvt.rn.relu.{type_}.f32 %d, %a, %b;", a, b, result="u4")
    high, low = (x.astype(np.uint32) for x in zeroed)
    np.testing.assert_array_equal(found[number], (high << 16 | low)[number])


@pytest.mark.parametrize("space", ["shared", "local", "global"])
def test_generic_addresses_and_back(space: str) -> None:
    a = np.array([16, 1 << 40 | 8], np.uint64) if space == "global" else np.array([16, 1024], np.uint64)
    code = f"""cvta.{space}.u64 %b, %a; cvta.to.{space}.u64 %c, %b; isspacep.{space} %q, %b;
      setp.eq.and.u64 %q, %a, %c, %q; selp.b32 %d, 1, 0, %q;"""
    assert each_lane(code, a, result="u4", declare=".reg .b64 %b, %c; .reg .pred %q;").tolist() == [1, 1]


@settings(max_examples=3)
@given(a=lanes_of("u8"))
def test_registers_are_cut_into_parts_and_joined(a: Array) -> None:
    declare = ".reg .b32 %l, %h; .reg .b16 %q<4>;"
    swap = "mov.b64 {%l, %h}, %a; mov.b64 %d, {%h, %l};"
    np.testing.assert_array_equal(each_lane(swap, a, result="u8", declare=declare), a << 32 | a >> 32)
    reverse = "mov.b64 {%q0, %q1, %q2, %q3}, %a; mov.b64 %d, {%q3, %q2, %q1, %q0};"
    expected = a.view(np.uint16).reshape(-1, 4)[:, ::-1].copy().view(np.uint64)[:, 0]
    np.testing.assert_array_equal(each_lane(reverse, a, result="u8", declare=declare), expected)
    np.testing.assert_array_equal(each_lane("mov.b64 {_, %d}, %a;", a, result="u4"), a >> 32)


@pytest.mark.parametrize(("text", "value"), VALUES.items())
def test_numbers_in_the_text(text: str, value: float) -> None:
    dtype = "f4" if "f3" in text or "." in text else "i4"
    type_ = "f32" if dtype == "f4" else "s32"
    assert each_lane(f"mov.{type_} %d, {text};", np.zeros(2, "u4"), result=dtype).tolist() == [value] * 2


def test_special_registers_report_the_thread() -> None:
    out = np.zeros((2, 3, 40, 5), np.uint32)
    names = ("tid.x", "ntid.x", "ctaid.y", "laneid", "warpid")
    texts = (f"mov.u32 %r{i}, %{name}; st.global.u32 [%rd1+{4 * i}], %r{i};" for i, name in enumerate(names))
    code = f"""mov.u32 %r6, %ctaid.y; mov.u32 %r7, %nctaid.x; mad.lo.u32 %r6, %r6, %r7, %b;
      mad.lo.u32 %r6, %r6, 40, %t; mul.wide.u32 %rd1, %r6, 20; add.s64 %rd1, %rd1, %p0; {"".join(texts)}"""
    run(code, out, threads=40, grid=(3, 2, 1))
    for block in np.ndindex(2, 3):
        for thread in range(40):
            assert out[block][thread].tolist() == [thread, 40, block[0], thread % 32, thread // 32]


@pytest.mark.parametrize("type_", ["u16", "u32", "u64"])
def test_other_names_of_unsigned_comparisons(type_: str) -> None:
    a, b = (np.array(each, f"u{int(type_[1:]) // 8}") for each in ([0, 1, 2, 65535], [1, 1, 1, 0]))
    for name, function in UNSIGNED.items():
        code = f"setp.{name}.{type_} %q, %a, %b; selp.b32 %d, 1, 0, %q;"
        assert each_lane(code, a, b, result="u4", declare=PREDICATES).tolist() == function(a, b).tolist()


@pytest.mark.parametrize(("word", "function"), [("and", "__and__"), ("or", "__or__"), ("xor", "__xor__")])
def test_a_combination_applies_to_both_results(word: str, function: str) -> None:
    a = np.arange(8, dtype=np.uint32)
    third = (a & 1).astype(bool)
    code = f"""setp.eq.b32 %u, %b, 1; setp.lt.{word}.u32 %q|%s, %a, 4, %u;
      selp.b32 %d, 1, 0, %q; selp.b32 %c, 2, 0, %s; add.u32 %d, %d, %c;"""
    found = each_lane(code, a, a & 1, result="u4", declare=f"{PREDICATES} .reg .b32 %c;")
    less = a < 4
    assert (found & 1 == 1).tolist() == getattr(less, function)(third).tolist()
    assert (found & 2 == 2).tolist() == getattr(~less, function)(third).tolist()


def test_packed_halves_give_a_predicate_each() -> None:
    a, b = np.array([1, 5, 7, 0], np.float16), np.array([2, 4, 7, 1], np.float16)
    code = "setp.lt.f16x2 %q|%s, %a, %b; selp.b32 %d, 1, 0, %q; selp.b32 %c, 2, 0, %s; add.u32 %d, %d, %c;"
    declare = f"{PREDICATES} .reg .b32 %c;"
    found = each_lane(code, a.view(np.uint32), b.view(np.uint32), result="u4", declare=declare)
    assert found.tolist() == [1, 2]


def test_values_instead_of_predicates() -> None:
    a = np.array([1, 2, 3], np.int32)
    assert each_lane("set.ge.u32.s32 %d, %a, 2;", a, result="u4").tolist() == [0, 0xFFFFFFFF, 0xFFFFFFFF]
    assert each_lane("set.ge.f32.s32 %d, %a, 2;", a, result="f4").tolist() == [0, 1, 1]
    signs = np.array([-1, 0, 1], np.int32)
    assert each_lane("slct.b32.s32 %d, %a, 9, %b;", a, signs, result="u4").tolist() == [9, 2, 3]


def test_properties_of_floats() -> None:
    a = np.array([0, -1.5, np.inf, np.nan, 1e-40], np.float32)
    properties = {"finite": [1, 1, 0, 0, 1], "infinite": [0, 0, 1, 0, 0], "number": [1, 1, 1, 0, 1]}
    properties |= {"notanumber": [0, 0, 0, 1, 0], "normal": [1, 1, 0, 0, 0], "subnormal": [0, 0, 0, 0, 1]}
    for name, expected in properties.items():
        code = f"testp.{name}.f32 %q, %a; selp.b32 %d, 1, 0, %q;"
        assert each_lane(code, a, result="u4", declare=PREDICATES).tolist() == expected, name
