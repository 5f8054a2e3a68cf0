"""``tuner.finish_stores``: completes stores to the output; the last op of a script.

Takes a function that stores vectors of sums to one argument by 1-D ``vector.store``; the argument may be a
padded view (``rewrite/padded_views.py``) and have an epilogue set aside (``rewrite/epilogues.py``). Gives
stores of final elements that are as wide as the alignment of output rows allows, within the true sizes. Not
handled: stores to several arguments, other forms of stores, an epilogue of partial sums.

    vector.store %sums, %c[%i, %j] : memref<64x64xf32, strided<[62, 1]>>, vector<4xf32>
  of %c with tuner.bounds = array<i64: 50, 62>, whose rows are multiples of 2 elements, becomes twice
    %part = vector.extract_strided_slice %sums {offsets = [0], sizes = [2], strides = [1]} : vector<4xf32> ...
    %is_inside = arith.andi %is_row, %is_column : i1
    scf.if %is_inside {
      vector.store %part, %c[%i, %j] : memref<64x64xf32, strided<[62, 1]>>, vector<2xf32>
"""

import math

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ops.dialect import InPlaceOp, attribute, text
from tuner.mlir.rewrite.building import branch, create, piece, plus, value
from tuner.mlir.rewrite.epilogues import apply_epilogue, find_epilogue, output_type
from tuner.mlir.rewrite.gpu_indices import index_along
from tuner.mlir.rewrite.padded_views import (
    BOUNDS,
    Bounds,
    bounds_of,
    is_inside,
    retype_argument,
    set_argument_attribute,
    sync_function_type,
)
from tuner.mlir.rewrite.quad_exchange import STORE_BYTES, column_of, exchange, neighbours, tiles_at_once
from tuner.mlir.rewrite.walking import walk

MODES = ("store", "atomic", "workspace")


class FinishStoresOp(InPlaceOp, name="finish_stores"):
    """The transform op ``tuner.finish_stores``, which completes stores of sums to the output argument.

    Rewrites every ``vector.store`` to a function argument: within the argument's true sizes, aligned, and as
    attribute ``mode`` (string) says: ``"store"`` (default) applies the epilogue that was set aside;
    ``"atomic"`` adds to the output, whose argument is marked ``tuner.zeroed``; ``"workspace"`` stores to
    slice ``gpu.block_id z`` of ``slices`` (i64, default 1), and the output argument, a slice of whole tiles,
    becomes a workspace of all slices. ``exchange`` (i64, default 0): 1 means that vectors are pieces of rows
    as ``mma.sync`` leaves them; with mode ``"store"``, lanes then exchange pieces and store 16 bytes each
    (``rewrite/quad_exchange.py``) where rows are aligned and whole. Types of arguments change; the handle (a
    func.func) stays valid. Silenceable failure: an unknown mode, no store, stores to several arguments or in
    another form, an epilogue with a mode other than ``"store"``, a workspace that is a padded view.
    """

    def change(self, function: Op) -> str | None:
        """Rewrites one function's stores of sums to its output argument as stores of final elements.

        In place. The new stores stay within the true sizes, are aligned, and apply the epilogue that was set
        aside, or add to the output or to a workspace, as the attribute ``mode`` says. May change the type of
        the argument. Returns None, or a message on what is not supported; nothing is changed then.
        """
        mode, slices = text(self, "mode", "store"), attribute(self, "slices", 1)
        stores = [each for each in walk(function, "vector.store") if _is_argument(each.operands[1])]
        reason = _why_not(function, stores, mode)
        if reason is not None:
            return reason
        _finish(function, stores, mode, slices, attribute(self, "exchange", 0) == 1)
        return None


class _Output:
    """The argument that is stored to, and how its stores are rewritten."""

    def __init__(self, function: Op, argument: Value, mode: str) -> None:
        self.function, self.argument, self.mode = function, argument, mode
        self.bounds: Bounds = bounds_of(argument)
        self.epilogue = find_epilogue(function)
        self.row = ir.MemRefType(argument.type).get_strides_and_offset()[0][0]  # elements

    def put(self, vector: Value, indices: list[Value]) -> None:
        """Creates the store of adjacent sums, with the epilogue; all must be within bounds."""
        self.write(self.finished(vector, indices), indices)

    def finished(self, vector: Value, indices: list[Value]) -> Value:
        """Creates the result of the epilogue for a vector of sums."""
        if self.epilogue is None:
            return vector
        return apply_epilogue(self.epilogue, self.function, vector, indices)

    def write(self, vector: Value, indices: list[Value]) -> None:
        """Creates the store of final elements, by the mode."""
        if self.mode == "atomic":
            self._add(vector, indices)
        elif self.mode == "workspace":
            number = index_along("gpu.block_id", "z")
            create("vector.store", [], [vector, self.argument, number, *indices])
        else:
            create("vector.store", [], [vector, self.argument, *indices])

    def _add(self, vector: Value, indices: list[Value]) -> None:
        element = ir.VectorType(vector.type).element_type
        first = value("vector.extract", element, vector, static_position=ir.DenseI64ArrayAttr.get([0]))
        kind = ir.Attribute.parse(
            "1 : i64" if isinstance(element, ir.IntegerType) else "0 : i64"
        )  # addi, addf
        value("memref.atomic_rmw", element, first, self.argument, *indices, kind=kind)

    @property
    def element(self) -> Type:
        """Returns the element type of the output."""
        return ir.MemRefType(self.argument.type).element_type

    @property
    def has_whole_rows(self) -> bool:
        """Returns whether columns have no bound and rows are aligned to 16 bytes."""
        is_aligned = self.row * self.element.width % (8 * STORE_BYTES) == 0
        return is_aligned and len(ir.MemRefType(self.argument.type).shape) - 1 not in self.bounds

    def width(self, whole: int) -> int:
        """Returns the elements per store, for a vector of ``whole`` elements, so that stores are aligned."""
        return 1 if self.mode == "atomic" else math.gcd(whole, self.row)


