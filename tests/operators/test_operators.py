"""Operators and conversions against Python's integers and fractions, on both simulated machines.

A table has the operators of two operands in MLIR and in PTX, with their exact results. ``{type}`` is the type
of operands, ``{bits}`` its width: ``s32`` in PTX, ``i32`` in MLIR.
"""

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.default_suite import ALL
from tests.gpu.interpreter.lane_kernels import each_applied
from tests.gpu.ptxsim.ptx.snippets import each_lane, lanes_of, rounded, same_bits

Array = NDArray[Any]
FLOATS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
PRECISIONS = {"f16": "f2", "bf16": "b2", "f32": "f4", "f64": "f8"}


def dtype_of(kind: str) -> "np.dtype[Any]":
    """Returns numpy's type of ``s32``, ``u8``, ``f16``; of integers of one bit that of truths."""
    bits = int(kind.lstrip("subf"))
    integer = "?" if bits == 1 else f"{'i' if kind[0] == 's' else 'u'}{bits // 8}"
    dtype: np.dtype[Any] = np.dtype(FLOATS.get(kind) or integer)
    return dtype


@dataclass(frozen=True)
class Operator:
    """An operator; a machine that lacks it has "" for its text."""

    name: str
    ptx: str
    exact: Callable[[Any, Any], Any]
    sign: str = "su"  # s: reads bits as signed numbers, u: as unsigned ones, su: either gives the same bits
    is_truth: bool = False  # the result is true or false, in PTX 1 or 0

    @property
    def mlir(self) -> str:
        return f"%r = arith.{self.name}{',' if self.is_truth else ''} %a, %b : {{type}}"


def integer(name: str, ptx: str, exact: Callable[[int, int], int], sign: str = "su") -> Operator:
    return Operator(name, f"{ptx} %d, %a, %b;" if ptx else "", exact, sign)


def comparison(name: str, ptx: str, exact: Callable[[Any, Any], bool], sign: str = "su") -> Operator:
    text = f"setp.{ptx}.{{type}} %q, %a, %b; selp.b32 %d, 1, 0, %q;" if ptx else ""
    return Operator(f"cmp{'i' if sign else 'f'} {name}", text, exact, sign, is_truth=True)


