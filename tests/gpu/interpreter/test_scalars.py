"""Numbers beyond the table of ``tests.operators``; branches, loops and calls of lanes that part ways."""

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.gpu.interpreter import lane_kernels
from tests.gpu.interpreter.lane_kernels import DTYPES, applied, each_applied, launch
from tests.gpu.ptxsim.ptx.snippets import rounded
from tests.models.file_check import filled
from tests.operators.test_operators import LANES, PRECISIONS, wrapped
from tests.operators.test_operators import numbers as whole_numbers
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.gpu.interpreter.kernels import LaneLaunch

pytestmark = pytest.mark.mlir
EXTREMES = [0, 1, -1, 5, 127, -128, 255, 32767, -32768, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
RECURSIVE = "func.func @f(%x: i32) -> i32 { %y = func.call @f(%x) : (i32) -> i32 return %y : i32 }"


def floats(kind: str) -> Any:
    drawn = st.floats(-(2.0**50), 2.0**50, width=32 if kind == "f32" else 64, allow_nan=False)
    listed = st.lists(drawn, min_size=LANES, max_size=LANES)
    return listed.map(lambda numbers: np.array(numbers).astype(DTYPES[kind]))


@pytest.mark.parametrize("kind", ["f32", "f64"])
@hypothesis.given(st.data())
@hypothesis.settings(max_examples=20, deadline=None)
def test_a_fused_multiply_add_is_rounded_once(kind: str, data: Any) -> None:
    a, b = data.draw(floats(kind)), data.draw(floats(kind))
    near = data.draw(floats(kind))
    c = np.where(np.arange(LANES) % 2 == 0, -(a * b), near).astype(a.dtype)  # what is left is the rounding
    found = applied(f"%r = math.fma %a, %b, %c : {kind}", DTYPES[kind], a, b, c)
    for x, y, z, r in zip(a, b, c, found, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        if abs(exact) < Fraction(2) ** -900:
            assert abs(float(r)) <= 2.0**-899  # products of halves may vanish in float64
        elif kind == "f32":
            assert float(r) == rounded(exact, PRECISIONS[kind])
        else:
            assert math.isclose(float(r), rounded(exact, PRECISIONS[kind]), rel_tol=2**-52)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_a_remainder_has_the_sign_of_the_dividend_and_a_negation_changes_that_of_zero(kind: str) -> None:
    one, other = (np.array(each).astype(DTYPES[kind]) for each in ([7.5, -7.5, 7.5, -0.0], [2, 2, -2, 1]))
    found = applied(f"%r = arith.remf %a, %b : {kind}", DTYPES[kind], one, other).astype(float)
    np.testing.assert_array_equal(found, [1.5, -1.5, 1.5, -0.0])
    negated = applied(f"%r = arith.negf %a : {kind}", DTYPES[kind], one).astype(float)
    np.testing.assert_array_equal(negated, [-7.5, 7.5, -7.5, 0.0])
    assert np.signbit(negated).tolist() == [True, False, True, False]


# Integer arithmetic beyond the table of ``tests.operators``: wide results, divisions by zero.

WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


def stored(numbers: list[int], kind: str) -> Any:
    if kind == "i1":
        return np.array([number & 1 for number in numbers]).astype(bool)
    return np.array([wrapped(number, f"s{WIDTHS[kind]}") for number in numbers], DTYPES[kind])


@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.parametrize("name", ["mulsi_extended", "mului_extended", "addui_extended"])
@hypothesis.given(st.data())
@hypothesis.settings(max_examples=4, deadline=None)
def test_both_halves_of_a_wide_result_are_right(name: str, kind: str, data: Any) -> None:
    width, is_sum, sign = WIDTHS[kind], name == "addui_extended", "s" if name == "mulsi_extended" else "u"
    one, other = (data.draw(whole_numbers(f"{sign}{width}")) for _ in range(2))
    of_high = "i1" if is_sum else kind
    line = f"arith.{name} %a, %b : {kind}, i1" if is_sum else f"arith.{name} %a, %b : {kind}"
    lines = [(f"%r, %x = {line}", DTYPES[kind]), (f"%x, %r = {line}", DTYPES[of_high])]
    low, high = each_applied(lines, stored(one, kind), stored(other, kind))
    wholes = [a + b if is_sum else a * b for a, b in zip(one, other, strict=True)]
    assert list(low) == list(stored(wholes, kind))
    assert list(high) == list(stored([each >> width for each in wholes], of_high))


@pytest.mark.parametrize("name", ["divsi", "floordivsi", "ceildivsi", "remsi", "divui", "ceildivui", "remui"])
def test_a_division_by_zero_is_a_fault_that_names_its_lane(name: str) -> None:
    ones, divisors = np.ones(4, np.int32), np.array([1, 1, 0, 1], np.int32)
    message = rf"kernel k: arith\.{name} at .*: found a division by zero in block .*, thread \(2, 0, 0\)"
    with pytest.raises(CandidateError, match=message) as caught:
        applied(f"%r = arith.{name} %a, %b : i32", np.int32, ones, divisors)
    assert caught.value.stage is Stage.RUN


def test_a_division_by_zero_is_none_where_no_lane_runs_and_lanes_return_early_or_call() -> None:
    lines = text_beside(__file__, "GUARDED_DIVISION")
    a, b = np.array([7, 8, 9], np.int32), np.array([2, 0, -2], np.int32)
    assert applied(lines, np.int32, a, b).tolist() == [3, 0, -4]
    found = np.zeros(8, np.int64)
    launch(text_beside(__file__, "EARLY_RETURN"), found, block=(8, 1, 1))
    assert found.tolist() == [4, 4, 4, 4, 0, 0, 0, 0]
    surrounding = text_beside(__file__, "FUNCTIONS")
    found = np.array([-1.0, 2.0, 3.0, -4.0], np.float32)
    launch(text_beside(__file__, "CALL"), found, block=(4, 1, 1), surrounding=surrounding)
    assert found.tolist() == [0, 4, 6, 0]
    found = np.zeros((3, 4), np.int64)
    launch(text_beside(__file__, "NEST"), found, block=(1, 1, 1))
    np.testing.assert_array_equal(found, np.arange(3)[:, None] * np.arange(4))


@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.parametrize(("name", "sign"), [("index_cast", "s"), ("index_castui", "u")])
def test_indices_are_64_bits(name: str, sign: str, kind: str) -> None:
    lines = f"%i = arith.{name} %a : {kind} to index %r = arith.index_cast %i : index to i64"
    found = applied(lines, np.int64, stored(EXTREMES, kind))
    wanted = [wrapped(number, f"{sign}{WIDTHS[kind]}") for number in EXTREMES]
    assert found.tolist() == stored(wanted, "i64").tolist()


def test_bits_read_as_another_type_selections_and_other_roundings() -> None:
    numbers = np.array([1.0, -2.5, 1e-3], np.float32)
    found = applied("%r = arith.bitcast %a : f32 to i32", np.int32, numbers)
    assert found.tolist() == numbers.view(np.int32).tolist()
    condition, a, b = np.array([True, False]), np.array([1, 2], np.int16), np.array([3, 4], np.int16)
    assert applied("%r = arith.select %a, %b, %c : i16", np.int16, condition, a, b).tolist() == [1, 4]
    with pytest.raises(CandidateError, match=r"arith\.truncf at .*allowed to_nearest_even"):
        applied("%r = arith.truncf %a toward_zero : f32 to f16", np.float16, np.zeros(1, np.float32))


@pytest.mark.parametrize(
    ("constant", "kind", "value"),
    [
        ("-1.5", "f16", -1.5),
        ("3.0e-2", "bf16", float(np.array(3.0e-2).astype(DTYPES["bf16"]))),
        ("0x7F800000", "f32", math.inf),
        ("255", "i8", -1),
        ("true", "i1", True),
        ("-9223372036854775808", "i64", -(2**63)),
    ],
)
def test_constants_have_their_values(constant: str, kind: str, value: Any) -> None:
    typed = constant if kind == "i1" else f"{constant} : {kind}"
    found = applied(f"%r = arith.constant {typed}", DTYPES[kind], np.zeros(2, np.int32))
    assert float(found[1]) == float(value)


VECTORS = {
    **dict.fromkeys(("f16", "bf16", "f32", "f64", "f8E5M2"), ("1.0", "2.5e-1", "-3.0")),
    **dict.fromkeys(("i8", "i16", "i32", "i64"), ("1", "2", "-3")),
    "i1": ("true", "false", "true"),
}


@pytest.mark.parametrize("kind", VECTORS)
def test_constants_of_vectors_have_their_elements(kind: str) -> None:
    text, truths = VECTORS[kind], {"true": 1.0, "false": 0.0}
    wanted = [truths[each] if each in truths else float(each) for each in text]
    for content, values in ((", ".join(text), wanted), (text[1], [wanted[1]] * 3)):
        brackets = f"[{content}]" if "," in content else content
        assert elements(f"dense<{brackets}> : vector<3x{kind}>", kind, 3) == values


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32"])
def test_constants_of_many_elements_are_printed_as_bits(kind: str) -> None:
    text = ", ".join(f"{number}.5" for number in range(120))
    assert elements(f"dense<[{text}]> : vector<120x{kind}>", kind, 120) == [n + 0.5 for n in range(120)]
    assert elements(f"dense<[0x7F80, 1.0, -2.0]> : vector<3x{kind}>", kind, 3)[1:] == [1, -2]


def elements(constant: str, kind: str, count: int) -> list[float]:
    """Returns a constant vector, read element by element; types that arithmetic lacks are widened."""
    found = np.zeros(count, np.float64)
    widen = {"f64": "bitcast", "i1": "uitofp"}.get(kind, "sitofp" if kind[0] == "i" else "extf")
    text = filled(__file__, "ELEMENTS", constant=constant, kind=kind, count=count, widen=widen)
    launch(text, found, block=(count, 1, 1))
    return [float(number) for number in found]


ULPS = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-51}
ANY = [-3.7, -2.5, -1.5, -0.5, -0.3, 0.0, 0.3, 0.5, 1.0, 1.5, 2.5, 3.7]
POSITIVE = [0.1, 0.5, 1.0, 2.0, 7.25]
UNIT = [-0.9, -0.3, 0.0, 0.4, 0.9]
SMOOTH = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "erf", "erfc", "expm1", "asinh", "atan")
FUNCTIONS: dict[str, tuple[Callable[[float], float], list[float]]] = {
    **{name: (getattr(math, name), ANY) for name in (*SMOOTH, "floor", "ceil", "trunc")},
    **{name: (getattr(math, name), POSITIVE) for name in ("log", "log2", "log10", "log1p", "sqrt")},
    **{name: (getattr(math, name), UNIT) for name in ("asin", "acos", "atanh")},
    "acosh": (math.acosh, [1.0, 2.0, 9.5]),
    "exp2": (lambda x: 2.0**x, ANY),
    "cbrt": (lambda x: math.copysign(abs(x) ** (1 / 3), x), ANY),
    "rsqrt": (lambda x: 1 / math.sqrt(x), POSITIVE),
    "absf": (abs, ANY),
    "round": (lambda x: math.copysign(math.floor(abs(x) + 0.5), x), ANY),
    "roundeven": (round, ANY),
}


