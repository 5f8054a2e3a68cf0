from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.simulator.ptx.snippets import each_lane, lanes_of, rounded, same_bits

Array = NDArray[Any]
TYPES = {"f16": "f2", "f32": "f4", "f64": "f8"}


def expect(found: Array, dtype: str, function: Callable[..., Any], *inputs: Array) -> None:
    """Compares with the function on fractions, rounded once; on floats where one is no number."""
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


@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_packed_halves_are_two_numbers(type_: str) -> None:
    half: Any = np.float16 if type_ == "f16" else ml_dtypes.bfloat16
    a, b, c = (np.array(values).astype(half) for values in ([1, 2, 3, 4], [0.5, -1, 8, 0.25], [1, 1, -2, 2]))
    found = each_lane(
        f"fma.rn.{type_}x2 %d, %a, %b, %c;", *(x.view(np.uint32) for x in (a, b, c)), result="u4"
    )
    assert found.view(half).astype(float).tolist() == [1.5, -1.0, 22.0, 3.0]
    found = each_lane(f"add.rn.{type_}x2 %d, %a, %b;", a.view(np.uint32), b.view(np.uint32), result="u4")
    assert found.view(half).astype(float).tolist() == [1.5, 1.0, 11.0, 4.25]
    found = each_lane(f"mul.rn.{type_}x2 %d, %a, 0x0;", a.view(np.uint32), result="u4")
    assert found.view(half).astype(float).tolist() == [0.0] * 4


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
