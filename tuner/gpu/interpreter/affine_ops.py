"""Steps of the dialects affine and index: maps of integers, loops, branches and accesses by them.

A function named like an operation decodes it: it takes the operation and returns the step that the
interpreter runs. ``results_of`` and ``map_of`` compute affine maps.
"""

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from tuner.gpu.interpreter import arithmetic, memory_ops, vector_memory
from tuner.gpu.interpreter import memory as flat_memory
from tuner.gpu.interpreter.arithmetic import DIVISIONS, INTEGER_BINARY, division, elementwise, step_of
from tuner.gpu.interpreter.control_flow import Nest, run_loop, run_where
from tuner.gpu.interpreter.decoding import Decode, FunctionScope, LaneFrame, Step, where_of
from tuner.gpu.interpreter.lanes import INDEX, Array, merged, signed, to_integer, uniform, unsigned
from tuner.gpu.interpreter.vectors import shape_of
from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.reading import constraints_of_set, unsupported

Compute: TypeAlias = Callable[[Sequence[Array]], Array]  # from dimensions, then symbols
BINARY: dict[type, Callable[[Array, Array], Array]] = {
    ir.AffineAddExpr: operator.add,
    ir.AffineMulExpr: operator.mul,
    ir.AffineModExpr: operator.mod,  # of a positive divisor
    ir.AffineFloorDivExpr: operator.floordiv,
    ir.AffineCeilDivExpr: arithmetic.raised_division,
}
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
# op of index -> op of arith
NAMES = {
    **{
        name: f"{name}i" for name in ("add", "sub", "mul", "and", "or", "xor", "maxs", "maxu", "mins", "minu")
    },
    "shl": "shli",
    "shrs": "shrsi",
    "shru": "shrui",
}


def compute_of(expression: ir.AffineExpr, dimensions: int) -> Compute:
    """Returns a function that computes an affine expression from the values of its dimensions and symbols.

    It takes a list: the ``dimensions`` dimensions first, then the symbols.
    """
    expression = expression.maybe_downcast()
    if isinstance(expression, ir.AffineConstantExpr):
        number = uniform(expression.value)
        return lambda _: number
    if isinstance(expression, ir.AffineDimExpr | ir.AffineSymbolExpr):
        is_symbol = isinstance(expression, ir.AffineSymbolExpr)
        position = expression.position + (dimensions if is_symbol else 0)
        return lambda values: values[position]
    left = compute_of(expression.lhs, dimensions)
    right = compute_of(expression.rhs, dimensions)
    combine = BINARY[type(expression)]
    return lambda values: combine(left(values), right(values))


def results_of(mapping: ir.AffineMap) -> list[Compute]:
    """Returns, per result of an affine map, a function that computes it from dimensions and symbols."""
    return [compute_of(result, mapping.n_dims) for result in mapping.results]


def map_of(op: Op, name: str = "map") -> ir.AffineMap:
    """Returns the affine map in the attribute ``name`` of an operation."""
    return ir.AffineMapAttr(op.attributes[name]).value


def mapped(combine: Callable[[Array, Array], Array]) -> Decode:
    """Returns the decoder of an operation that joins all results of its affine map by ``combine``.

    Used for ``affine.min`` and ``affine.max``, and for ``affine.apply``, whose map has one result.
    """

    def decode(op: Op, scope: FunctionScope) -> Step:
        computed = results_of(map_of(op))
        return step_of(op, scope, lambda *values: reduce(combine, (compute(values) for compute in computed)))

    return decode


