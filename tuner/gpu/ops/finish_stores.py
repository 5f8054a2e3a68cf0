"""The transform op ``tuner.finish_stores``."""

import math
from collections.abc import Sequence
from itertools import chain

from tuner.core.errors import Refusal
from tuner.gpu.ir import padded_views
from tuner.gpu.ir.launches import index_along
from tuner.gpu.ir.scalar_epilogues import apply_epilogue, find_epilogue, output_type, reads_argument
from tuner.gpu.ir.warps import shuffled, word
from tuner.gpu.ops.add_parts import PARTS
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute, text
from tuner.mlir.ir import memrefs
from tuner.mlir.ir.building import (
    affine,
    branch,
    create,
    element_of,
    index,
    is_equal,
    piece,
    plus,
    symbol,
    value,
)
from tuner.mlir.ir.index_terms import split_constant
from tuner.mlir.ir.reading import walk

# Adjacent lanes exchange pieces of rows, so that each lane stores 16 bytes of one row.
#
# ``mma.sync`` leaves two adjacent sums, of a row of 8, in each of four lanes (a quad). When lanes exchange
# their pieces of as many tiles, adjacent in C, each lane has 16 bytes of a row: a transposition of a square
# matrix in registers, of which each lane holds a column, by a butterfly of shuffles.

TILE_COLUMNS = 8  # of C, per mma.sync
PIECE = 2  # adjacent sums of a row that one lane holds
STORE_BYTES = 16
WORD_BITS = 32  # a register, the operand of a shuffle
MODES = ("store", "atomic", "workspace")


def neighbours(stores: Sequence[Op], count: int) -> list[tuple[Op, ...]]:
    """Returns groups of ``count`` stores to one row of C in adjacent tiles of 8 columns, by column.

    Stores that belong to no whole group are left out.
    """
    rows: dict[object, dict[int, Op]] = {}
    for store in stores:
        *outer, column = list(store.operands)[2:]
        base, constant = split_constant(column)
        rows.setdefault((tuple(outer), base), {})[constant] = store
    groups = []
    for row in rows.values():
        for first in sorted(row):
            columns = range(first, first + count * TILE_COLUMNS, TILE_COLUMNS)
            if all(column in row for column in columns):
                groups.append(tuple(map(row.pop, columns)))
    return groups


def exchange(pieces: Sequence[Value], lane: Value) -> Value:
    """Creates shuffles by which adjacent lanes exchange pieces of rows; returns a lane's 16-byte vector.

    ``pieces``: the lane's vectors of two sums, one per tile, a power of two. Lane i gets pieces of tile i
    modulo the number of tiles, adjacent in a row of C. ``lane``: an index value.
    """
    rows = list(map(_packed_registers, pieces))
    distance = 1
    while distance < len(rows):
        bit = ir.AffineExpr.get_mod(ir.AffineExpr.get_floor_div(symbol(0), distance), 2)
        is_upper = is_equal(affine(bit, lane), index(1))
        for number in range(len(rows)):
            if not number & distance:
                rows[number], rows[number | distance] = _swap(
                    rows[number], rows[number | distance], is_upper, distance
                )
        distance *= 2
    return _joined(list(chain.from_iterable(rows)), ir.VectorType(pieces[0].type).element_type)


def column_of(column: Value, lane: Value, count: int) -> Value:
    """Creates the column in C at which a lane stores its 16 bytes after ``exchange``.

    ``column``: of the lane's first piece; ``lane``: index of the lane, an index value; ``count``: tiles that
    lanes exchange.
    """
    distance = TILE_COLUMNS - PIECE
    return affine(symbol(0) + ir.AffineExpr.get_mod(symbol(1), count) * distance, column, lane)


