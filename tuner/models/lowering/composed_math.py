"""Expands math operations that targets have no lowering for: clampf, isnormal, ipowi and sincos."""

from collections.abc import Callable

from tuner.core.dtypes import number_type
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ir.building import splat, value
from tuner.mlir.ir.reading import replace_results, walk

# predicates of arith.cmpf: ordered and at least, ordered and less
OGE = 3
OLT = 4


def expand_composed_math(module: ir.Module) -> None:
    """Replaces math.clampf, isnormal, ipowi and sincos by operations that every target has, in place.

        %y = math.clampf %x to [%low, %high] : f32
        %s, %c = math.sincos %x : f32
      becomes
        %0 = arith.maximumf %x, %low : f32
        %y = arith.minimumf %0, %high : f32
        %s = math.sin %x : f32
        %c = math.cos %x : f32

    math.isnormal becomes two comparisons of the magnitude, math.ipowi squares and products, one of each per
    bit of the exponent but the sign; of a negative exponent it is 1 / power, rounded towards zero.
    """
    for name, expand in EXPANSIONS.items():
        for op in walk(module, name):
            with op.location, ir.InsertionPoint(op):
                results = expand(op)
            replace_results(op, results)
            op.erase()


def _clamped(op: Op) -> list[Value]:
    number, low, high = op.operands
    return [value("arith.minimumf", number.type, value("arith.maximumf", number.type, number, low), high)]


def _sine_and_cosine(op: Op) -> list[Value]:
    kept = {name: op.attributes[name] for name in op.attributes}
    return [value(name, op.operands[0].type, op.operands[0], **kept) for name in ("math.sin", "math.cos")]


def _is_normal(op: Op) -> list[Value]:
    type_ = op.operands[0].type
    result = op.results[0].type
    size = value("math.absf", type_, op.operands[0])
    format_ = number_type(str(_element(type_))).format
    assert format_ is not None  # math.isnormal takes floats
    bounds = ((OGE, format_.smallest_normal), (OLT, float("inf")))
    tests = [
        value("arith.cmpf", result, size, splat(type_, bound), predicate=_predicate(number))
        for number, bound in bounds
    ]
    return [value("arith.andi", result, *tests)]


def _predicate(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


def _power(op: Op) -> list[Value]:
    base, exponent = op.operands
    type_ = base.type
    bits = _element(type_).width
    one = splat(type_, 1)
    zero = splat(type_, 0)
    power = one
    square = base
    for bit in range(bits - 1):
        is_set = _differs(value("arith.andi", type_, exponent, splat(type_, 1 << bit)), zero)
        power = value("arith.select", type_, is_set, value("arith.muli", type_, power, square), power)
        square = value("arith.muli", type_, square, square)
    # 1 / base is base itself for 1 and -1, else 0
    is_odd = _differs(value("arith.andi", type_, exponent, one), zero)
    of_minus_one = value("arith.select", type_, is_odd, base, one)
    is_unit = _compared(5, base, splat(type_, -1))  # sge
    is_small = _compared(3, base, one)  # sle
    is_zero = _compared(0, base, zero)  # eq
    inside = value("arith.andi", is_unit.type, is_unit, is_small)
    inverse = value("arith.select", type_, inside, of_minus_one, zero)
    inverse = value("arith.select", type_, is_zero, zero, inverse)
    is_negative = _compared(2, exponent, zero)  # slt
    return [value("arith.select", type_, is_negative, inverse, power)]


def _compared(predicate: int, left: Value, right: Value) -> Value:
    return value("arith.cmpi", _bits_like(left.type), left, right, predicate=_predicate(predicate))


def _differs(left: Value, right: Value) -> Value:
    return _compared(1, left, right)  # ne


def _element(type_: Type) -> Type:
    is_shaped = isinstance(type_, ir.VectorType | ir.RankedTensorType)
    if is_shaped:
        return type_.element_type
    return type_


def _bits_like(type_: Type) -> Type:
    bit = ir.IntegerType.get_signless(1)
    if isinstance(type_, ir.VectorType):
        return ir.VectorType.get(type_.shape, bit)
    if isinstance(type_, ir.RankedTensorType):
        return ir.RankedTensorType.get(type_.shape, bit)
    return bit


EXPANSIONS: dict[str, Callable[[Op], list[Value]]] = {
    "math.clampf": _clamped,
    "math.sincos": _sine_and_cosine,
    "math.isnormal": _is_normal,
    "math.ipowi": _power,
}