def quotient(a: int, b: int) -> int:
    """Returns a / b without its fraction."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


ORDERS = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge")}
INTEGERS = (
    integer("addi", "add.{type}", operator.add),
    integer("subi", "sub.{type}", operator.sub),
    integer("muli", "mul.lo.{type}", operator.mul),
    integer("andi", "and.b{bits}", operator.and_),
    integer("ori", "or.b{bits}", operator.or_),
    integer("xori", "xor.b{bits}", operator.xor),
    *(integer(f"max{sign}i", "max.{type}", max, sign) for sign in "su"),
    *(integer(f"min{sign}i", "min.{type}", min, sign) for sign in "su"),
    comparison("eq", "eq", operator.eq),
    comparison("ne", "ne", operator.ne),
    *(comparison(f"{sign}{name}", name, exact, sign) for sign in "su" for name, exact in ORDERS.items()),
)
# of a divisor that is not 0, nor -1
DIVISIONS = (
    *(integer(f"div{sign}i", "div.{type}", quotient, sign) for sign in "su"),
    *(integer(f"rem{sign}i", "rem.{type}", lambda a, b: a - quotient(a, b) * b, sign) for sign in "su"),
    integer("floordivsi", "", operator.floordiv, "s"),
    *(integer(f"ceildiv{sign}i", "", lambda a, b: -(-a // b), sign) for sign in "su"),
)
# by less than the width; PTX takes larger ones, too
SHIFTS = (
    integer("shli", "shl.b{bits}", operator.lshift),
    *(integer(f"shr{sign}i", "shr.{type}", operator.rshift, sign) for sign in "su"),
)
# exact on fractions; rounded once
ROUNDED = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}
FLOAT_OPERATORS = [Operator(f"{one}f", f"{one}.rn.{{type}} %d, %a, %b;", ROUNDED[one], "") for one in ROUNDED]


def extreme(name: str, ptx: str, order: Any, *, keeps_nan: bool) -> Operator:
    def exact(a: float, b: float) -> float:
        numbers = [each for each in (a, b) if not math.isnan(each)]
        if not numbers or (keeps_nan and len(numbers) < 2):
            return math.nan
        return float(order(numbers, key=lambda each: (each, math.copysign(1, each))))  # -0 is less than 0

    return Operator(name, f"{ptx}.{{type}} %d, %a, %b;", exact, "")


EXTREMES = (
    *(extreme(f"{each.__name__}imumf", f"{each.__name__}.NaN", each, keeps_nan=True) for each in (max, min)),
    *(extreme(f"{order.__name__}numf", order.__name__, order, keeps_nan=False) for order in (max, min)),
)


def ordered(name: str, *, is_true_of_nan: bool) -> Operator:
    def exact(a: float, b: float) -> bool:
        return is_true_of_nan if math.isnan(a) or math.isnan(b) else bool(getattr(operator, name)(a, b))

    return comparison(f"{'u' if is_true_of_nan else 'o'}{name}", f"{name}{'u' * is_true_of_nan}", exact, "")


ORDERINGS = (
    *(ordered(name, is_true_of_nan=nan) for name in (*ORDERS, "eq", "ne") for nan in (False, True)),
    comparison("ord", "num", lambda a, b: not (math.isnan(a) or math.isnan(b)), ""),
    comparison("uno", "nan", lambda a, b: math.isnan(a) or math.isnan(b), ""),
    comparison("false", "", lambda a, b: False, ""),
    comparison("true", "", lambda a, b: True, ""),
)


def is_wider(target: str, source: str) -> bool:
    return int(target.lstrip("subf")) > int(source.lstrip("subf"))


@dataclass(frozen=True)
class Interpreter:
    """Kernels in MLIR: integers have no sign there, an operator says how it reads them."""

    integers: tuple[int, ...] = (1, 8, 16, 32, 64)  # widths in bits
    floats: tuple[str, ...] = ("f16", "bf16", "f32", "f64")
    roundings: tuple[str, ...] = ("rzi",)  # to whole numbers; rni: the nearest, rmi: down, rpi: up

    def results(self, operators: Sequence[Operator], kind: str, a: Array, b: Array) -> list[Array]:
        """Returns the results of operators on operands of a type: ``s32``, ``u8``, ``f16``."""
        named, result = self._named(kind), self._dtype(kind)
        truth = np.dtype(bool)
        lines = [(each.mlir.format(type=named), truth if each.is_truth else result) for each in operators]
        return each_applied(lines, a.astype(result), b.astype(result))

    def converted(self, source: str, target: str, a: Array, mode: str = "rzi") -> Array:
        """Returns numbers of one type as numbers of another; ``mode``: from floats to integers."""
        assert mode == "rzi"
        widens = is_wider(target, source)
        if source in FLOATS:
            name = ("extf" if widens else "truncf") if target in FLOATS else f"fpto{target[0]}i"
        elif target in FLOATS:
            name = f"{source[0]}itofp"
        else:
            name = f"ext{source[0]}i" if widens else "trunci"
        line = f"%r = arith.{name} %a : {self._named(source)} to {self._named(target)}"
        found: Array = each_applied([(line, self._dtype(target))], a.astype(self._dtype(source)))[0]
        return found

    def _named(self, kind: str) -> str:
        return kind if kind in FLOATS else f"i{kind[1:]}"

    def _dtype(self, kind: str) -> "np.dtype[Any]":
        return dtype_of(kind if kind in FLOATS else f"s{kind[1:]}")


@dataclass(frozen=True)
class Ptx:
    integers: tuple[int, ...] = (16, 32, 64)
    floats: tuple[str, ...] = ("f16", "f32", "f64")
    roundings: tuple[str, ...] = ("rzi", "rni", "rmi", "rpi")

    def results(self, operators: Sequence[Operator], kind: str, a: Array, b: Array) -> list[Array]:
        found = []
        for each in operators:
            code, by = each.ptx.format(type=kind, bits=kind[1:]), b.astype(np.uint32) if each in SHIFTS else b
            result, declare = ("u4", ".reg .pred %q;") if each.is_truth else (a.dtype.str, "")
            found.append(each_lane(code, a, by, result=result, declare=declare))
        return found

    def converted(self, source: str, target: str, a: Array, mode: str = "rzi") -> Array:
        of_floats = "" if source in FLOATS and is_wider(target, source) else ".rn"
        how = of_floats if target in FLOATS else f".{mode}" if source in FLOATS else ""
        held = a.view(np.uint16) if source == "bf16" else a
        name = "u2" if target == "bf16" else dtype_of(target).str
        found = each_lane(f"cvt{how}.{target}.{source} %d, %a;", held, result=name)
        return found.view(FLOATS[target]) if target == "bf16" else found


Machine = Interpreter | Ptx
MACHINES: tuple[tuple[Machine, Any], ...] = ((Interpreter(), [pytest.mark.mlir]), (Ptx(), []))


def operators_of(machine: Machine, table: Sequence[Operator]) -> list[Operator]:
    return [each for each in table if each.ptx or isinstance(machine, Interpreter)]


def for_each(cases: Callable[[Machine], Iterable[tuple[Any, ...]]]) -> list[Any]:
    """Returns parameters: each machine with each of its cases."""
    return [
        pytest.param(machine, *case, id="-".join(map(str, (type(machine).__name__, *case))), marks=marks)
        for machine, marks in MACHINES
        for case in cases(machine)
    ]


# Operators of integers.
LANES = 24
INTEGER_TYPES = for_each(lambda machine: [(f"{s}{bits}",) for bits in machine.integers for s in "su"])


def limits(kind: str) -> tuple[int, int]:
    bits = int(kind[1:])
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def numbers(kind: str) -> st.SearchStrategy[list[int]]:
    low, high = limits(kind)
    one = st.integers(low, high) | st.sampled_from([low, high, high // 2, 0])
    return st.lists(one, min_size=LANES, max_size=LANES)


def require(machine: Machine, table: tuple[Operator, ...], kind: str, one: list[int], two: list[int]) -> None:
    mask = (1 << int(kind[1:])) - 1
    of_sign = [each for each in operators_of(machine, table) if kind[0] in each.sign]
    arrays = (np.array(each, dtype_of(kind)) for each in (one, two))
    for each, found in zip(of_sign, machine.results(of_sign, kind, *arrays), strict=True):
        expected = [int(each.exact(a, b)) & mask for a, b in zip(one, two, strict=True)]
        assert [int(value) & mask for value in found] == expected, each.name


@pytest.mark.parametrize(("machine", "kind"), INTEGER_TYPES)
@given(data=st.data())
@settings(max_examples=6)
def test_results_are_those_of_python_cut_to_the_width(machine: Machine, kind: str, data: Any) -> None:
    one, other = (data.draw(numbers(kind)) for _ in range(2))
    if (bits := int(kind[1:])) > 1:
        require(machine, DIVISIONS, kind, one, [each if each not in (0, -1) else 3 for each in other])
        by = data.draw(st.lists(st.integers(0, bits - 1), min_size=LANES, max_size=LANES))
        require(machine, SHIFTS, kind, one, by)
    other[::3] = one[::3]
    require(machine, INTEGERS, kind, one, other)


# Operators of floats against fractions that are rounded once.
KINDS = for_each(lambda machine: [(kind,) for kind in machine.floats])
SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
PAIRS = [*itertools.product(SPECIAL, SPECIAL)]


def stored_floats(listed: Any, kind: str) -> Array:
    with np.errstate(over="ignore"):
        return np.array(listed).astype(FLOATS[kind])


@pytest.mark.parametrize(("machine", "kind"), KINDS)
@given(data=st.data())
@settings(max_examples=8)
def test_results_are_rounded_once(machine: Machine, kind: str, data: Any) -> None:
    """Also where they are denormal, or too large."""
    some = st.lists(st.floats(width=32 if kind != "f64" else 64), min_size=LANES, max_size=LANES)
    a, b = (stored_floats(data.draw(some), kind) for _ in range(2))
    operators = [each for each in FLOAT_OPERATORS if each.name != "divf" or kind in ("f32", "f64")]
    for each, found in zip(operators, machine.results(operators, kind, a, b), strict=True):
        expected = [result(each.exact, float(x), float(y), kind) for x, y in zip(a, b, strict=True)]
        assert same_bits(found, stored_floats(expected, kind)), each.name


def result(exact: Any, a: float, b: float, kind: str) -> float:
    """Returns a result rounded once; where an operand or result is 0 or not a number, that of float64."""
    if math.isfinite(a) and math.isfinite(b) and b and (found := exact(Fraction(a), Fraction(b))):
        return rounded(found, PRECISIONS[kind])
    with np.errstate(all="ignore"):
        return float(exact(np.float64(a), np.float64(b)))


@pytest.mark.parametrize(("machine", "kind"), KINDS)
def test_extremes_and_comparisons_treat_nan_and_zeros_as_they_say(machine: Machine, kind: str) -> None:
    a, b = (stored_floats(each, kind) for each in zip(*PAIRS, strict=True))
    operators = operators_of(machine, EXTREMES + ORDERINGS)
    for each, found in zip(operators, machine.results(operators, kind, a, b), strict=True):
        expected = [each.exact(*pair) for pair in PAIRS]
        stored = np.array(expected, found.dtype) if each.is_truth else stored_floats(expected, kind)
        assert same_bits(found, stored), each.name


# Conversions.
SOURCES = for_each(lambda machine: [(f"{s}{bits}",) for bits in sorted({*machine.integers, 8}) for s in "su"])
WHOLE: dict[str, Callable[[Fraction], int]] = {"rzi": int, "rni": round, "rmi": math.floor, "rpi": math.ceil}
CUTS = for_each(lambda machine: itertools.product(machine.roundings, ("f16", "f32", "f64")))
CLAMPED = [cut for cut in CUTS if isinstance(cut.values[0], Ptx)]
AS_ON_X86 = [cut for cut in CUTS if isinstance(cut.values[0], Interpreter)]
WIDENINGS = [("f16", "f32"), ("f16", "f64"), ("f32", "f64"), ("bf16", "f32")]
TIES = [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 1 + 3 * 2.0**-11]  # of bf16 and of f16


def wrapped(value: int, kind: str) -> int:
    low, _ = limits(kind)
    return (value - low) % (1 << int(kind[1:])) + low


@pytest.mark.parametrize(("machine", "source"), SOURCES)
@settings(max_examples=2)
@given(data=st.data())
def test_integers_are_cut_or_extended_by_their_sign(machine: Machine, source: str, data: Any) -> None:
    listed = data.draw(numbers(source))
    same = {int(source[1:])} if isinstance(machine, Interpreter) else set()  # bits without a sign stay
    for sign, bits in itertools.product("su", {*machine.integers, 8} - same):
        target = f"{sign}{bits}"
        found = machine.converted(source, target, np.array(listed, dtype_of(source)))
        assert [wrapped(int(value), target) for value in found] == [wrapped(n, target) for n in listed]


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(("machine", "source"), SOURCES)
@settings(max_examples=3)
@given(data=st.data())
def test_integers_become_floats_rounded_once(machine: Machine, source: str, data: Any) -> None:
    listed = data.draw(numbers(source))
    for target in ("f16", "f32", "f64"):
        expected = np.array([rounded(Fraction(n), PRECISIONS[target]) for n in listed], FLOATS[target])
        found = machine.converted(source, target, np.array(listed, dtype_of(source)))
        assert same_bits(found, expected), target


def with_large_ones(data: Any, source: str) -> Any:
    a = data.draw(lanes_of(PRECISIONS[source]))
    a[1::3] = np.linspace(-60000, 60000, len(a[1::3])).astype(a.dtype)
    return a


def made_whole(machine: Machine, mode: str, source: str, data: Any) -> Iterator[tuple[str, float, int]]:
    """Yields an integer type, a float, and the machine's integer of it: of each type, for drawn floats."""
    a = with_large_ones(data, source)
    for target in [f"{sign}{bits}" for bits in machine.integers if bits > 1 for sign in "su"]:
        found = machine.converted(source, target, a, mode)
        for value, result in zip(a.tolist(), found.tolist(), strict=True):
            yield target, value, wrapped(result, target)


