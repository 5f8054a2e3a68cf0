"""``tuner.finish_stores``: what a kernel stores to its output, made true: epilogue, bounds, width, slices."""

import math
from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import branch, create, piece, plus, value
from tuner.mlir.epilogues import apply_epilogue, find_epilogue, output_type
from tuner.mlir.ops.dialect import InPlaceOp, attribute, text, walk
from tuner.mlir.padded_views import (
    BOUNDS,
    Bounds,
    bounds_of,
    is_inside,
    retype_argument,
    set_argument_attribute,
    sync_function_type,
)

MODES = ("store", "atomic", "workspace")


class FinishStoresOp(InPlaceOp, name="finish_stores"):
    """Rewrites every ``vector.store`` to an argument: as wide as its rows are aligned, only within bounds.

    Attribute ``mode``: ``"store"`` (default) applies an epilogue that was set aside; ``"atomic"`` adds to the
    output, which is marked as zeroed before; ``"workspace"`` stores to slice ``gpu.block_id z`` of ``slices``
    (i64), the output argument becoming that buffer, padded. The last op of a script: types of arguments
    change. The handle (a func.func) stays valid.
    Silenceable failure: an unknown mode, no store, stores to several arguments or in another form, an
    epilogue that was set aside from a function whose sums are not complete.
    """

    def change(self, function: Any) -> str | None:
        """Changes one function."""
        mode, slices = text(self, "mode", "store"), attribute(self, "slices", 1)
        stores = [each for each in walk(function, "vector.store") if _is_argument(each.operands[1])]
        reason = _why_not(function, stores, mode)
        if reason is not None:
            return reason
        _finish(function, stores, mode, slices)
        return None


class _Output:
    """The argument that is stored to, while its stores are rewritten."""

    def __init__(self, function: Any, argument: Any, mode: str) -> None:
        self.function, self.argument, self.mode = function, argument, mode
        self.bounds: Bounds = bounds_of(argument)
        self.epilogue = find_epilogue(function)
        self.row = ir.MemRefType(argument.type).get_strides_and_offset()[0][0]  # elements

    def put(self, vector: Any, indices: list[Any]) -> None:
        """Builds one store of neighbours within bounds."""
        if self.mode == "atomic":
            self._add(vector, indices)
        elif self.mode == "workspace":
            number = value("gpu.block_id", ir.IndexType.get(), dimension=ir.Attribute.parse("#gpu<dim z>"))
            create("vector.store", [], [vector, self.argument, number, *indices])
        else:
            if self.epilogue is not None:
                vector = apply_epilogue(self.epilogue, self.function, vector, indices)
            create("vector.store", [], [vector, self.argument, *indices])

    def _add(self, vector: Any, indices: list[Any]) -> None:
        element = ir.VectorType(vector.type).element_type
        first = value("vector.extract", element, vector, static_position=ir.DenseI64ArrayAttr.get([0]))
        kind = ir.Attribute.parse("0 : i64")  # arith.AtomicRMWKind addf
        value("memref.atomic_rmw", element, first, self.argument, *indices, kind=kind)

    def width(self, whole: int) -> int:
        """Returns the elements that one store takes, of a vector of ``whole``."""
        return 1 if self.mode == "atomic" else math.gcd(whole, self.row)


def _is_argument(view: Any) -> bool:
    return isinstance(view.owner, ir.Block) and view.owner.owner.operation.name == "func.func"


def _why_not(function: Any, stores: list[Any], mode: str) -> str | None:
    if mode not in MODES:
        return f"mode: found {mode!r}, allowed {', '.join(MODES)}"
    others = [*walk(function, "vector.transfer_write"), *walk(function, "memref.store")]
    other = next((each for each in others if _is_argument(each.operands[1])), None)
    if other is not None:
        return f"found {other.name} to an argument, allowed vector.store"
    if len({store.operands[1] for store in stores}) != 1:
        return f"found {len(stores)} stores to arguments, allowed some, all to one"
    if mode != "store" and find_epilogue(function) is not None:
        return f"mode: found {mode!r} and an epilogue, allowed store: sums of a part of K get none"
    return None


def _finish(function: Any, stores: list[Any], mode: str, slices: int) -> None:
    output = _Output(function, stores[0].operands[1], mode)
    if mode == "workspace":
        _become_workspace(output, slices)
    elif mode == "atomic":
        number = ir.BlockArgument(output.argument).arg_number
        set_argument_attribute(function, number, "tuner.zeroed", ir.UnitAttr.get())
    elif output.epilogue is not None:
        retype_argument(output.argument, output_type(output.epilogue))
        sync_function_type(function)
    for store in stores:
        _rewrite(store, output)
    if output.epilogue is not None:
        output.epilogue.erase()


def _become_workspace(output: _Output, slices: int) -> None:
    """A workspace holds whole tiles: nothing to check, rows as long as the padded view's."""
    memref = ir.MemRefType(output.argument.type)
    sizes = [slices, *memref.shape]
    output.argument.set_type(ir.MemRefType.get(sizes, memref.element_type))
    output.bounds, output.row = {}, memref.shape[1]
    sync_function_type(output.function)
    number = ir.BlockArgument(output.argument).arg_number
    set_argument_attribute(output.function, number, BOUNDS, ir.DenseI64ArrayAttr.get(sizes))


def _rewrite(store: Any, output: _Output) -> None:
    vector, _, *indices = store.operands
    whole = ir.VectorType(vector.type).shape[0]
    width = output.width(whole)
    with store.location, ir.InsertionPoint(store):
        for offset in range(0, whole, width):
            _store_part(piece(vector, offset, width), [*indices[:-1], plus(indices[-1], offset)], output)
    store.erase()


def _store_part(vector: Any, indices: list[Any], output: _Output) -> None:
    inside = is_inside(indices, output.bounds)
    if inside is None:
        output.put(vector, indices)
    else:
        branch(inside, lambda: output.put(vector, indices))
