"""Constants, selections, indices and bits; other conversions are in the table of ``tests.operators``."""

import math
from typing import Any

import numpy as np
import pytest

from tests.programs.interpreter.lane_kernels import DTYPES, applied, launch
from tests.programs.interpreter.test_scalar_ops import WIDTHS, stored
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir


NUMBERS = [0, 1, -1, 5, 127, -128, 255, 32767, -32768, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]


def cut(number: int, width: int, *, is_signed: bool) -> int:
    """Returns the number that the low bits stand for."""
    low = number % (1 << width)
    return low - (1 << width) if is_signed and low >> (width - 1) else low


@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.parametrize(("name", "is_signed"), [("index_cast", True), ("index_castui", False)])
def test_indices_are_64_bits(name: str, is_signed: bool, kind: str) -> None:
    lines = f"%i = arith.{name} %a : {kind} to index %r = arith.index_cast %i : index to i64"
    found = applied(lines, np.int64, stored(NUMBERS, kind))
    wanted = [cut(number, WIDTHS[kind], is_signed=is_signed) for number in NUMBERS]
    assert found.tolist() == stored(wanted, "i64").tolist()


def test_bits_can_be_read_as_another_type() -> None:
    numbers = np.array([1.0, -2.5, 1e-3], np.float32)
    found = applied("%r = arith.bitcast %a : f32 to i32", np.int32, numbers)
    assert found.tolist() == numbers.view(np.int32).tolist()


def test_a_selection_takes_one_of_two() -> None:
    condition, a, b = np.array([True, False]), np.array([1, 2], np.int16), np.array([3, 4], np.int16)
    assert applied("%r = arith.select %a, %b, %c : i16", np.int16, condition, a, b).tolist() == [1, 4]


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
    text = VECTORS[kind]
    wanted = [{"true": 1.0, "false": 0.0}.get(text) or float(text.replace("false", "0")) for text in text]
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
    widen = {"i": "uitofp" if kind == "i1" else "sitofp", "b": "extf", "f": "extf"}[kind[0]]
    wide = "%e" if kind == "f64" else "%w"
    line = "" if kind == "f64" else f"%w = arith.{widen} %e : {kind} to f64"
    body = f"""%v = arith.constant {constant}
      %t = gpu.thread_id x
      %e = vector.extract %v[%t] : {kind} from vector<{count}x{kind}>
      {line}
      memref.store {wide}, %0[%t] : memref<{count}xf64>"""
    launch(body, found, block=(count, 1, 1))
    return [float(number) for number in found]


def test_another_rounding_is_refused() -> None:
    with pytest.raises(CandidateError, match=r"arith\.truncf at .*allowed to_nearest_even"):
        applied("%r = arith.truncf %a toward_zero : f32 to f16", np.float16, np.zeros(1, np.float32))
