"""Expands conversions between types of numbers to formulas, where LLVM calls a library or gives no value.

Takes lowered functions or kernels, on numbers and vectors. Conversions that LLVM does by itself stay: between
f16 or bf16 and f32, between f32 and f64, of f16 and bf16 to f64, and of integers to f32 and f64. Each
conversion to a float rounds once, to nearest, ties to even: a float64 that becomes narrower than f32 is first
rounded to odd. A float outside of an integer's range becomes what eager PyTorch gives on x86, see
``tuner.core.numpy_types``. 8-bit floats are computed with in f32.

    %y = arith.truncf %x : f64 to bf16
  becomes
    %single = arith.truncf %x : f64 to f32
    ...                                       // its lowest bit is set where this lost anything
    %y = arith.truncf %odd : f32 to bf16
"""

from tuner.core.dtypes import FLOAT8S, ROWS, FloatFormat, number_type
from tuner.core.numpy_types import LONG_BITS, STICKY_FROM, STICKY_SHIFT, WORD_BITS, converted_bits
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ir.building import recreated, value
from tuner.mlir.ir.reading import unsupported, walk_where
from tuner.mlir.math.expressions import Term

FROM_FLOAT = ("arith.fptosi", "arith.fptoui")
TO_FLOAT = ("arith.sitofp", "arith.uitofp")
BETWEEN_FLOATS = ("arith.extf", "arith.truncf", "arith.convertf")
CONVERSIONS = (*FROM_FLOAT, *TO_FLOAT, *BETWEEN_FLOATS)
NEAREST = "0 : i32"  # arith's rounding mode to_nearest_even
BYTE_FLOATS = frozenset(ROWS[name].mlir for name in FLOAT8S)
NARROW_FLOATS = frozenset({"f16", "bf16", *BYTE_FLOATS})
COMPUTING = ("arith.", "math.")  # dialects whose ops of 8-bit floats are computed in f32
MOVING = frozenset({"arith.constant", "arith.bitcast", "arith.select"})
SINGLE_FRACTION = 23  # bits of the mantissa of f32, without the leading 1
SINGLE_BIAS = 127
INFINITY_BITS = 0x7F800000  # of f32
DOUBLE_FRACTION = 52


def compute_bytes_in_single(root: Op | ir.Module) -> None:
    """Lets ops of arith and math on 8-bit floats compute in f32, in place; adds conversions.

      %z = arith.addf %x, %y : f8E5M2
    becomes
      %wide_x = arith.extf %x : f8E5M2 to f32
      %wide_y = arith.extf %y : f8E5M2 to f32
      %sum = arith.addf %wide_x, %wide_y : f32
      %z = arith.truncf %sum : f32 to f8E5M2
    """
    for op in walk_where(root, _computes_bytes):
        _compute_in_single(op)


def _computes_bytes(op: Op) -> bool:
    if not op.name.startswith(COMPUTING) or op.name in MOVING or op.name in CONVERSIONS:
        return False
    return any(map(_is_byte, (*op.operands, *op.results)))


def _is_byte(number: Value) -> bool:
    return str(Term(number).element) in BYTE_FLOATS


def _compute_in_single(op: Op) -> None:
    single = ir.F32Type.get()
    with op.location, ir.InsertionPoint(op):
        operands = [_widened(operand) for operand in op.operands]
        types = [Term(result).type_with(single) if _is_byte(result) else result.type for result in op.results]
        wide = recreated(op, types, operands)
        for old, new in zip(op.results, wide.results, strict=True):
            narrow = value("arith.truncf", old.type, new) if _is_byte(old) else new
            old.replace_all_uses_with(narrow)
    op.erase()


def _widened(number: Value) -> Value:
    if not _is_byte(number):
        return number
    return Term(number).converted("extf", ir.F32Type.get()).value