@pytest.mark.parametrize("kind", ULPS)
@pytest.mark.parametrize("numbers", [ANY, POSITIVE, UNIT, FUNCTIONS["acosh"][1]])
def test_functions_of_one_number_are_right_but_for_rounding(numbers: list[float], kind: str) -> None:
    functions = {name: function for name, (function, given) in FUNCTIONS.items() if given is numbers}
    given = np.array(numbers).astype(DTYPES[kind])
    lines = [(f"%r = math.{name} %a : {kind}", DTYPES[kind]) for name in functions]
    for (name, function), found in zip(functions.items(), each_applied(lines, given), strict=True):
        wanted = [function(float(number)) for number in given]
        rtol, atol = ULPS[kind], ULPS[kind] * 2.0**-10
        np.testing.assert_allclose(found.astype(float), wanted, rtol, atol, err_msg=name)


def test_functions_of_several_numbers_and_powers_of_integers_are_right() -> None:
    one, other = (np.array(each) for each in ([2.0, 0.5, 3.0], [-1.0, 2.0, 0.0]))
    binary: dict[str, Any] = {"atan2": math.atan2, "copysign": math.copysign, "powf": math.pow}
    for name, function in binary.items():
        found = applied(f"%r = math.{name} %a, %b : f64", np.float64, one, other)
        wanted = np.array(list(map(function, one, other)))
        np.testing.assert_allclose(found, wanted, rtol=2**-51, err_msg=name)
    numbers = [np.array(each, np.float32) for each in ([-2.0, 0.5, 9.0], [-1.0] * 3, [1.0] * 3)]
    assert applied("%r = math.clampf %a to [%b, %c] : f32", np.float32, *numbers).tolist() == [-1, 0.5, 1]
    for names, of_angle in (("%r, %x", math.sin), ("%x, %r", math.cos)):
        found = applied(f"{names} = math.sincos %a : f64", np.float64, other)
        np.testing.assert_allclose(found, np.array(list(map(of_angle, other))), rtol=1e-15)
    base = np.array([3, -2, 1, -1, -1, 5, 0, 7], np.int32)
    exponent = np.array([4, 31, -5, -3, -4, -1, 0, 40], np.int32)
    found = applied("%r = math.ipowi %a, %b : i32", np.int32, base, exponent)
    last = (7**40 + 2**31) % 2**32 - 2**31
    assert found.tolist() == [81, -(2**31), 1, -1, 1, 0, 1, last]
    exponent = np.array([2, 3, 4, 5, -1, -2, 1, 0], np.int32)
    power = applied("%r = math.fpowi %a, %b : f32, i32", np.float32, np.float32(base), exponent)
    np.testing.assert_allclose(power, [9, -8, 1, -1, -1, 0.04, 0, 1], rtol=2**-23)