def _swap(
    low: list[Value], high: list[Value], is_upper: Value, distance: int
) -> tuple[list[Value], list[Value]]:
    """Exchanges the upper lane's low row with the lower lane's high row; returns the new (low, high)."""
    new_low = []
    new_high = []
    for mine, other in zip(low, high, strict=True):
        sent = value("arith.select", mine.type, is_upper, mine, other)
        received = shuffled("xor", sent, word(distance))
        new_low.append(value("arith.select", mine.type, is_upper, received, mine))
        new_high.append(value("arith.select", mine.type, is_upper, other, received))
    return new_low, new_high


def _packed_registers(sums: Value) -> list[Value]:
    type_ = ir.VectorType(sums.type)
    if type_.element_type.width == WORD_BITS:
        return [element_of(sums, number) for number in range(PIECE)]
    packed = ir.VectorType.get([1], ir.IntegerType.get_signless(WORD_BITS))
    return [element_of(value("vector.bitcast", packed, sums), 0)]


def _joined(words: list[Value], element: ir.Type) -> Value:
    whole = value("vector.from_elements", ir.VectorType.get([len(words)], words[0].type), *words)
    if words[0].type == element:
        return whole
    count = len(words) * WORD_BITS // element.width
    return value("vector.bitcast", ir.VectorType.get([count], element), whole)


class FinishStoresOp(InPlaceOp, name="finish_stores"):
    """``tuner.finish_stores``: completes stores to the output; the last op of a script.

    Takes a function that stores vectors of sums to one argument by 1-D ``vector.store``, or to several ones
    in mode ``"store"`` without an epilogue. An argument may be a padded view (of ``tuner.pad_views``: a type
    larger than the memory, with true sizes ``tuner.bounds``), and ``tuner.set_aside_epilogue`` may have moved
    the epilogue out of the function. Gives stores of final elements, as wide as the alignment of output rows
    allows, within the true sizes.

        vector.store %sums, %c[%i, %j] : memref<64x64xf32, strided<[62, 1]>>, vector<4xf32>
      of %c with tuner.bounds = array<i64: 50, 62>, whose rows are multiples of 2 elements, becomes twice
        %part = vector.extract_strided_slice %sums {offsets = [0], sizes = [2], strides = [1]} : ...
        %is_inside = arith.andi %is_row, %is_column : i1
        scf.if %is_inside {
          vector.store %part, %c[%i, %j] : memref<64x64xf32, strided<[62, 1]>>, vector<2xf32>

    Attribute ``mode`` (string): ``"store"`` (default) applies the epilogue that was set aside; ``"atomic"``
    adds to the output, whose argument is marked ``tuner.zeroed``; ``"workspace"`` stores to slice
    ``gpu.block_id z`` of ``slices`` (i64, default 1), and the output argument, a slice of whole tiles,
    becomes a workspace of all slices. ``exchange`` (i64, default 0): 1 means that vectors are pieces of rows
    as ``mma.sync`` leaves them; with mode ``"store"``, lanes then exchange pieces and store 16 bytes each
    where rows are aligned and whole, and no epilogue reads the output: a lane would read what another one
    stores. Types of arguments change; the handle (a func.func) stays valid.
    Silenceable failure, with nothing changed: an unknown mode, no store, stores to several arguments with an
    epilogue or in another mode, stores in another form, an epilogue with a mode other than ``"store"``, a
    workspace that is a padded view.
    """

    def change(self, function: Op) -> Refusal | None:
        mode = text(self, "mode", "store")
        slices = attribute(self, "slices", 1)
        stores = [op for op in walk(function, "vector.store") if _is_output(op.operands[1])]
        reason = _why_not(function, stores, mode)
        if reason is not None:
            return reason
        is_exchanged = attribute(self, "exchange", 0) == 1
        by_argument: dict[Value, list[Op]] = {}
        for store in stores:
            by_argument.setdefault(store.operands[1], []).append(store)
        for argument, own in by_argument.items():
            _finish(own, _Output(function, argument, mode), slices, is_exchanged=is_exchanged)
        return None