def expand_conversions(root: Op | ir.Module) -> None:
    """Replaces the conversions in any lowered code that have a formula, in place.

    Raises CandidateError(COMPILE) for a rounding mode other than to_nearest_even where a formula rounds, and
    for integers above 64 bits.
    """
    for op in walk_where(root, _has_formula):
        mode = op.attributes.get("roundingmode")
        if mode is not None and str(mode) != NEAREST:
            raise unsupported(op, f"rounding mode {mode}", "to_nearest_even")
        with op.location, ir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(_converted(op).value)
        op.erase()


def _has_formula(op: Op) -> bool:
    """Returns whether LLVM's conversion rounds twice, calls a library, or has values without a meaning."""
    if op.name not in CONVERSIONS:
        return False
    source = str(Term(op.operands[0]).element)
    target = str(Term(op.results[0]).element)
    if op.name in FROM_FLOAT or op.name == "arith.convertf" or source in BYTE_FLOATS:
        return True
    if op.name in TO_FLOAT:
        return target in NARROW_FLOATS
    return target in BYTE_FLOATS or (source == "f64" and target in NARROW_FLOATS)


def _converted(op: Op) -> Term:
    x = Term(op.operands[0])
    target = Term(op.results[0]).element
    widths = [type_.width for type_ in (x.element, target) if isinstance(type_, ir.IntegerType)]
    if any(width > LONG_BITS for width in widths):
        raise unsupported(op, f"{x.element} to {target}", f"integers of up to {LONG_BITS} bits")
    if op.name in TO_FLOAT:
        return _between_floats(_of_integer(x, op.name), target)
    if op.name in FROM_FLOAT:
        return _to_integer(x, target, is_signed=op.name == "arith.fptosi")
    return _between_floats(x, target)


def _between_floats(x: Term, target: Type) -> Term:
    """Returns a float in another float type, rounded once. Not for float64 to f32, which LLVM converts."""
    if target == ir.F64Type.get():
        return _single(x).converted("extf", target)
    if str(target) in BYTE_FLOATS:
        return _encoded(_single(x), target)
    if target == ir.F32Type.get():
        return _single(x)
    return _single(x).converted("truncf", target)


def _single(x: Term) -> Term:
    """Returns a float in f32: exact, or of float64 rounded to odd, for a rounding to a narrower type."""
    if x.element == ir.F32Type.get():
        return x
    if x.element == ir.F64Type.get():
        return _rounded_to_odd(x)
    if str(x.element) in BYTE_FLOATS:
        return _decoded(x)
    return x.converted("extf", ir.F32Type.get())


def _rounded_to_odd(x: Term) -> Term:
    """Returns a float64 cut off to f32, with the lowest bit set where something was cut off.

    Rounded then to a float with at least two bits less, it gives what the float64 gives: S. Boldo,
    G. Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd, 2008.
    """
    word = ir.IntegerType.get_signless(WORD_BITS)
    nearest = x.converted("truncf", ir.F32Type.get())
    again = nearest.converted("extf", x.element)
    is_above = (again.math("absf") > x.math("absf")).converted("extui", word)
    is_inexact = ((again < x) | (again > x)).converted("extui", word)  # false for NaN
    return ((nearest.bits() - is_above) | is_inexact).converted("bitcast", nearest.element)


def _of_integer(x: Term, name: str) -> Term:
    """Returns an integer as f32 or float64, exact up to 53 bits.

    Of a wider one the 16 lowest bits are joined to a sticky bit, so that rounding to 16 bits or fewer gives
    what the integer itself gives. ``name``: of the op of arith that converts it.
    """
    convert = name.removeprefix("arith.")
    if x.element.width <= SINGLE_FRACTION + 1:
        return x.converted(convert, ir.F32Type.get())
    double = x.converted(convert, ir.F64Type.get())
    if x.element.width <= DOUBLE_FRACTION + 1:
        return double
    is_large = double.math("absf") > STICKY_FROM
    low = (x & (2**STICKY_SHIFT - 1)).converted("sitofp", double.element)
    is_set = (low > 0.0).converted("extui", x.element)
    high = x >> STICKY_SHIFT if convert == "sitofp" else x.logical_shift(STICKY_SHIFT)
    large = (high | is_set).converted("sitofp", double.element) * 2.0**STICKY_SHIFT
    return double.replaced(is_large, large)


