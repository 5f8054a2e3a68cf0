"""Masks: what a program reduces over n is made neutral where an index is beyond the size of the call.

A mask is an argument of the static program, one f32 for each index: 1 where the index counts, else 0. It is
an argument and not a comparison with n, because the fusions of a CPU read arrays, and no loop numbers.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from tuner.core.dynamic_sizes import LinearSize
from tuner.mlir.bindings import Op, Value, indexing_maps_of, ir
from tuner.mlir.fusions.operations import body_of, clone_into, defining, inputs_of, is_tensor
from tuner.mlir.ir import building
from tuner.mlir.ir.building import recreated, value, zero
from tuner.mlir.ir.reading import maps_in, replace_results, types_of
from tuner.models.dynamic.loop_rules import MaskedLoops
from tuner.models.dynamic.size_analysis import KnownSizes
from tuner.models.fusions.generics import empty, maps_attribute, selecting

MaskOf = Callable[[LinearSize], Value]  # the mask of indices below a size; 1-D
GREATER = 2  # arith.cmpf ogt


def _least(type_: ir.Type) -> ir.Attribute:
    if isinstance(type_, ir.IntegerType):
        return ir.IntegerAttr.get(type_, -(1 << type_.width - 1))
    return ir.FloatAttr.get(type_, -math.inf)


def _greatest(type_: ir.Type) -> ir.Attribute:
    if isinstance(type_, ir.IntegerType):
        return ir.IntegerAttr.get(type_, (1 << type_.width - 1) - 1)
    return ir.FloatAttr.get(type_, math.inf)


def _zero(type_: ir.Type) -> ir.Attribute:
    return building.number_attribute(type_, 0)


def _one(type_: ir.Type) -> ir.Attribute:
    return building.number_attribute(type_, 1)


def _ones(type_: ir.Type) -> ir.Attribute:
    return ir.IntegerAttr.get(type_, -1)


# Combining operation -> the number that changes no other number that it is combined with.
IDENTITIES: Mapping[str, Callable[[ir.Type], ir.Attribute]] = {
    "arith.addf": _zero,
    "arith.addi": _zero,
    "arith.mulf": _one,
    "arith.muli": _one,
    "arith.maximumf": _least,
    "arith.maxnumf": _least,
    "arith.minimumf": _greatest,
    "arith.minnumf": _greatest,
    "arith.maxsi": _least,
    "arith.minsi": _greatest,
    "arith.maxui": _zero,
    "arith.minui": _ones,
    "arith.ori": _zero,
    "arith.xori": _zero,
    "arith.andi": _ones,
}


def add_masks(masked: MaskedLoops, mask_of: MaskOf, known: KnownSizes) -> None:
    """Makes padding neutral in a linalg operation of static sizes, in place.

    Operands that give indices are 0 there. A sum of products reads its operands through masks, so that it
    stays a matmul; another reduction is a ``linalg.generic``, whose body gets the masks.
    """
    op = masked.op
    for index in masked.indices:
        tensor = op.operands[index]
        for dimension, size in enumerate(known.shape(tensor)):
            if not size.is_static:
                op.operands[index] = masked_along(op, op.operands[index], dimension, mask_of(size), zero)
    if masked.scores is not None:
        _mask_scores(op.operands[0], masked.scores, mask_of(known.shape(op.operands[0])[masked.scores]))
    elif masked.is_product:
        _mask_operands(masked, mask_of, known.zero_padded)
    elif masked.loops:
        _mask_body(masked, mask_of)


def _mask_scores(scores: Value, dimension: int, mask: Value) -> None:
    """Makes scores of a softmax -inf in padding for all that reads them, in place."""
    made = defining(scores)
    assert made is not None
    read = list(scores.uses)
    ops = list(made.block.operations)
    after = ops[ops.index(made) + 1].operation
    shown = masked_along(after, scores, dimension, mask, _least_number)
    for use in read:
        use.owner.operands[use.operand_number] = shown


def _least_number(type_: ir.Type) -> Value:
    return value("arith.constant", type_, value=_least(type_))


def _mask_operands(reduction: MaskedLoops, mask_of: MaskOf, zero_padded: set[Value]) -> None:
    """Replaces both operands of a sum of products by 0 where an index is beyond the size.

    Both, since 0 times an infinity that the padding of the other has is NaN; but not weights of a softmax,
    which are 0 there already.
    """
    op = reduction.op
    maps = indexing_maps_of(op)
    assert maps is not None
    for index, operand in enumerate(inputs_of(op)):
        if operand not in zero_padded and index not in reduction.weights:
            op.operands[index] = _masked(reduction, operand, maps[index], mask_of)


def _masked(reduction: MaskedLoops, tensor: Value, mapping: ir.AffineMap, mask_of: MaskOf) -> Value:
    """Creates an operand of a sum of products with 0 in its padding along the reduced loops."""
    for dimension, index in enumerate(mapping.results):
        for loop, size in reduction.loops:
            if index == ir.AffineDimExpr.get(loop):
                tensor = masked_along(reduction.op, tensor, dimension, mask_of(size), zero)
    return tensor


def masked_along(
    before: Op, tensor: Value, dimension: int, mask: Value, number: Callable[[ir.Type], Value]
) -> Value:
    """Creates, before an operation, a copy of a tensor with another number where a mask is 0; returns it.

    ``mask``: a number per index of ``dimension``. ``number``: creates the other number, given its type.
    """
    type_ = tensor.type
    loops = building.dimensions(type_.rank)

    def body(element: Value, kept: Value, _: Value) -> Value:
        return value("arith.select", element.type, is_kept(kept), element, number(element.type))

    with ir.InsertionPoint(before), before.location:
        start = empty(type_.shape, type_.element_type)
        maps = [loops, [loops[dimension]], loops]
        return building.generic([tensor, mask], start, maps, [building.PARALLEL] * type_.rank, body).results[
            0
        ]


def is_kept(mask: Value) -> Value:
    """Creates the comparison of a mask's element with 0 at the insertion point; returns an i1."""
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), GREATER)
    return value("arith.cmpf", ir.IntegerType.get_signless(1), mask, zero(mask.type), predicate=predicate)