class _Output:
    """The argument that is stored to, and how its stores are rewritten."""

    def __init__(self, function: Op, argument: Value, mode: str) -> None:
        self.function = function
        self.argument = argument
        self.mode = mode
        self.bounds: padded_views.Bounds = padded_views.bounds_of(argument)
        self.epilogue = find_epilogue(function)
        self.row_elements = ir.MemRefType(argument.type).get_strides_and_offset()[0][0]

    def put(self, vector: Value, indices: list[Value]) -> None:
        """Creates the store of adjacent sums, after the epilogue; the caller checks the bounds."""
        self.write(self.finished(vector, indices), indices)

    def finished(self, vector: Value, indices: list[Value]) -> Value:
        if self.epilogue is None:
            return vector
        return apply_epilogue(self.epilogue, self.function, vector, indices)

    def clamped(self, indices: list[Value]) -> list[Value]:
        """Creates indices limited to the true sizes, for an epilogue's loads; ``indices`` without one."""
        if self.epilogue is None:
            return indices
        return [
            value("arith.minui", position.type, position, index(self.bounds[axis] - 1))
            if axis in self.bounds
            else position
            for axis, position in enumerate(indices)
        ]

    def write(self, vector: Value, indices: list[Value]) -> None:
        if self.mode == "atomic":
            element = ir.VectorType(vector.type).element_type
            first = element_of(vector, 0)
            # numbers of arith's AtomicRMWKind
            addi = "1 : i64"
            addf = "0 : i64"
            rmw_kind = ir.Attribute.parse(addi if isinstance(element, ir.IntegerType) else addf)
            value("memref.atomic_rmw", element, first, self.argument, *indices, kind=rmw_kind)
        elif self.mode == "workspace":
            number = index_along("gpu.block_id", "z")
            create("vector.store", [], [vector, self.argument, number, *indices])
        else:
            create("vector.store", [], [vector, self.argument, *indices])

    @property
    def element(self) -> Type:
        return ir.MemRefType(self.argument.type).element_type

    @property
    def is_read(self) -> bool:
        """Returns whether the epilogue reads the output's elements."""
        number = ir.BlockArgument(self.argument).arg_number
        return self.epilogue is not None and reads_argument(self.epilogue, number)

    @property
    def has_whole_rows(self) -> bool:
        is_aligned = self.row_elements * self.element.width % (8 * STORE_BYTES) == 0
        return is_aligned and len(ir.MemRefType(self.argument.type).shape) - 1 not in self.bounds

    def width(self, whole: int) -> int:
        """Returns the elements per store of a vector of ``whole`` elements: as rows' alignment allows.

        1 if atomic.
        """
        if self.mode == "atomic":
            return 1
        return math.gcd(whole, self.row_elements)


def _finish(stores: list[Op], output: _Output, slices: int, *, is_exchanged: bool) -> None:
    """Replaces stores to ``output``'s argument by stores as wide as its alignment allows, within true sizes.

    They are after the epilogue, or as the mode says; the argument's type may change. ``slices``: of a
    workspace; ``is_exchanged``: lanes may exchange pieces of rows first.
    """
    if output.mode == "workspace":
        _become_workspace(output, slices)
    elif output.mode == "atomic":
        number = ir.BlockArgument(output.argument).arg_number
        memrefs.set_argument_attribute(output.function, number, "tuner.zeroed", ir.UnitAttr.get())
    elif output.epilogue is not None:
        memrefs.retype_argument(output.argument, output_type(output.epilogue))
        memrefs.sync_function_type(output.function)
    if is_exchanged and output.mode == "store":
        stores = _exchange(stores, output)
    for store in stores:
        vector, _, *indices = store.operands
        whole = ir.VectorType(vector.type).shape[0]
        width = output.width(whole)
        with store.location, ir.InsertionPoint(store):
            for offset in range(0, whole, width):
                part = piece(vector, offset, width)
                _store_part(part, [*indices[:-1], plus(indices[-1], offset)], output)
        store.erase()
    if output.epilogue is not None:
        output.epilogue.erase()