def _is_argument(view: Value) -> bool:
    return isinstance(view.owner, ir.Block) and view.owner.owner.operation.name == "func.func"


def _why_not(function: Op, stores: list[Op], mode: str) -> str | None:
    if mode not in MODES:
        return f"mode: found {mode!r}, allowed {', '.join(MODES)}"
    others = [*walk(function, "vector.transfer_write"), *walk(function, "memref.store")]
    other = next((each for each in others if _is_argument(each.operands[1])), None)
    if other is not None:
        return f"found {other.name} to an argument, allowed vector.store"
    if len({store.operands[1] for store in stores}) != 1:
        return f"found {len(stores)} stores to arguments, allowed some, all to one"
    if mode == "workspace" and bounds_of(stores[0].operands[1]):
        return f"workspace: expected whole tiles, got {stores[0].operands[1].type} with {BOUNDS}"
    if mode != "store" and find_epilogue(function) is not None:
        return f"mode: found {mode!r} and an epilogue, allowed store: sums of a part of K get none"
    return None


def _finish(function: Op, stores: list[Op], mode: str, slices: int, is_exchanged: bool) -> None:
    output = _Output(function, stores[0].operands[1], mode)
    if mode == "workspace":
        _become_workspace(output, slices)
    elif mode == "atomic":
        number = ir.BlockArgument(output.argument).arg_number
        set_argument_attribute(function, number, "tuner.zeroed", ir.UnitAttr.get())
    elif output.epilogue is not None:
        retype_argument(output.argument, output_type(output.epilogue))
        sync_function_type(function)
    if is_exchanged and mode == "store":
        stores = _exchange(stores, output)
    for store in stores:
        _rewrite(store, output)
    if output.epilogue is not None:
        output.epilogue.erase()


def _become_workspace(output: _Output, slices: int) -> None:
    """Makes the output a workspace of (slices, *padded sizes), whose stores need no bounds."""
    memref = ir.MemRefType(output.argument.type)
    sizes = [slices, *memref.shape]
    output.argument.set_type(ir.MemRefType.get(sizes, memref.element_type))
    output.bounds, output.row = {}, memref.shape[1]
    sync_function_type(output.function)
    number = ir.BlockArgument(output.argument).arg_number
    set_argument_attribute(output.function, number, BOUNDS, ir.DenseI64ArrayAttr.get(sizes))


def _exchange(stores: list[Op], output: _Output) -> list[Op]:
    """Replaces stores of adjacent tiles by one 16-byte store per lane; returns the remaining stores."""
    count = tiles_at_once(output.element.width)
    if not output.has_whole_rows or any(
        ir.VectorType(store.operands[0].type).shape != [2] for store in stores
    ):
        return stores
    groups = neighbours(stores, count)
    for group in groups:
        last = next(store for store in reversed(stores) if store in group)
        with last.location, ir.InsertionPoint(last):
            _store_exchanged(group, count, output)
    replaced = [store for group in groups for store in group]
    left = [store for store in stores if store not in replaced]
    for store in replaced:
        store.erase()
    return left


def _store_exchanged(group: tuple[Op, ...], count: int, output: _Output) -> None:
    lane = value("gpu.lane_id", ir.IndexType.get())
    pieces = [output.finished(store.operands[0], list(store.operands)[2:]) for store in group]
    *rows, column = list(group[0].operands)[2:]
    whole, indices = exchange(pieces, lane), [*rows, column_of(column, lane, count)]
    inside = is_inside(indices, output.bounds)
    if inside is None:
        output.write(whole, indices)
    else:
        branch(inside, lambda: output.write(whole, indices))


def _rewrite(store: Op, output: _Output) -> None:
    vector, _, *indices = store.operands
    whole = ir.VectorType(vector.type).shape[0]
    width = output.width(whole)
    with store.location, ir.InsertionPoint(store):
        for offset in range(0, whole, width):
            _store_part(piece(vector, offset, width), [*indices[:-1], plus(indices[-1], offset)], output)
    store.erase()


def _store_part(vector: Value, indices: list[Value], output: _Output) -> None:
    inside = is_inside(indices, output.bounds)
    if inside is None:
        output.put(vector, indices)
    else:
        branch(inside, lambda: output.put(vector, indices))
