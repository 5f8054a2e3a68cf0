"""Rewrites a parsed payload before its first pass where upstream's passes change what the payload computes.

Each rewrite names upstream's issue; ``tests/models/upstream`` shows which of them a newer MLIR mends.
"""

from tuner.mlir.bindings import Attribute, Op, Value, ir
from tuner.mlir.effects.aliases import last_of
from tuner.mlir.ir.building import compared, index, value
from tuner.mlir.ir.reading import (
    attributes_of,
    constraints_of_set,
    replace_results,
    types_of,
    users_of,
    walk,
    walk_where,
)
from tuner.mlir.passes import run_passes
from tuner.mlir.vector_reductions import apply_masks, unroll_reductions

OPERATIONS = {  # expression of an affine map -> the op of arith
    ir.AffineAddExpr: "arith.addi",
    ir.AffineMulExpr: "arith.muli",
    ir.AffineFloorDivExpr: "arith.floordivsi",
}
VALUES = ("affine.apply", "affine.min", "affine.max")


def avoid_miscompilations(module: ir.Module) -> None:
    """Rewrites ops that upstream's passes would compile wrongly, in place; must be called before any pass.

    Raises CandidateError(COMPILE) where the lowering of affine ops fails.
    """
    separate_branches_from_conditions(module)
    round_up_without_negation(module)
    apply_masks(module)
    unroll_reductions(module)


def avoid_miscompilations_by_scripts(module: ir.Module) -> None:
    """Rewrites ops that a script's passes and patterns would compile wrongly, in place, before it runs.

    Rewrites less than ``avoid_miscompilations``, which is for tuner's own pipelines: a script finds all other
    ops as written, such as affine loops.
    """
    separate_branches_from_conditions(module)
    _compute_index_quotients(module)
    for op in walk(module, *VALUES):
        users = users_of(op.results[0])
        if _rounds_up(op) and not any(user.name.startswith("affine.") for user in users):
            with op.location, ir.InsertionPoint(op):
                _compute_results(op)
    unroll_reductions(module, of_no_dimension=True)


def separate_branches_from_conditions(module: ir.Module) -> None:
    """Freezes the condition of each scf.while whose first region has an scf.if, in place.

    Canonicalization moves an scf.if of the loop's own condition into the second region. Of a result that the
    loop passes twice it moves one and leaves the other its value of the else branch
    (https://github.com/llvm/llvm-project/issues/219456). CSE and folding make such pairs too, so each branch
    is kept where it is: its condition is then another value than that of the loop.

          scf.condition(%go) %v, %v : index, index
      becomes
          %frozen = llvm.freeze %go : i1
          scf.condition(%frozen) %v, %v : index, index
    """
    for loop in walk(module, "scf.while"):
        before = loop.regions[0].blocks[0]
        end = last_of(before)
        if all(op.operation.name != "scf.if" for op in before.operations):
            continue
        with end.location, ir.InsertionPoint(end):
            end.operands[0] = value("llvm.freeze", end.operands[0].type, end.operands[0])


def round_up_without_negation(module: ir.Module) -> None:
    """Replaces ``index.ceildivs``, and ceildiv in affine.apply, min, max, for and if, in place.

    Upstream lowers both to the negated quotient of the negated dividend, which is wrong for the least integer
    (https://github.com/llvm/llvm-project/issues/215696), and simplifies other affine forms to that one. If
    any affine op rounds up, all affine ops are lowered at once, before any simplification.

        %q = index.ceildivs %a, %b
        %r = affine.apply affine_map<(d0) -> (d0 ceildiv 7)>(%a)
      becomes
        %toward_zero = arith.divsi %a, %b : index
        %rest = arith.remsi %a, %b : index
        ...                                          // 1 more where %rest has the sign of %b and is not 0
    """
    _compute_index_quotients(module)
    rounding = walk_where(module, _rounds_up)
    for op in rounding:
        with op.location, ir.InsertionPoint(op):
            WITHOUT_CEILING[op.name](op)
    if rounding:
        run_passes(module, "builtin.module(lower-affine)")


def _compute_index_quotients(module: ir.Module) -> None:
    for op in walk(module, "index.ceildivs"):
        with op.location, ir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(_rounded_up(*op.operands))
        op.erase()


def _rounds_up(op: Op) -> bool:
    """Returns whether a map or set of ``op`` has ceildiv; an access by the least integer is out of bounds."""
    is_known = op.name in WITHOUT_CEILING
    return is_known and any("ceildiv" in str(attribute) for attribute in attributes_of(op).values())


