"""Maxima and minima with a constant, in LLVM dialect, as the one comparison that x86-64 has."""

import math

from tuner.mlir.bindings import Op, Value, ir

MAXIMUM, MINIMUM = "llvm.intr.maximum", "llvm.intr.minimum"
PREDICATES = {MAXIMUM: 2, MINIMUM: 4}  # LLVM's ogt and olt: false where an operand is NaN
FLOATS = ("f32", "f64")  # that are compared as they are; narrower ones LLVM widens


def compare_with_constants(module: ir.Module) -> None:
    """Replaces maxima and minima of a float and a constant by a comparison and a select, in place.

    The result is that of LLVM's intrinsics: NaN for a NaN, and +0.0 is greater than -0.0. For NaNs, LLVM
    compiles the intrinsics to three more instructions. If the result is stored where the float was loaded
    from, LLVM makes these a masked store, which is slow on some processors without AVX-512.

        %y = llvm.intr.maximum(%x, %c) : (vector<8xf32>, vector<8xf32>) -> vector<8xf32>    // %c: all 0.0
      becomes
        %is_above = llvm.fcmp "ogt" %c, %x : vector<8xf32>
        %bounded = llvm.select %is_above, %c, %x : vector<8xi1>, vector<8xf32>      // vmaxps
        %y = llvm.fadd %bounded, %c : vector<8xf32>                                 // -0.0 becomes 0.0

    Only a maximum with 0.0 has the addition. A minimum with -0.0, which would need another one, stays.
    """
    for op in _extremes(module):
        x, limit = sorted(op.operands, key=lambda operand: _number(operand) is not None)  # the constant last
        bound = _number(limit)
        if bound is None or math.isnan(bound) or _element(x.type) not in FLOATS:
            continue
        is_negative_zero = math.copysign(1.0, bound) < 0 and bound == 0
        if op.name == MINIMUM and is_negative_zero:
            continue
        adds_zero = op.name == MAXIMUM and bound == 0 and not is_negative_zero
        _replace(op, x, limit, adds_zero=adds_zero)


def _extremes(module: ir.Module) -> list[Op]:
    """Returns the maxima and minima of floats in the functions of a module in LLVM dialect."""
    found = []
    for function in module.body.operations:
        for region in function.regions:
            for block in region:
                found += [op.operation for op in block.operations if op.operation.name in PREDICATES]
    return found


def _replace(op: Op, x: Value, limit: Value, *, adds_zero: bool) -> None:
    with op.location, ir.InsertionPoint(op):
        truth = _truth(x.type)
        predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), PREDICATES[op.name])
        compared = ir.Operation.create("llvm.fcmp", [truth], [limit, x], {"predicate": predicate})
        result = ir.Operation.create("llvm.select", [x.type], [compared.result, limit, x]).result
        if adds_zero:
            result = ir.Operation.create("llvm.fadd", [x.type], [result, limit]).result
    op.results[0].replace_all_uses_with(result)
    op.erase()


def _truth(type_: ir.Type) -> ir.Type:
    bit = ir.IntegerType.get_signless(1)
    if isinstance(type_, ir.VectorType):
        return ir.VectorType.get(type_.shape, bit)
    return bit


def _element(type_: ir.Type) -> str:
    if isinstance(type_, ir.VectorType):
        return str(type_.element_type)
    return str(type_)


def _number(limit: Value) -> float | None:
    """Returns the float of a constant, or of each of its elements; None for another value."""
    op = _defining_op(limit)
    if op is not None and op.name == "llvm.extractvalue":
        op = _defining_op(op.operands[0])
    if op is None or op.name != "llvm.mlir.constant":
        return None
    number = op.attributes["value"]
    if isinstance(number, ir.DenseElementsAttr) and number.is_splat:
        number = number.get_splat_value()
    if isinstance(number, ir.FloatAttr):
        return float(number.value)
    return None


def _defining_op(result: Value) -> Op | None:
    if isinstance(result.owner, ir.Block):
        return None
    return result.owner.operation