def _mask_body(reduction: MaskedLoops, mask_of: MaskOf) -> None:
    loops = maps_in(reduction.op)[0].n_dims
    added = [(mask_of(size), selecting(loops, [loop])) for loop, size in reduction.loops]
    op, masks = with_inputs(reduction.op, added)
    block = op.regions[0].blocks[0]
    with op.location, ir.InsertionPoint.at_block_begin(block):
        kept = is_kept(masks[0])
        for mask in masks[1:]:
            kept = value("arith.andi", kept.type, kept, is_kept(mask))
    end = body_of(op)[-1]
    first = len(inputs_of(op))
    for index, result in enumerate(end.operands):
        _keep_neutral(end, index, result, block.arguments[first + index], kept)


def _keep_neutral(end: Op, number: int, result: Value, total: Value, kept: Value) -> None:
    """Makes operand ``number`` of a yield ``end`` the earlier sum ``total`` wherever ``kept`` is false.

    ``result``: what is yielded. Where a known operation combines ``total`` with a term, the term becomes the
    operation's identity there: LLVM vectorizes that form. Else ``total`` is selected in place of ``result``.
    """
    combine = defining(result)
    if combine is not None and combine.name in IDENTITIES and len(list(total.uses)) == 1:
        terms = [place for place, term in enumerate(combine.operands) if term != total]
        if len(terms) == 1:
            term = combine.operands[terms[0]]
            with combine.location, ir.InsertionPoint(combine):
                identity = value("arith.constant", term.type, value=IDENTITIES[combine.name](term.type))
                combine.operands[terms[0]] = value("arith.select", term.type, kept, term, identity)
            return
    with end.location, ir.InsertionPoint(end):
        end.operands[number] = value("arith.select", result.type, kept, result, total)


def with_inputs(op: Op, added: Sequence[tuple[Value, ir.AffineMap]]) -> tuple[Op, list[Value]]:
    """Replaces a ``linalg.generic`` by one that reads more tensors, each by its indexing map.

    Returns the new operation, and the arguments of its body that are elements of the added tensors.
    """
    count = len(inputs_of(op))
    operands = list(op.operands)
    maps = maps_in(op)
    for tensor, mapping in reversed(added):
        operands.insert(count, tensor)
        maps.insert(count, mapping)
    segments = ir.DenseI32ArrayAttr.get([count + len(added), len(op.results)])
    with op.location, ir.InsertionPoint(op):
        new = recreated(
            *(op, types_of(op.results), operands),
            indexing_maps=maps_attribute(maps),
            operandSegmentSizes=segments,
        )
    old = op.regions[0].blocks[0]
    block = new.regions[0].blocks.append()
    for operand in operands:
        element = operand.type.element_type if is_tensor(operand) else operand.type
        block.add_argument(element, op.location)
    arguments = list(block.arguments)
    elements = arguments[count : count + len(added)]
    values = dict(zip(old.arguments, (*arguments[:count], *arguments[count + len(added) :]), strict=True))
    with ir.InsertionPoint(block):
        for inner in body_of(op):
            clone_into(inner, values)
    replace_results(op, new.results)
    op.erase()
    return new, elements