def _is_output(view: Value) -> bool:
    """Returns whether a memref is an argument, other than ``tuner.add_parts``'s buffer of parts."""
    if not memrefs.is_argument(view):
        return False
    buffers = memrefs.named_arguments(view.owner.owner.operation, memrefs.BUFFER)
    return PARTS not in buffers or bool(buffers[PARTS] != view)


def _why_not(function: Op, stores: list[Op], mode: str) -> Refusal | None:
    if mode not in MODES:
        return Refusal(f"mode: found {mode!r}, allowed {', '.join(MODES)}")
    others = [*walk(function, "vector.transfer_write"), *walk(function, "memref.store")]
    other = next((store for store in others if memrefs.is_argument(store.operands[1])), None)
    if other is not None:
        return Refusal(f"found {other.name} to an argument, allowed vector.store")
    has_epilogue = find_epilogue(function) is not None
    arguments = {store.operands[1] for store in stores}
    if not arguments or (len(arguments) > 1 and (mode != "store" or has_epilogue)):
        allowed = "some, all to one, or in mode store without an epilogue"
        return Refusal(f"found {len(stores)} stores to {len(arguments)} arguments, allowed {allowed}")
    if mode == "workspace" and padded_views.bounds_of(stores[0].operands[1]):
        return Refusal(
            f"workspace: expected whole tiles, got {stores[0].operands[1].type} with {padded_views.BOUNDS}"
        )
    if mode != "store" and has_epilogue:
        return Refusal(f"mode: found {mode!r} and an epilogue, allowed store: sums of a part of K get none")
    return None


def _become_workspace(output: _Output, slices: int) -> None:
    memref = ir.MemRefType(output.argument.type)
    sizes = [slices, *memref.shape]
    output.argument.set_type(ir.MemRefType.get(sizes, memref.element_type))
    output.bounds = {}
    output.row_elements = memref.shape[1]
    memrefs.sync_function_type(output.function)
    number = ir.BlockArgument(output.argument).arg_number
    memrefs.set_argument_attribute(
        output.function, number, padded_views.BOUNDS, ir.DenseI64ArrayAttr.get(sizes)
    )


def _exchange(stores: list[Op], output: _Output) -> list[Op]:
    """Replaces stores of adjacent tiles by one 16-byte store per lane; returns the stores that remain.

    All remain if rows are not aligned and whole, or if the epilogue reads the output.
    """
    # number of lanes that exchange pieces, and of tiles of C: each lane then has 16 bytes
    count = STORE_BYTES * 8 // (PIECE * output.element.width)
    if output.is_read or not output.has_whole_rows:
        return stores
    if any(ir.VectorType(store.operands[0].type).shape != [2] for store in stores):
        return stores
    groups = neighbours(stores, count)
    for group in groups:
        last = next(store for store in reversed(stores) if store in group)
        with last.location, ir.InsertionPoint(last):
            _store_exchanged(group, count, output)
    replaced = list(chain.from_iterable(groups))
    left = [store for store in stores if store not in replaced]
    for store in replaced:
        store.erase()
    return left


def _store_exchanged(group: tuple[Op, ...], count: int, output: _Output) -> None:
    lane = value("gpu.lane_id", ir.IndexType.get())
    pieces = [output.finished(store.operands[0], output.clamped(list(store.operands)[2:])) for store in group]
    *rows, column = list(group[0].operands)[2:]
    whole = exchange(pieces, lane)
    indices = [*rows, column_of(column, lane, count)]
    inside = padded_views.is_inside(indices, output.bounds)
    if inside is None:
        output.write(whole, indices)
    else:
        branch(inside, lambda: output.write(whole, indices))


def _store_part(vector: Value, indices: list[Value], output: _Output) -> None:
    inside = padded_views.is_inside(indices, output.bounds)
    if inside is None:
        output.put(vector, indices)
    else:
        branch(inside, lambda: output.put(vector, indices))
