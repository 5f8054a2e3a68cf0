"""Weights of matmuls on buffers as panels of words of K: pairs of bf16 or fours of i8 of each column.

A weight that only matmuls read as B, by columns that begin a panel, is taken packed: the caller packs it
once. Rows are words of K, padded with zeros to whole tiles::

    %w: memref<100x96xbf16> {tuner.weight}, read by columns 0 to 31, 32 to 63, 64 to 95
  becomes, with 64 words for 100 rows
    %w: memref<192x64xbf16> {tuner.depth = 32 : i64, tuner.interleave = 2 : i64, tuner.packing = 32 : i64, ...

Bytes may come with their sign bits flipped (``WeightPacking.unsigned``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ops.blocks.buffer_matmul import BufferMatmul
from tuner.mlir.ops.blocks.words import WORDS, WordSource
from tuner.mlir.rewrite.building import DYNAMIC, index, total, value
from tuner.mlir.rewrite.definitions import op_of
from tuner.mlir.rewrite.packed_weights import begins_panel, set_packed_as, weights_of

B_OPERAND = 1  # of a matmul


@dataclass(frozen=True, eq=False)
class WeightWords:
    """B of one matmul: the panels of a weight, of which the matmul reads some, one after the other."""

    memory: Value  # memref<words of K of all panels x elements of a row of words>
    words: int  # of K, of one panel
    columns: int  # of a panel
    column: Value | int  # of the weight, the first that the matmul reads

    def row(self, panel: Value, word: Value) -> Value:
        """Creates the row of ``memory`` that has a word of K of one of the matmul's panels."""
        first = index(self.column) if isinstance(self.column, int) else self.column
        kind = ir.IndexType.get()
        panels = total(value("arith.divui", kind, first, index(self.columns)), panel)
        return total(value("arith.muli", kind, panels, index(self.words)), word)


def take_weight_words(
    function: Op,
    matmuls: Sequence[BufferMatmul],
    columns: int,
    lanes: int = WORDS,
    *,
    unsigned: bool = False,
) -> list[WeightWords | None]:
    """Gives weights of a function the type of their panels, in place: K is padded to words of ``lanes``.

    ``unsigned``: sign bits of bytes are flipped. Returns, for each matmul, the panels of its B; None for a B
    that is no weight, or that is not read by whole panels or by matmuls alone.
    """
    found: dict[Op, WeightWords] = {}
    for number, weight in weights_of(function):
        reads = _reads(weight, {matmul.op for matmul in matmuls}, columns)
        if reads:
            words = _pack(function, number, weight, columns, lanes, unsigned=unsigned)
            for matmul, column in reads:
                found[matmul] = WeightWords(weight, words, columns, column)
    return [found.get(matmul.op) for matmul in matmuls]


def drop_views(words: WeightWords | None, b: Value) -> None:
    """Erases the view that a matmul, itself erased, read of a weight that is packed now."""
    view = op_of(b, "memref.subview")
    if words is not None and view is not None and not list(view.results[0].uses):
        view.erase()


def _pack(function: Op, number: int, weight: Value, columns: int, lanes: int, *, unsigned: bool) -> int:
    """Changes the type of a weight to that of its panels; returns the words of K of one."""
    k, n = ir.MemRefType(weight.type).shape
    source = WordSource(weight, is_along_k=False, words=lanes)
    words: int = -(-k // source.depth) * source.words
    panels = -(-n // columns)
    rows = panels * words
    kind = ir.MemRefType.get([rows, columns * source.per_word], source.element)
    per_word, depth = source.per_word, source.depth
    set_packed_as(function, number, kind, columns, interleave=per_word, depth=depth, unsigned=unsigned)
    return words


def _reads(weight: Value, matmuls: set[Op], columns: int) -> list[tuple[Op, Value | int]]:
    """Returns the matmuls that read a weight, with their first columns; [] where something else reads it."""
    found: list[tuple[Op, Value | int]] = []
    for use in weight.uses:
        op = use.owner.operation
        if op.name == "memref.subview":
            column = _first_column(op)
            uses = [(each.owner.operation, each.operand_number) for each in op.results[0].uses]
        else:
            column, uses = 0, [(op, use.operand_number)]
        if column is None or not begins_panel(column, columns):
            return []
        if not all(user in matmuls and place == B_OPERAND for user, place in uses):
            return []
        found += [(user, column) for user, _ in uses]
    return found


def _first_column(view: Op) -> Value | int | None:
    """Returns the first of the columns that a view has of a matrix; None where it is another part of it."""
    rows = view.operands[0].type.shape[0]
    sizes, strides = (list(view.attributes[f"static_{name}"]) for name in ("sizes", "strides"))
    if view.results[0].type.rank != 2 or strides != [1, 1] or sizes[0] != rows or DYNAMIC in sizes:
        return None
    operands = iter(list(view.operands)[1:])
    row, column = (next(operands) if each == DYNAMIC else each for each in view.attributes["static_offsets"])
    return column if isinstance(row, int) and row == 0 else None
