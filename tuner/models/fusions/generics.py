"""Creates operations on tensors for rewrites of fusions: conversions, transposes, reshapes, sums, fills."""

from collections.abc import Sequence
from math import prod

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.operations import (
    COLLAPSE,
    CONSTANT,
    EMPTY,
    EXPAND,
    GENERIC,
    PARALLEL,
    VIEWS,
    body_of,
    defining,
    is_free,
)
from tuner.mlir.ir import building
from tuner.mlir.ir.building import create, filled_tensor, integers, value
from tuner.mlir.ir.reading import groups_of, op_of
from tuner.models.fusions.payload import TensorPayload
from tuner.models.fusions.views import Reassociation


def maps_attribute(maps: Sequence[ir.AffineMap]) -> ir.Attribute:
    """Returns indexing maps as the attribute ``indexing_maps`` of a ``linalg.generic``."""
    return ir.ArrayAttr.get(list(map(ir.AffineMapAttr.get, maps)))


def parallel_loops(count: int) -> ir.Attribute:
    """Returns the attribute ``iterator_types`` of a ``linalg.generic`` with ``count`` parallel loops."""
    return ir.ArrayAttr.get([ir.Attribute.parse(PARALLEL)] * count)


def selecting(loops: int, positions: Sequence[int]) -> ir.AffineMap:
    """Returns the affine map from ``loops`` dimensions to the dimensions at ``positions``."""
    return ir.AffineMap.get(loops, 0, list(map(ir.AffineDimExpr.get, positions)))


def empty(shape: Sequence[int], element: ir.Type) -> Value:
    """Creates an empty tensor at the current insertion point."""
    return create("tensor.empty", [ir.RankedTensorType.get(list(shape), element)]).results[0]


def zeros(type_: ir.RankedTensorType) -> Value:
    """Creates a tensor of zeros at the current insertion point."""
    return filled_tensor(building.zero(type_.element_type), empty(type_.shape, type_.element_type))


def summed(left: Value, right: Value) -> Op:
    """Creates the elementwise sum of two tensors of one type at the current insertion point."""
    element = left.type.element_type
    name = "arith.addi" if isinstance(element, ir.IntegerType) else "arith.addf"
    return _elementwise([left, right], element, lambda first, other, _: value(name, element, first, other))


def converted(tensor: Value, element: ir.Type) -> Value:
    """Converts a float tensor to elements of type ``element``, extended or rounded; returns the result."""
    name = "arith.extf" if element.width > tensor.type.element_type.width else "arith.truncf"
    return _elementwise([tensor], element, lambda number, _: value(name, element, number)).results[0]


def extended(tensor: Value) -> Value:
    """Creates an f32 copy of a tensor of narrower floats right after its definition; returns the copy."""
    op = defining(tensor)
    if op is None:
        with ir.InsertionPoint.at_block_begin(tensor.owner), ir.Location.unknown():
            return converted(tensor, ir.F32Type.get())
    with ir.InsertionPoint.after(op), op.location:
        return converted(tensor, ir.F32Type.get())


def _elementwise(inputs: Sequence[Value], element: ir.Type, body: building.Body) -> Op:
    shape = inputs[0].type.shape
    rank = inputs[0].type.rank
    maps = [building.dimensions(rank)] * (len(inputs) + 1)
    return building.generic(inputs, empty(shape, element), maps, [building.PARALLEL] * rank, body)


def transposed(tensor: Value, order: Sequence[int]) -> Value:
    """Creates the transpose whose dimension i is dimension ``order[i]`` of ``tensor``; returns its value."""
    loops = building.dimensions(len(order))
    target = empty([tensor.type.shape[dimension] for dimension in order], tensor.type.element_type)
    maps = [[loops[order.index(dimension)] for dimension in range(len(order))], loops]
    iterators = [building.PARALLEL] * len(order)
    return building.generic([tensor], target, maps, iterators, lambda number, _: number).results[0]