def for_loop(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``affine.for``: from the largest lower bound, below the smallest upper bound."""
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    slots = scope.slots(op.operands)
    of_lower = slots[: sizes[0]]
    rest = slots[sizes[0] :]
    of_upper = rest[: sizes[1]]
    starts = rest[sizes[1] :]
    lower = results_of(map_of(op, "lowerBoundMap"))
    upper = results_of(map_of(op, "upperBoundMap"))
    by = uniform(ir.IntegerAttr(op.attributes["step"]).value)
    targets = scope.slots(op.results)
    body = scope.body(op.regions[0])

    def step(frame: LaneFrame) -> None:
        first = reduce(np.maximum, [bound(frame.take(of_lower)) for bound in lower])
        end = reduce(np.minimum, [bound(frame.take(of_upper)) for bound in upper])
        frame.put(targets, run_loop(frame, body, first, end, by, frame.take(starts)))

    return step


def parallel(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``affine.parallel`` without reductions; iterations run in order.

    Raises CandidateError(COMPILE) for a reduction, and for bounds of several expressions.
    """
    if op.results:
        raise unsupported(op, "a reduction", "loops without one")
    lower = map_of(op, "lowerBoundsMap")
    upper = map_of(op, "upperBoundsMap")
    groups = [
        list(ir.DenseIntElementsAttr(op.attributes[f"{name}BoundsGroups"])) for name in ("lower", "upper")
    ]
    if any(count != 1 for count in chain.from_iterable(groups)):
        raise unsupported(op, "bounds of several expressions", "one for each")
    count = lower.n_inputs
    slots = scope.slots(op.operands)
    bounds = (results_of(lower), results_of(upper))
    steps = [uniform(ir.IntegerAttr(attribute).value) for attribute in ir.ArrayAttr(op.attributes["steps"])]
    body = scope.body(op.regions[0])

    def step(frame: LaneFrame) -> None:
        first = [bound(frame.take(slots[:count])) for bound in bounds[0]]
        end = [bound(frame.take(slots[count:])) for bound in bounds[1]]
        Nest(body, tuple(zip(first, end, steps, strict=True))).run(frame)

    return step


def branch(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``affine.if``: runs the region that the conditions of its set select."""
    mapping, are_equalities = constraints_of_set(op.attributes["condition"])
    computed = results_of(mapping)
    sources = scope.slots(op.operands)
    targets = scope.slots(op.results)
    then, other = (scope.body(region) if region.blocks else None for region in op.regions)
    assert then is not None

    def step(frame: LaneFrame) -> None:
        values = frame.take(sources)
        holds = np.ones((1, 1), bool)
        for compute, is_equality in zip(computed, are_equalities, strict=True):
            number = compute(values)
            holds = holds & (number == 0 if is_equality else number >= 0)
        taken = run_where(frame, holds, then)
        left = None if other is None else run_where(frame, ~holds, other)
        for result, target in enumerate(targets):
            if taken is None or left is None:
                frame.values[target] = (taken or left or [])[result]
            else:
                frame.values[target] = merged(holds, taken[result], left[result])

    return step


def access(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for an affine load or store of an element or a vector; its map gives the indices."""
    is_store = "store" in op.name
    buffer = op.operands[1 if is_store else 0]
    element = scope.element(op, buffer.type)
    where = where_of(op)
    sources = scope.slots(list(op.operands)[2 if is_store else 1 :])
    computed = results_of(map_of(op))
    held = scope.slot(buffer)
    value = scope.slot(op.operands[0] if is_store else op.results[0])
    shape = shape_of(op.operands[0].type if is_store else op.results[0].type)
    axes = vector_memory.last(len(computed), shape)
    everywhere = vector_memory.everywhere(shape)

    def step(frame: LaneFrame) -> None:
        view = frame.values[held]
        indices = [compute(frame.take(sources)) for compute in computed]
        if shape:
            places = vector_memory.along(indices, axes, shape)
            if is_store:
                vector_memory.store_at(frame, where, view, element, places, everywhere, frame.values[value])
            else:
                frame.values[value] = vector_memory.load_at(frame, where, view, element, places, everywhere)
        elif is_store:
            flat_memory.store_element(frame, where, view, element, indices, frame.values[value])
        else:
            frame.values[value] = flat_memory.load_element(frame, where, view, element, indices)

    return step


def delinearize(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``affine.delinearize_index``; the outermost result is not wrapped."""
    source = scope.slot(op.operands[0])
    targets = scope.slots(op.results)
    basis = memory_ops.MixedNumbers(op, scope, "static_basis", list(op.operands)[1:])

    def step(frame: LaneFrame) -> None:
        rest = frame.values[source]
        sizes = basis(frame)
        inner = sizes[len(sizes) - len(targets) + 1 :]
        for target, size in zip(reversed(targets[1:]), reversed(inner), strict=True):
            frame.values[target] = rest % size
            rest = rest // size
        frame.values[targets[0]] = rest

    return step


def linearize(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``affine.linearize_index``: the row-major position of several indices."""
    count, _ = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    sources = scope.slots(list(op.operands)[:count])
    target = scope.slot(op.results[0])
    basis = memory_ops.MixedNumbers(op, scope, "static_basis", list(op.operands)[count:])

    def step(frame: LaneFrame) -> None:
        first, *rest = frame.take(sources)
        sizes = basis(frame)
        for index, size in zip(rest, sizes[len(sizes) - len(rest) :], strict=True):
            first = first * size + index
        frame.values[target] = first

    return step


AFFINE: dict[str, Decode] = {
    "affine.apply": mapped(lambda result, _: result),
    "affine.min": mapped(np.minimum),
    "affine.max": mapped(np.maximum),
    "affine.for": for_loop,
    "affine.parallel": parallel,
    "affine.if": branch,
    **dict.fromkeys(("affine.load", "affine.store", "affine.vector_load", "affine.vector_store"), access),
    "affine.delinearize_index": delinearize,
    "affine.linearize_index": linearize,
}


def constant(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``index.constant`` or ``index.bool.constant``."""
    attribute = op.attributes["value"]
    is_bool = isinstance(attribute, ir.BoolAttr)
    value: Any = np.full((1, 1), attribute.value) if is_bool else uniform(ir.IntegerAttr(attribute).value)
    return step_of(op, scope, lambda: value)


def comparison(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``index.cmp``."""
    name = str(op.attributes["pred"]).removeprefix("#index<cmp_predicate ").removesuffix(")>").rstrip(">")
    compare, read = arithmetic.PREDICATES[PREDICATES.index(name)]
    return step_of(op, scope, lambda a, b: compare(read(a), read(b)))


def converted(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``index.casts`` or ``index.castu``, which truncate or extend an integer."""
    dtype = scope.element(op, op.results[0].type).dtype
    read = signed if op.name == "index.casts" else unsigned
    return step_of(op, scope, lambda values: to_integer(read(values), dtype))


INDEX_OPS: dict[str, Decode] = {
    **{f"index.{name}": elementwise(INTEGER_BINARY[of_arith]) for name, of_arith in NAMES.items()},
    **{f"index.{name.removesuffix('i')}": division(function) for name, function in DIVISIONS.items()},
    **dict.fromkeys(("index.constant", "index.bool.constant"), constant),
    "index.cmp": comparison,
    **dict.fromkeys(("index.casts", "index.castu"), converted),
    "index.sizeof": lambda op, scope: step_of(op, scope, lambda: uniform(8 * INDEX.itemsize)),
}

DECODERS: dict[str, Decode] = {**AFFINE, **INDEX_OPS}
