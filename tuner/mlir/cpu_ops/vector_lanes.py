"""Loads, stores, multiply-adds and transposes of vectors that a kernel keeps in registers."""

from collections.abc import Sequence

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.cpu_ops.vnni_packing import constant_mask
from tuner.mlir.ir.building import create, deinterleaved, line_of, value, with_line, zero


def load_lanes(buffer: Value, place: Sequence[Value], kind: Type, count: int, step: int = 1) -> Value:
    """Creates the load of a vector of type ``kind`` whose first ``count`` lanes are ``step`` elements apart.

    ``place``: the indices of the first lane in ``buffer``. Other lanes are 0, and their memory is not read.
    With ``step`` 0, all lanes are the one element at ``place``.
    """
    lanes = ir.VectorType(kind).shape[0]
    element = ir.VectorType(kind).element_type
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
    """Creates the store of a vector's first ``count`` lanes to adjacent elements of ``buffer``.

    ``place``: the indices of the first element. With ``adds``, the lanes are added to the elements.
    """
    kind = vector.type
    lanes = ir.VectorType(kind).shape[0]
    element = ir.VectorType(kind).element_type
    if adds:
        name = "arith.addf" if isinstance(element, ir.FloatType) else "arith.addi"
        vector = value(name, kind, _adjacent(buffer, place, kind, count), vector)
    if count == lanes:
        create("vector.store", [], [vector, buffer, *place])
    else:
        create("vector.maskedstore", [], [buffer, *place, constant_mask(count, lanes), vector])


def multiply_add(left: Value, right: Value, before: Value) -> Value:
    """Creates ``left * right + before`` of vectors; returns the result, of floats rounded once."""
    if isinstance(ir.VectorType(before.type).element_type, ir.FloatType):
        return value("vector.fma", before.type, left, right, before)
    return value("arith.addi", before.type, before, value("arith.muli", before.type, left, right))


def transposed_square(rows: Sequence[Value]) -> list[Value]:
    """Creates the transpose of vectors; returns as many vectors as a vector has lanes.

    ``rows``: at most as many as a vector has lanes; missing rows are 0.
    """
    line = ir.VectorType(rows[0].type)
    lanes = line.shape[0]
    square = ir.VectorType.get([lanes, lanes], line.element_type)
    whole = zero(square)
    for number, row in enumerate(rows):
        whole = with_line(whole, number, row)
    transposed = value("vector.transpose", square, whole, permutation=ir.DenseI64ArrayAttr.get([1, 0]))
    return [line_of(transposed, number) for number in range(lanes)]