def collapse(tensor: Value, groups: Reassociation) -> Value:
    """Creates the reshape of a tensor in which each group of dimensions is one dimension; returns its value.

    For an empty or filled tensor a new empty or filled tensor is created, without a reshape. If ``tensor`` is
    the result of the inverse reshape, the source of that is returned.
    """
    expanded = op_of(tensor, EXPAND)
    if expanded is not None and groups_of(expanded) == list(map(list, groups)):
        return expanded.operands[0]
    merged = [prod(tensor.type.shape[dimension] for dimension in group) for group in groups]
    if is_free(tensor):
        return reshaped(tensor, merged)
    type_ = ir.RankedTensorType.get(merged, tensor.type.element_type)
    return create(COLLAPSE, [type_], [tensor], reassociation=_reassociation(groups)).results[0]


def expand(tensor: Value, groups: Reassociation, shape: Sequence[int]) -> Value:
    """Creates the reshape of a tensor to ``shape``: each dimension is split into a group of dimensions.

    Returns its value. For an empty or filled tensor a new one is created, without a reshape. If ``tensor`` is
    the result of the inverse reshape, the source of that is returned.
    """
    if is_free(tensor):
        return reshaped(tensor, shape)
    collapsed = op_of(tensor, COLLAPSE)
    if collapsed is not None and groups_of(collapsed) == list(map(list, groups)):
        source = collapsed.operands[0]
        if list(source.type.shape) == list(shape):
            return source
    type_ = ir.RankedTensorType.get(list(shape), tensor.type.element_type)
    sizes = ir.DenseI64ArrayAttr.get(list(shape))
    attributes = {"reassociation": _reassociation(groups), "static_output_shape": sizes}
    return create(EXPAND, [type_], [tensor], **attributes).results[0]


def reshaped(tensor: Value, shape: Sequence[int]) -> Value:
    """Creates a tensor of ``shape`` like ``tensor``: empty, or filled with the same number; returns it.

    ``tensor`` must be the result of ``tensor.empty`` or ``linalg.fill``.
    """
    op = defining(tensor)
    assert op is not None
    new = empty(shape, tensor.type.element_type)
    if op.name == EMPTY:
        return new
    return filled_tensor(op.operands[0], new)


def reshape_fills(payload: TensorPayload) -> None:
    """Replaces reshapes and slices of empty or filled tensors by new empty or filled tensors, in place."""
    for op in payload.ops:
        if op.name in VIEWS and is_free(op.operands[0]):
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(reshaped(op.operands[0], op.results[0].type.shape))
            op.erase()


def fill_broadcasts(payload: TensorPayload) -> None:
    """Replaces broadcasts of a constant whose elements are all one number by filled tensors, in place.

      %t = linalg.generic ins(%c : tensor<i1>) outs(%e : tensor<4x4xi1>) { linalg.yield %in }
    with %c = arith.constant dense<true> becomes
      %t = linalg.fill ins(%true : i1) outs(%e : tensor<4x4xi1>)
    """
    for op in payload.ops:
        number = _number_of_broadcast(op)
        if number is not None:
            with ir.InsertionPoint(op), op.location:
                element = op.results[0].type.element_type
                scalar = value("arith.constant", element, value=number)
                op.results[0].replace_all_uses_with(filled_tensor(scalar, op.operands[1]))
            op.erase()


def _number_of_broadcast(op: Op) -> ir.Attribute | None:
    if op.name != GENERIC or len(op.operands) != 2 or len(body_of(op)) != 1:
        return None
    block = op.regions[0].blocks[0]
    constant = op_of(op.operands[0], CONSTANT)
    if constant is None or body_of(op)[0].operands[0] != block.arguments[0]:
        return None
    elements = constant.attributes["value"]
    if isinstance(elements, ir.DenseElementsAttr) and elements.is_splat:
        return elements.get_splat_value()
    return None


def _reassociation(groups: Reassociation) -> ir.Attribute:
    return ir.ArrayAttr.get([integers(list(group)) for group in groups])