def _to_integer(x: Term, target: Type, *, is_signed: bool) -> Term:
    """Returns a float rounded towards zero to an integer; outside of its range as x86 does."""
    is_double = x.element == ir.F64Type.get()
    if not is_double:
        x = _single(x)
    bits = converted_bits(target.width, is_signed=is_signed, is_double=is_double)
    if target.width == LONG_BITS and not is_signed:
        half = 2.0 ** (LONG_BITS - 1)
        upper = _rounded_to_zero(x - half, bits) + -(2 ** (LONG_BITS - 1))
        lower = _rounded_to_zero(x, bits)
        return lower.replaced(x.constant(half).not_above(x), upper)  # not for NaN
    whole = _rounded_to_zero(x, bits)
    if target.width == bits:
        return whole
    return whole.converted("trunci", target)


def _rounded_to_zero(x: Term, bits: int) -> Term:
    """Returns a float as a signed integer of so many bits: the least one for NaN and out of its range."""
    is_inside = x.math("absf") < 2.0 ** (bits - 1)
    inside = x.constant(0.0).replaced(is_inside, x)
    whole = inside.converted("fptosi", ir.IntegerType.get_signless(bits))
    return whole.constant(-(2 ** (bits - 1))).replaced(is_inside, whole)


# Bits of an f32 from those of an 8-bit float, and back. The exponent is moved and its bias is changed.
# Subnormal numbers of 8 bits, for which that is wrong, are sums with a power of two.


def _decoded(x: Term) -> Term:
    """Returns an 8-bit float as f32, which is exact."""
    format_ = _format_of(x.element)
    word = ir.IntegerType.get_signless(WORD_BITS)
    single = ir.F32Type.get()
    byte = x.bits().converted("extui", word)
    bits = (byte & 0x7F) << (SINGLE_FRACTION - format_.fraction_bits)
    rebased = SINGLE_BIAS + format_.least - 1
    normal = (bits + (rebased << SINGLE_FRACTION)).converted("bitcast", single)
    subnormal = (bits + ((rebased + 1) << SINGLE_FRACTION)).converted("bitcast", single)
    subnormal = subnormal - format_.smallest_normal
    number = normal.replaced(normal < format_.smallest_normal, subnormal).bits()
    number = number.replaced(normal > format_.largest, bits | INFINITY_BITS)  # infinity and NaN
    return (number | ((byte & 0x80) << (WORD_BITS - 8))).converted("bitcast", single)


def _encoded(x: Term, target: Type) -> Term:
    """Returns an f32 rounded to an 8-bit float, to nearest, ties to even."""
    format_ = _format_of(target)
    shift = SINGLE_FRACTION - format_.fraction_bits
    rebased = SINGLE_BIAS + format_.least - 1
    bits = x.bits() & 0x7FFFFFFF
    size = x.math("absf")
    odd = (bits >> shift) & 1
    normal = ((bits + odd + ((1 << (shift - 1)) - 1)) >> shift) - (rebased << format_.fraction_bits)
    unit = 2.0 ** (SINGLE_FRACTION + format_.least - format_.fraction_bits)  # its unit is the least number's
    subnormal = (size + unit).bits() & ((1 << (format_.fraction_bits + 1)) - 1)
    code = normal.replaced(size < format_.smallest_normal, subnormal)
    code = code.replaced(size > format_.last_rounded_down, _infinity_code(format_)).replaced(x.is_nan(), 0x7F)
    sign = (x.bits() >> (WORD_BITS - 8)) & 0x80
    byte = (code | sign).converted("trunci", ir.IntegerType.get_signless(8))
    return byte.converted("bitcast", target)


def _infinity_code(format_: FloatFormat) -> int:
    """Returns the bits of what a number becomes that is too large: infinity, else NaN."""
    if not format_.has_infinity:
        return 0x7F
    return 0x7F >> format_.fraction_bits << format_.fraction_bits


def _format_of(element: Type) -> FloatFormat:
    format_ = number_type(str(element)).format
    assert format_ is not None  # of a float
    return format_
