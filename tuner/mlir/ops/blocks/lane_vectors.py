"""Loads and stores of registers of elements of a buffer: masked at the end, strided, transposed.

Each function creates its ops at the current insertion point.
"""

from collections.abc import Sequence

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.ops.blocks.words import constant_mask
from tuner.mlir.rewrite.building import create, deinterleaved, line_of, value, with_line, zero


def load_lanes(buffer: Value, place: Sequence[Value], kind: Type, count: int, step: int = 1) -> Value:
    """Creates the load of the first ``count`` lanes of a vector type from a place of a memref.

    ``step``: elements from one lane to the next; 0: one element for all lanes. Other lanes are 0. Elements
    after the last lane are not read.
    """
    lanes, element = ir.VectorType(kind).shape[0], ir.VectorType(kind).element_type
    if step == 0:
        return value("vector.broadcast", kind, value("memref.load", element, buffer, *place))
    if step == 1:
        return _adjacent(buffer, place, kind, count)
    if step & (step - 1):
        return _gathered(buffer, place, kind, count, step)
    wide = ir.VectorType.get([lanes * step], element)
    return deinterleaved(_adjacent(buffer, place, wide, (count - 1) * step + 1), lanes)[0]


def _adjacent(buffer: Value, place: Sequence[Value], kind: Type, count: int) -> Value:
    lanes = ir.VectorType(kind).shape[0]
    if count == lanes:
        return value("vector.load", kind, buffer, *place)
    return value("vector.maskedload", kind, buffer, *place, constant_mask(count, lanes), zero(kind))


def _gathered(buffer: Value, place: Sequence[Value], kind: Type, count: int, step: int) -> Value:
    lanes = ir.VectorType(kind).shape[0]
    number = ir.IntegerType.get_signless(32)
    numbers = [ir.IntegerAttr.get(number, lane * step) for lane in range(lanes)]
    offsets = ir.DenseElementsAttr.get(numbers, ir.VectorType.get([lanes], number))
    at = value("arith.constant", ir.VectorType.get([lanes], number), value=offsets)
    return value("vector.gather", kind, buffer, *place, at, constant_mask(count, lanes), zero(kind))


def store_lanes(
    vector: Value, buffer: Value, place: Sequence[Value], count: int, *, adds: bool = False
) -> None:
    """Creates the store of the first ``count`` lanes of a vector to adjacent elements of a memref.

    ``adds``: they are added to what is there.
    """
    kind = vector.type
    lanes, element = ir.VectorType(kind).shape[0], ir.VectorType(kind).element_type
    if adds:
        name = "arith.addf" if isinstance(element, ir.FloatType) else "arith.addi"
        vector = value(name, kind, _adjacent(buffer, place, kind, count), vector)
    if count == lanes:
        create("vector.store", [], [vector, buffer, *place])
    else:
        create("vector.maskedstore", [], [buffer, *place, constant_mask(count, lanes), vector])


def multiply_add(left: Value, right: Value, before: Value) -> Value:
    """Creates ``left * right + before`` of vectors; of floats it is rounded once."""
    if isinstance(ir.VectorType(before.type).element_type, ir.FloatType):
        return value("vector.fma", before.type, left, right, before)
    return value("arith.addi", before.type, before, value("arith.muli", before.type, left, right))


def transposed_square(rows: Sequence[Value]) -> list[Value]:
    """Creates the transpose of vectors, at most as many as each has lanes; missing rows are 0."""
    line = ir.VectorType(rows[0].type)
    lanes = line.shape[0]
    square = ir.VectorType.get([lanes, lanes], line.element_type)
    whole = zero(square)
    for number, row in enumerate(rows):
        whole = with_line(whole, number, row)
    turned = value("vector.transpose", square, whole, permutation=ir.DenseI64ArrayAttr.get([1, 0]))
    return [line_of(turned, number) for number in range(lanes)]