@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "i64"])
def test_bits_are_counted(kind: str) -> None:
    dtype, width = DTYPES[kind], int(kind[1:])
    numbers = np.array([0, 1, 2, 12, 100, -1, -128], dtype)
    patterns = [int(number) % (1 << width) for number in numbers]
    counted = {
        "ctpop": [bits.bit_count() for bits in patterns],
        "ctlz": [width - bits.bit_length() for bits in patterns],
        "cttz": [width if bits == 0 else (bits & -bits).bit_length() - 1 for bits in patterns],
        "absi": np.abs(numbers).tolist(),
    }
    for name, wanted in counted.items():
        assert applied(f"%r = math.{name} %a : {kind}", dtype, numbers).tolist() == wanted, name


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_kinds_of_numbers_are_distinguished(kind: str) -> None:
    tiny = {"f16": 2.0**-20, "bf16": 2.0**-130, "f32": 2.0**-140, "f64": 2.0**-1040}[kind]
    numbers = np.array([0.0, 1.0, math.nan, math.inf, -math.inf, tiny]).astype(DTYPES[kind])
    wanted = {"isnan": "..1...", "isinf": "...11.", "isfinite": "11...1", "isnormal": ".1...."}
    for name, bits in wanted.items():
        found = applied(f"%r = math.{name} %a : {kind}", bool, numbers)
        assert found.tolist() == [bit == "1" for bit in bits], name