def as_on_x86(value: float, source: str, target: str) -> int:
    """Returns the integer whose lowest bits are those of a float: of 32 or 64 bits, its least if outside."""
    bits = int(target[1:])
    is_long = bits == 64 or target == "u32" or (target == "u8" and source == "f64")
    half = 2**63 if is_long else 2**31
    if math.isnan(value):
        return -half
    if target == "u64" and value >= half:  # converted less the half, which is added again
        return int(value) if value < 2 * half else 0
    return int(value) if abs(value) < half else -half


@pytest.mark.parametrize(("machine", "mode", "source"), AS_ON_X86)
@settings(max_examples=2)
@given(data=st.data())
def test_floats_become_whole_as_on_x86(machine: Machine, mode: str, source: str, data: Any) -> None:
    for target, value, result in made_whole(machine, mode, source, data):
        assert result == wrapped(as_on_x86(value, source, target), target)


@pytest.mark.parametrize(("machine", "mode", "source"), CLAMPED)
@settings(max_examples=2)
@given(data=st.data())
def test_floats_become_whole_and_are_clamped(machine: Machine, mode: str, source: str, data: Any) -> None:
    for target, value, result in made_whole(machine, mode, source, data):
        low, high = limits(target)
        if math.isnan(value):  # PTX ISA, cvt: 0, but for f64 or 64 bits the highest bit alone
            is_wide = source == "f64" or target.endswith("64")
            assert result == (low or high // 2 + 1 if is_wide else 0)
        elif math.isinf(value):
            assert result == (high if value > 0 else low)
        else:
            assert result == min(max(WHOLE[mode](Fraction(value)), low), high)


@pytest.mark.parametrize("machine", for_each(lambda machine: [()]))
@settings(max_examples=6)
@given(data=st.data())
def test_floats_become_wider_exactly_and_narrower_rounded_once(machine: Machine, data: Any) -> None:
    a, b, halves = (data.draw(lanes_of(kind)) for kind in ("f8", "f4", "u2"))
    b[-4:] = TIES
    patterns = {"f16": halves.view(np.float16), "bf16": halves.view(ml_dtypes.bfloat16), "f32": b}
    with np.errstate(all="ignore"):
        a[::2] = b[::2].astype(np.float64) * (1 + 2.0**-24 + 2.0**-40)
        for narrow, wide in WIDENINGS:
            values = {"f64": a, "f32": b}[wide]
            expected = values.astype(FLOATS[narrow])
            finite = np.isfinite(values) & (values != 0)
            exactly = (Fraction(float(value)) for value in values[finite])
            expected[finite] = [rounded(each, PRECISIONS[narrow]) for each in exactly]
            assert same_bits(machine.converted(wide, narrow, values), expected), narrow
            exact = patterns[narrow].astype(FLOATS[wide])
            assert same_bits(machine.converted(narrow, wide, patterns[narrow]), exact), wide