def _rounded_up(dividend: Value, divisor: Value) -> Value:
    """Creates the signed quotient of two index values, rounded up, from ops that every lowering knows."""
    type_ = dividend.type
    toward_zero = value("arith.divsi", type_, dividend, divisor)
    rest = value("arith.remsi", type_, dividend, divisor)
    zero = index(0)
    signs_differ = compared("slt", value("arith.xori", type_, rest, divisor), zero)
    above = value("arith.select", type_, signs_differ, zero, index(1))
    added = value("arith.select", type_, compared("ne", rest, zero), above, zero)
    return value("arith.addi", type_, toward_zero, added)


def _compute_results(op: Op) -> None:
    """Replaces affine.apply, affine.min or affine.max by the results of its map, as arith."""
    results = _values_of(ir.AffineMapAttr(op.attributes["map"]).value, list(op.operands))
    combine = {"affine.min": "arith.minsi", "affine.max": "arith.maxsi"}.get(op.name, "")
    result = results[0]
    for other in results[1:]:  # affine.apply has none
        result = value(combine, result.type, result, other)
    op.results[0].replace_all_uses_with(result)
    op.erase()


def _compute_bounds(loop: Op) -> None:
    """Recreates affine.for with bounds whose results are operands: ()[s0, s1] -> (s0, s1)."""
    sizes = list(ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"]))
    operands = list(loop.operands)
    inits = operands[sizes[0] + sizes[1] :]
    attributes = attributes_of(loop)
    bounds: list[Value] = []
    counts = []
    for name, of_map in (("lowerBoundMap", operands), ("upperBoundMap", operands[sizes[0] :])):
        mapping = ir.AffineMapAttr(attributes[name]).value
        results = _values_of(mapping, of_map)
        symbols = list(map(ir.AffineExpr.get_symbol, range(len(results))))
        attributes[name] = ir.AffineMapAttr.get(ir.AffineMap.get(0, len(results), symbols))
        bounds += results
        counts.append(len(results))
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([*counts, len(inits)])
    _replace(loop, [*bounds, *inits], attributes)


def _compute_condition(branch: Op) -> None:
    """Recreates affine.if with a set whose expressions are operands: ()[s0] : (s0 >= 0)."""
    attributes = attributes_of(branch)
    mapping, are_equalities = constraints_of_set(attributes["condition"])
    values = _values_of(mapping, list(branch.operands))
    symbols = ", ".join(f"s{number}" for number in range(len(values)))
    relations = ("==" if is_equality else ">=" for is_equality in are_equalities)
    listed = ", ".join(f"s{relation_index} {relation} 0" for relation_index, relation in enumerate(relations))
    attributes["condition"] = ir.Attribute.parse(f"affine_set<()[{symbols}] : ({listed})>")
    _replace(branch, values, attributes)


WITHOUT_CEILING = {
    **dict.fromkeys(VALUES, _compute_results),
    "affine.for": _compute_bounds,
    "affine.if": _compute_condition,
}


def _replace(op: Op, operands: list[Value], attributes: dict[str, Attribute]) -> None:
    """Recreates an operation with other operands and attributes and its own regions; erases it."""
    types = types_of(op.results)
    new = ir.Operation.create(
        op.name, results=types, operands=operands, attributes=attributes, regions=len(op.regions)
    )
    for old_region, new_region in zip(op.regions, new.regions, strict=True):
        for block in list(old_region.blocks):
            block.append_to(new_region)
    replace_results(op, new.results)
    op.erase()


def _values_of(mapping: ir.AffineMap, operands: list[Value]) -> list[Value]:
    """Creates the results of an affine map as arith; ``operands`` has its dimensions, then its symbols."""
    return [_value_of(result, operands, mapping.n_dims) for result in mapping.results]


def _value_of(expression: ir.AffineExpr, operands: list[Value], dimensions: int) -> Value:
    expression = expression.maybe_downcast()
    if isinstance(expression, ir.AffineConstantExpr):
        return index(expression.value)
    if isinstance(expression, ir.AffineDimExpr):
        return operands[expression.position]
    if isinstance(expression, ir.AffineSymbolExpr):
        return operands[dimensions + expression.position]
    left = _value_of(expression.lhs, operands, dimensions)
    right = _value_of(expression.rhs, operands, dimensions)
    type_ = left.type
    if isinstance(expression, ir.AffineCeilDivExpr):
        return _rounded_up(left, right)
    if not isinstance(expression, ir.AffineModExpr):
        return value(OPERATIONS[type(expression)], type_, left, right)
    quotient = value("arith.floordivsi", type_, left, right)
    return value("arith.subi", type_, left, value("arith.muli", type_, quotient, right))