CONSTANTS = "\n".join(f"%c{n} = arith.constant {n} : i64" for n in range(8))
NUMBERS = np.array([1, 2, 3, 6, 7, 9, 27, 97, 5, 16], np.int64)
FOR = text_beside(__file__, "FOR")
SMALL = st.lists(st.integers(-20, 20), min_size=12, max_size=12)
STEPS = st.lists(st.integers(1, 7), min_size=12, max_size=12)


def collatz(number: int) -> int:
    steps = 0
    while number != 1:
        number = 3 * number + 1 if number % 2 else number // 2
        steps += 1
    return steps


LOOPS: dict[str, Any] = {"WHILE": collatz, "GRAPH": collatz, "SQUARES": lambda x: (x - 1) ** 2}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_and_a_graph_of_blocks_end_in_each_lane_and_what_it_has_computed_stays(name: str) -> None:
    lines = f"{CONSTANTS}\n{text_beside(__file__, name)}"
    assert applied(lines, np.int64, NUMBERS).tolist() == [LOOPS[name](int(x)) for x in NUMBERS]


@hypothesis.given(SMALL, SMALL, STEPS)
@hypothesis.settings(max_examples=20, deadline=None)
def test_each_lane_counts_by_its_own_bounds(low: list[int], high: list[int], by: list[int]) -> None:
    found = applied(f"{CONSTANTS}\n{FOR}", np.int64, *(np.array(each) for each in (low, high, by)))
    spans = zip(low, high, by, strict=True)
    assert found.tolist() == [sum(i * i for i in range(*span)) for span in spans]


