"""Adjacent lanes exchange pieces of rows, so that each lane stores 16 bytes of one row.

``mma.sync`` leaves two adjacent sums, of a row of 8, in each of four lanes (a quad). When lanes exchange
their pieces of as many tiles, adjacent in C, each lane has 16 bytes of a row: a transposition of a square
matrix in registers, of which each lane holds a column, by a butterfly of shuffles.
"""

from collections.abc import Sequence

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import affine, create, symbol, value
from tuner.mlir.rewrite.index_terms import split_constant

TILE_COLUMNS = 8  # of C, per mma.sync
PIECE = 2  # adjacent sums of a row that one lane holds
STORE_BYTES = 16
WORD_BITS = 32  # a register, the operand of a shuffle


def tiles_at_once(element_bits: int) -> int:
    """Returns from how many tiles of C adjacent lanes exchange pieces, so that a lane then stores 16 bytes.

    As many lanes take part: 4 for elements of 16 bits, 2 for 32 bits.
    """
    return STORE_BYTES * 8 // (PIECE * element_bits)


def neighbours(stores: Sequence[Op], count: int) -> list[tuple[Op, ...]]:
    """Returns groups of ``count`` stores to the same row of C in adjacent tiles, each ordered by column.

    ``stores``: ``vector.store`` ops. A tile has 8 columns. A store without enough neighbours is in no group.
    """
    rows: dict[object, dict[int, Op]] = {}
    for store in stores:
        *outer, column = list(store.operands)[2:]
        base, constant = split_constant(column)
        rows.setdefault((tuple(outer), base), {})[constant] = store
    found = []
    for row in rows.values():
        for first in sorted(row):
            places = range(first, first + count * TILE_COLUMNS, TILE_COLUMNS)
            if all(place in row for place in places):
                found.append(tuple(row.pop(place) for place in places))
    return found


def exchange(pieces: Sequence[Value], lane: Value) -> Value:
    """Creates shuffles by which adjacent lanes exchange pieces of rows; returns a lane's 16-byte vector.

    ``pieces``: the lane's vectors of two sums, one per tile; the number of tiles must be a power of two. Lane
    i gets pieces of tile i modulo the number of tiles, adjacent in a row of C, from as many lanes. ``lane``:
    the lane's number, an index value.
    """
    rows = [_text(piece) for piece in pieces]
    distance = 1
    while distance < len(rows):
        is_upper = _has_bit(lane, distance)
        for number in range(len(rows)):
            if not number & distance:
                rows[number], rows[number | distance] = _swap(
                    rows[number], rows[number | distance], is_upper, distance
                )
        distance *= 2
    return _joined([word for row in rows for word in row], ir.VectorType(pieces[0].type).element_type)


def column_of(column: Value, lane: Value, count: int) -> Value:
    """Creates the column in C of the 16 bytes that a lane stores after ``exchange``, an index value.

    ``column``: the column of the lane's piece of the first tile; ``count``: the number of tiles.
    """
    distance = TILE_COLUMNS - PIECE
    return affine(symbol(0) + ir.AffineExpr.get_mod(symbol(1), count) * distance, column, lane)


def _swap(
    low: list[Value], high: list[Value], is_upper: Value, distance: int
) -> tuple[list[Value], list[Value]]:
    """Exchanges the upper lane's low row with the lower lane's high row; returns the new (low, high)."""
    new_low, new_high = [], []
    for mine, other in zip(low, high, strict=True):
        sent = value("arith.select", mine.type, is_upper, mine, other)
        received = _from_neighbour_lane(sent, distance)
        new_low.append(value("arith.select", mine.type, is_upper, received, mine))
        new_high.append(value("arith.select", mine.type, is_upper, other, received))
    return new_low, new_high


def _from_neighbour_lane(word: Value, distance: int) -> Value:
    """Creates the shuffle that reads ``word`` of the lane whose number differs in the bit ``distance``."""
    offset, width = (_i32(number) for number in (distance, 32))
    mode = ir.Attribute.parse("#gpu<shuffle_mode xor>")
    kinds = [word.type, ir.IntegerType.get_signless(1)]
    return create("gpu.shuffle", kinds, [word, offset, width], mode=mode).results[0]


def _i32(number: int) -> Value:
    kind = ir.IntegerType.get_signless(32)
    return value("arith.constant", kind, value=ir.IntegerAttr.get(kind, number))


def _has_bit(lane: Value, bit: int) -> Value:
    index = ir.IndexType.get()
    of_lane = affine(ir.AffineExpr.get_mod(ir.AffineExpr.get_floor_div(symbol(0), bit), 2), lane)
    one = value("arith.constant", index, value=ir.IntegerAttr.get(index, 1))
    equal = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)  # arith's eq
    return value("arith.cmpi", ir.IntegerType.get_signless(1), of_lane, one, predicate=equal)


def _text(piece: Value) -> list[Value]:
    """Creates the 32-bit registers of a piece: two for 32-bit sums, one for both 16-bit sums."""
    kind = ir.VectorType(piece.type)
    if kind.element_type.width == WORD_BITS:
        return [_element(piece, number) for number in range(PIECE)]
    packed = ir.VectorType.get([1], ir.IntegerType.get_signless(WORD_BITS))
    return [_element(value("vector.bitcast", packed, piece), 0)]


def _element(vector: Value, number: int) -> Value:
    kind = ir.VectorType(vector.type).element_type
    return value("vector.extract", kind, vector, static_position=ir.DenseI64ArrayAttr.get([number]))


def _joined(words: list[Value], element: ir.Type) -> Value:
    """Creates the vector of ``element`` from the registers ``words``."""
    whole = value("vector.from_elements", ir.VectorType.get([len(words)], words[0].type), *words)
    if words[0].type == element:
        return whole
    count = len(words) * WORD_BITS // element.width
    return value("vector.bitcast", ir.VectorType.get([count], element), whole)
