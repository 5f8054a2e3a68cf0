"""Steps of constants, selections, conversions between number types, and the math dialect."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tuner.core.numpy_types import DType, as_float, rounded_to_zero
from tuner.gpu.interpreter.arithmetic import elementwise, of_result, step_of
from tuner.gpu.interpreter.decoding import Decode, FunctionScope, LaneFrame, Step
from tuner.gpu.interpreter.lanes import BOOL, Array, merged, signed, to_integer, unsigned
from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.reading import unsupported

F64 = np.dtype(np.float64)
NUMBER = re.compile(r"0x[0-9A-F]+|-?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?")  # a number in MLIR's printed form
NEAREST = "0 : i32"  # arith's rounding mode to_nearest_even
Function = Callable[..., Array]
BITS_OF_BYTE = np.array([number.bit_count() for number in range(256)], np.uint8)


def constant(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``arith.constant``: stores the constant, the same for all lanes."""
    value = constant_of(op, scope)
    return step_of(op, scope, lambda: value)


def constant_of(op: Op, scope: FunctionScope) -> Array:
    """Returns the value of an ``arith.constant`` or ``memref.global`` as an array of shape (1, 1, *shape).

    Raises CandidateError(COMPILE) for an attribute that is neither a number nor a constant with data.
    """
    attribute = op.attributes["value" if "value" in op.attributes else "initial_value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        type_ = attribute.type
        return dense(attribute, scope.element(op, type_.element_type).dtype, tuple(type_.shape))[None, None]
    if (array := scope.resource(attribute)) is not None:
        return array[None, None]
    if not isinstance(attribute, ir.IntegerAttr | ir.BoolAttr | ir.FloatAttr):
        raise unsupported(op, str(attribute)[:80], "numbers and dense<...>")
    dtype = scope.element(op, attribute.type).dtype
    return np.full((1, 1), _wrapped(attribute.value, dtype)).astype(dtype)


def dense(attribute: Any, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Returns the elements of an MLIR ``dense<...>`` attribute as an array of this dtype and shape."""
    if attribute.is_splat:
        return np.full(shape, _wrapped(attribute.get_splat_value().value, dtype)).astype(dtype)
    if dtype.kind in "ib":
        return np.array([_wrapped(number, dtype) for number in attribute]).astype(dtype).reshape(shape)
    if dtype.isbuiltin == 1:
        return np.array(attribute).astype(dtype).reshape(shape)
    return _printed(str(attribute), dtype).reshape(shape)


def _printed(text: str, dtype: DType) -> Array:
    """Parses printed elements of a type that numpy lacks; MLIR prints many of these as hexadecimal bits."""
    contents = text.removeprefix("dense<").rpartition("> : ")[0]
    if (bits := re.match(r'"0x([0-9A-F]+)"', contents)) is not None:
        return np.frombuffer(bytes.fromhex(bits[1]), dtype)
    whole = np.dtype(f"u{dtype.itemsize}")
    numbers = [
        np.array([int(word, 16)], whole).view(dtype) if word.startswith("0x") else np.array([word], F64)
        for word in NUMBER.findall(contents)
    ]
    return np.concatenate([number.astype(dtype) for number in numbers])


def _wrapped(value: Any, dtype: DType) -> Any:
    if dtype == BOOL:
        return bool(value)
    if dtype.kind != "i":
        return float(value)
    half = 1 << (8 * dtype.itemsize - 1)
    return (int(value) + half) % (2 * half) - half


def select(condition: Array, if_true: Any, if_false: Any) -> Any:
    """Returns ``if_true`` in the lanes or elements where ``condition`` is true, else ``if_false``.

    ``condition``: an array of shape (blocks, threads), or of the shape of the values, which are vectors then.
    """
    if condition.ndim > 2:
        return np.where(condition, if_true, if_false)
    return merged(condition, if_true, if_false)


def to_float(read: Callable[[Array], Array]) -> Callable[[DType], Callable[[Array], Array]]:
    """Returns a function that gives, for a float dtype, the conversion of integers to it.

    ``read`` first makes the integers signed or unsigned.
    """
    return lambda dtype: lambda values: as_float(read(values), dtype)


def from_float(dtype: DType, *, is_signed: bool) -> Callable[[Array], Array]:
    """Returns a function that converts float arrays to the integer type ``dtype``, rounded towards zero.

    NaN and numbers out of range as in ``rounded_to_zero``. ``is_signed``: whether the integers are signed
    (arith.fptosi) or not (arith.fptoui).
    """
    bits = 1 if dtype == BOOL else 8 * dtype.itemsize

    def convert(values: Array) -> Array:
        is_double = values.dtype == F64
        return to_integer(rounded_to_zero(values, bits, is_signed=is_signed, is_double=is_double), dtype)

    return convert


def reinterpreted(dtype: DType) -> Callable[[Array], Array]:
    """Returns a function that reinterprets the bits of an array's numbers as ``dtype``, of the same width."""
    return lambda values: np.ascontiguousarray(values).view(dtype)


def rounded(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``arith.truncf``: rounds to the narrower float type, to nearest, ties to even.

    Raises CandidateError(COMPILE) for another rounding mode.
    """
    mode = op.attributes.get("roundingmode")
    if mode is not None and str(mode) != NEAREST:
        raise unsupported(op, f"rounding mode {mode}", "to_nearest_even")
    dtype = scope.element(op, op.results[0].type).dtype
    return step_of(op, scope, lambda values: as_float(values, dtype))


def _widened(read: Callable[[Array], Array]) -> Decode:
    return of_result(lambda dtype: lambda values: to_integer(read(values), dtype))


CONVERSIONS: dict[str, Decode] = {
    "arith.constant": constant,
    "arith.select": lambda op, scope: step_of(op, scope, select),
    **dict.fromkeys(("arith.extsi", "arith.index_cast", "arith.trunci"), _widened(signed)),
    **dict.fromkeys(("arith.extui", "arith.index_castui"), _widened(unsigned)),
    "arith.sitofp": of_result(to_float(signed)),
    "arith.uitofp": of_result(to_float(unsigned)),
    "arith.fptosi": of_result(lambda dtype: from_float(dtype, is_signed=True)),
    "arith.fptoui": of_result(lambda dtype: from_float(dtype, is_signed=False)),
    "arith.extf": of_result(lambda dtype: lambda values: values.astype(dtype)),
    "arith.convertf": of_result(lambda dtype: lambda values: as_float(values, dtype)),
    "arith.truncf": rounded,
    "llvm.freeze": elementwise(lambda values: values),
    "arith.bitcast": of_result(reinterpreted),
}


# The math dialect: floats are computed in float64, then rounded to the type of the result.


def _each(function: Callable[[float], float]) -> Function:
    over = np.frompyfunc(function, 1, 1)
    return lambda values: np.asarray(over(values)).astype(F64)


def _smallest_normal(values: Array) -> float:
    is_bf16 = values.dtype.name == "bfloat16"
    if is_bf16:
        return 2.0**-126
    return float(np.finfo(values.dtype).smallest_normal)


def _round_half_away(values: Array) -> Array:
    whole = np.trunc(values)
    return np.where(np.abs(values - whole) >= 0.5, whole + np.sign(values), whole)


FLOATS: dict[str, Function] = {
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: getattr(np, name) for name in ("exp", "exp2", "expm1", "log", "log10", "log1p", "log2")},
    **{name: getattr(np, name) for name in ("sqrt", "cbrt", "ceil", "floor", "trunc")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "atan2": np.arctan2,
    "absf": np.abs,
    "copysign": np.copysign,
    "powf": np.power,
    "rsqrt": lambda values: 1 / np.sqrt(values),
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "round": _round_half_away,
    "roundeven": np.rint,
    "clampf": lambda values, low, high: np.minimum(np.maximum(values, low), high),
}
TESTS: dict[str, Function] = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "isnormal": lambda values: np.isfinite(values) & (np.abs(values) >= _smallest_normal(values)),
}


def in_double(function: Function) -> Function:
    """Returns ``function`` computed in float64, with its result rounded to the type of its first argument."""

    def compute(*values: Array) -> Array:
        rounded: Array = function(*(value.astype(F64) for value in values)).astype(values[0].dtype)
        return rounded

    return compute


def ones(values: Array) -> Array:
    """Returns the number of set bits (population count) of each integer, in the type of ``values``."""
    bits = np.ascontiguousarray(unsigned(values))
    octets = bits.view(np.uint8).reshape(*bits.shape, bits.itemsize)
    counts: Array = BITS_OF_BYTE[octets].sum(-1)
    return counts.astype(values.dtype)


def leading_zeros(values: Array) -> Array:
    """Returns the number of zero bits above each integer's highest set bit; for 0, the width of its type."""
    bits = unsigned(values).copy()
    width = 1 if values.dtype == BOOL else 8 * bits.itemsize
    shift = 1
    while shift < width:
        bits |= bits >> bits.dtype.type(shift)
        shift *= 2
    return (width - ones(bits).astype(np.int64)).astype(values.dtype)


def trailing_zeros(values: Array) -> Array:
    """Returns the number of zero bits below each integer's lowest set bit; for 0, the width of its type."""
    bits = unsigned(values)
    width = 1 if values.dtype == BOOL else 8 * bits.itemsize
    one = bits.dtype.type(1)
    below = ones((bits & (~bits + one)) - one).astype(np.int64)
    return np.minimum(below, width).astype(values.dtype)


def integer_power(base: Array, exponent: Array) -> Array:
    """Returns ``base ** exponent`` with wrap-around; for a negative exponent 0, but 1 or -1 where base is."""
    result = np.ones_like(base)
    factor = base
    left = np.where(exponent < 0, 0, exponent)
    result, factor = np.broadcast_arrays(result, factor)
    while left.any():
        result = np.where(left & 1, result * factor, result)
        factor = factor * factor
        left = left >> 1
    inverse = np.where(base == -1, np.where(exponent & 1, -1, 1), np.where(base == 1, 1, 0))
    return np.where(exponent < 0, inverse, result).astype(base.dtype)


def sine_and_cosine(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``math.sincos``, which has two results; computed in float64 and rounded."""
    (source,) = scope.slots(op.operands)
    sine, cosine = scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        values = frame.values[source]
        frame.values[sine] = in_double(np.sin)(values)
        frame.values[cosine] = in_double(np.cos)(values)

    return step


MATH_FUNCTIONS: dict[str, Decode] = {
    **{f"math.{name}": elementwise(in_double(function)) for name, function in FLOATS.items()},
    **{f"math.{name}": elementwise(function) for name, function in TESTS.items()},
    "math.fpowi": elementwise(in_double(np.power)),
    "math.ipowi": elementwise(integer_power),
    "math.absi": elementwise(lambda values: np.abs(signed(values)).astype(values.dtype)),
    "math.ctpop": elementwise(ones),
    "math.ctlz": elementwise(leading_zeros),
    "math.cttz": elementwise(trailing_zeros),
    "math.sincos": sine_and_cosine,
}

DECODERS: dict[str, Decode] = {**CONVERSIONS, **MATH_FUNCTIONS}
