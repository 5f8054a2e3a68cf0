"""Loads, stores, multiply-adds and transposes of vectors that a kernel keeps in registers."""

from collections.abc import Sequence

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.cpu_ops.vnni_packing import constant_mask
from tuner.mlir.ir.building import create, deinterleaved, line_of, value, with_line, zero

WIDEST = 16  # lanes of a register; MLIR transposes such a square well


def load_lanes(buffer: Value, indices: Sequence[Value], type_: Type, count: int, step: int = 1) -> Value:
    """Creates the load of a vector of type ``type_`` whose first ``count`` lanes are ``step`` elements apart.

    ``indices``: where in ``buffer`` the first lane is. Other lanes are 0, and their memory is not read. With
    ``step`` 0, all lanes are the element at ``indices``.
    """
    lanes = ir.VectorType(type_).shape[0]
    element = ir.VectorType(type_).element_type
    if step == 0:
        return value("vector.broadcast", type_, value("memref.load", element, buffer, *indices))
    if step == 1:
        return _adjacent(buffer, indices, type_, count)
    if step & (step - 1):
        return _gathered(buffer, indices, type_, count, step)
    wide = ir.VectorType.get([lanes * step], element)
    return deinterleaved(_adjacent(buffer, indices, wide, (count - 1) * step + 1), lanes)[0]


def _adjacent(buffer: Value, indices: Sequence[Value], type_: Type, count: int) -> Value:
    lanes = ir.VectorType(type_).shape[0]
    if count == lanes:
        return value("vector.load", type_, buffer, *indices)
    return value("vector.maskedload", type_, buffer, *indices, constant_mask(count, lanes), zero(type_))


def _gathered(buffer: Value, indices: Sequence[Value], type_: Type, count: int, step: int) -> Value:
    lanes = ir.VectorType(type_).shape[0]
    number = ir.IntegerType.get_signless(32)
    numbers = [ir.IntegerAttr.get(number, lane * step) for lane in range(lanes)]
    offsets = ir.DenseElementsAttr.get(numbers, ir.VectorType.get([lanes], number))
    at = value("arith.constant", ir.VectorType.get([lanes], number), value=offsets)
    return value("vector.gather", type_, buffer, *indices, at, constant_mask(count, lanes), zero(type_))


def store_lanes(
    vector: Value, buffer: Value, indices: Sequence[Value], count: int, *, adds: bool = False
) -> None:
    """Creates the store of a vector's first ``count`` lanes to adjacent elements of ``buffer``.

    ``indices``: of the first element. With ``adds``, the lanes are added to the elements.
    """
    type_ = vector.type
    lanes = ir.VectorType(type_).shape[0]
    element = ir.VectorType(type_).element_type
    if adds:
        name = "arith.addf" if isinstance(element, ir.FloatType) else "arith.addi"
        vector = value(name, type_, _adjacent(buffer, indices, type_, count), vector)
    if count == lanes:
        create("vector.store", [], [vector, buffer, *indices])
    else:
        create("vector.maskedstore", [], [buffer, *indices, constant_mask(count, lanes), vector])


def in_all_lanes(number: Value, type_: Type) -> Value:
    """Creates a vector of ``type_`` with a number in each of its lanes."""
    return value("vector.broadcast", type_, number)


def multiply_add(left: Value, right: Value, before: Value) -> Value:
    """Creates ``left * right + before`` of vectors; returns the result, of floats rounded once."""
    if isinstance(ir.VectorType(before.type).element_type, ir.FloatType):
        return value("vector.fma", before.type, left, right, before)
    return value("arith.addi", before.type, before, value("arith.muli", before.type, left, right))


def transposed_square(rows: Sequence[Value]) -> list[Value]:
    """Creates the transpose of a square matrix of vectors; returns its columns, one vector for each lane.

    ``rows``: vectors of one type, at most as many as such a vector has lanes; missing rows are 0.
    """
    line = ir.VectorType(rows[0].type)
    lanes = line.shape[0]
    if lanes < WIDEST:
        return _exchanged([*rows, *[zero(line)] * (lanes - len(rows))])
    square = ir.VectorType.get([lanes, lanes], line.element_type)
    whole = zero(square)
    for index, row in enumerate(rows):
        whole = with_line(whole, index, row)
    transposed = value("vector.transpose", square, whole, permutation=ir.DenseI64ArrayAttr.get([1, 0]))
    return [line_of(transposed, number) for number in range(lanes)]


def _exchanged(rows: list[Value]) -> list[Value]:
    """Creates the transpose of a square whose side is a power of 2, by exchanges of blocks of 1, 2, 4, ..."""
    lanes = len(rows)
    side = 1
    while side < lanes:
        upper = []
        lower = []
        for lane in range(lanes):
            if lane & side:
                upper.append(lane - side + lanes)
                lower.append(lane + lanes)
            else:
                upper.append(lane)
                lower.append(lane + side)
        for row in range(lanes):
            if not row & side:
                pair = rows[row], rows[row + side]
                rows[row] = _shuffled(*pair, upper)
                rows[row + side] = _shuffled(*pair, lower)
        side *= 2
    return rows


def _shuffled(first: Value, second: Value, lanes: Sequence[int]) -> Value:
    return value("vector.shuffle", first.type, first, second, mask=ir.DenseI64ArrayAttr.get(lanes))