def test_unsigned_bounds_are_compared_as_such_and_a_step_below_one_is_a_fault() -> None:
    lines = text_beside(__file__, "UNSIGNED")
    found = applied(lines, np.int8, np.array([0, 5, -56], np.int8))
    assert found.tolist() == [0, 5, -56]
    numbers = [np.array(each) for each in ([0, 0], [4, 4], [1, 0])]
    message = r"scf\.for at .*: found step 0, allowed above 0, in .*thread \(1,"
    with pytest.raises(CandidateError, match=message) as caught:
        applied(f"{CONSTANTS}\n{FOR}", np.int64, *numbers)
    assert caught.value.stage is Stage.RUN


@pytest.mark.parametrize("name", ["SWITCH", "JUMPS"])
def test_a_switch_takes_the_case_of_each_lane(name: str) -> None:
    found = applied(f"{CONSTANTS}\n{text_beside(__file__, name)}", np.int64, np.array([2, 7, 3, 2, -7]))
    assert found.tolist() == [1, 14, 5, 1, 5]


@pytest.mark.parametrize(
    ("surrounding", "message"),
    [
        ("func.func private @f(i32) -> i32", r"func\.call at .*: found @f, which has no body"),
        (RECURSIVE, r"func\.call at .*: found @f, which calls itself"),
    ],
)
def test_a_call_that_leads_nowhere_is_refused(surrounding: str, message: str) -> None:
    body = "%z = arith.constant 0 : i32 %r = func.call @f(%z) : (i32) -> i32"
    with pytest.raises(CandidateError, match=message) as caught:
        launch(body, surrounding=surrounding)
    assert caught.value.stage is Stage.COMPILE


def test_an_assertion_names_the_lane_that_fails() -> None:
    bound = "%t = gpu.thread_id x %c3 = arith.constant 3 : index %p = arith.cmpi ult, %t, %c3 : index"
    message = r"cf\.assert at .*found false, 'too far', in .*thread \(3, 0, 0\)"
    with pytest.raises(CandidateError, match=message):
        launch(f'{bound} cf.assert %p, "too far"')


def kernel(kind: str = "memref<4xf32>") -> Any:
    text = filled(__file__, "SCALE", kind=kind)
    return lane_kernels.kernel_of(lane_kernels.module_text(text, (kind, "f32")))


def options(*numbers: int) -> list[bytes]:
    return [struct.pack("<q", number) for number in numbers]


def launched(one: Any, contents: list[bytes]) -> None:
    one.launch_bytes(LaneLaunch((1, 1, 1), (4, 1, 1)), contents)


@pytest.mark.parametrize("is_bare", [True, False])
def test_a_memref_is_an_address_or_a_descriptor(is_bare: bool) -> None:
    a = np.arange(4, dtype=np.float32)
    address = a.ctypes.data
    memref = options(address) if is_bare else options(address, address, 0, 4, 1)
    launched(kernel(), [*memref, struct.pack("<f", 3.0)])
    assert a.tolist() == [0, 3, 6, 9]


def test_a_descriptor_reports_offset_and_strides_and_the_longest_known_dimension_the_terms() -> None:
    a = np.arange(9, dtype=np.float32)
    address = a.ctypes.data
    dynamic = kernel("memref<?xf32, strided<[?], offset: ?>>")
    launched(dynamic, [*options(address, address, 1, 4, 2), struct.pack("<f", 10.0)])
    assert a.tolist() == [0, 10, 2, 30, 4, 50, 6, 70, 8]
    assert dynamic.pointers([*options(address, address, 1, 4, 2), bytes(4)]) == [(address + 4, "f32")]
    assert (kernel("memref<40xf32>").terms, kernel("memref<?xf32>").terms) == (40, 1)


@pytest.mark.parametrize(
    ("size", "contents", "message"),
    [
        ("4", options(0, 0, 0), "found 3 parameters, allowed 6"),
        ("?", [*options(16), bytes(4)], "found an address alone, allowed a descriptor"),
        ("4", [*options(16), bytes(2)], "found 2 bytes, allowed 4"),
    ],
)
def test_what_does_not_fit_is_refused(size: str, contents: list[bytes], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        launched(kernel(f"memref<{size}xf32>"), contents)
