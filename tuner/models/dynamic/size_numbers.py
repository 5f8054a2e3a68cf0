"""Numbers that a program computes from its size n, such as the divisor of a mean: operands of loops.

A body that uses such a number reads n as one more operand, a tensor of rank 0, and computes it from that.
"""

from collections.abc import Callable

from tuner.core.dynamic_sizes import LinearSize
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions.operations import body_of, clone_into, inputs_of, is_tensor, read_by
from tuner.mlir.ir.building import value, zero
from tuner.mlir.ir.reading import maps_in
from tuner.models.dynamic.masks import with_inputs
from tuner.models.dynamic.size_analysis import KnownSizes, reads_size, size_below

NumberOf = Callable[[LinearSize, str], Value]  # the tensor of rank 0 that has a size, of an element type


def pass_numbers(op: Op, known: KnownSizes, number_of: NumberOf) -> None:
    """Replaces a ``linalg.generic`` by one that reads, as operands, the sizes that its body depends on.

    Nothing is changed where the body uses no number that depends on n.
    """
    _capture_numbers(op, known)
    outside = set(op.operands)
    captured = [number for number in read_by(op) if number not in outside and reads_size(number, known)]
    if not captured:
        return
    sizes: dict[Value, LinearSize] = {}
    for number in captured:
        _find_sizes(number, known, sizes)
    everywhere = ir.AffineMap.get(maps_in(op)[0].n_dims, 0, [])
    added = [(number_of(size, _element(number)), everywhere) for number, size in sizes.items()]
    new, elements = with_inputs(op, added)
    block = new.regions[0].blocks[0]
    values: dict[Value, Value] = {}
    with new.location, ir.InsertionPoint.at_block_begin(block):
        for number, element in zip(sizes, elements, strict=True):
            values[number] = _as_type(element, number.type)
        for number in captured:
            _compute(number, values)
    for inner in body_of(new):
        for place, operand in enumerate(inner.operands):
            if operand in captured:
                inner.operands[place] = values[operand]


def _capture_numbers(op: Op, known: KnownSizes) -> None:
    """Makes the body use numbers that depend on n themselves, which operands gave it before, in place."""
    for index, number in enumerate(inputs_of(op)):
        if reads_size(number, known):
            op.regions[0].blocks[0].arguments[index].replace_all_uses_with(number)
            with op.location, ir.InsertionPoint(op):
                op.operands[index] = zero(number.type)


def _find_sizes(number: Value, known: KnownSizes, sizes: dict[Value, LinearSize]) -> None:
    """Adds the sizes from which a scalar is computed, as far as they depend on n."""
    size = size_below(number, known)
    if size is not None:
        sizes[number] = size
    elif reads_size(number, known):
        for operand in number.owner.operation.operands:
            _find_sizes(operand, known, sizes)


def _element(number: Value) -> str:
    if isinstance(number.type, ir.IndexType):
        return "i64"
    return str(number.type)


def _as_type(element: Value, type_: ir.Type) -> Value:
    if isinstance(type_, ir.IndexType):
        return value("arith.index_cast", type_, element)
    return element


def _compute(number: Value, values: dict[Value, Value]) -> None:
    """Clones the scalar operations that compute a number, at the insertion point; adds them to ``values``."""
    if number in values or isinstance(number.owner, ir.Block) or is_tensor(number):
        return
    op = number.owner.operation
    for operand in op.operands:
        _compute(operand, values)
    clone_into(op, values)
