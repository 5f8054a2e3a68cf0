"""Sums of AMX tiles that are not finite, of f32 as planes of bf16: a block of tiles computes them again.

Planes of infinity make NaN, and products of planes may overflow with either sign where that of the numbers
has one. So the sums of a block of tiles are read once more when they are in memory: 0 times a number is NaN
where the number is not finite. If one is not, all sums of the block are computed again by f32 multiply-adds,
16 columns at a time, in the order of K.
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.cpu_ops.buffer_matmul import BufferMatmul
from tuner.mlir.cpu_ops.vnni_packing import K_GROUPS, constant_mask
from tuner.mlir.ir.building import (
    branch,
    create,
    load,
    loop,
    plus,
    rolled_loop,
    total,
    value,
    zero,
)
from tuner.mlir.math.expressions import Term


@dataclass(frozen=True, eq=False)
class BlockSums:
    """The sums of a block of C in memory, in tiles of 16 columns, before C's old values are added."""

    matmul: BufferMatmul
    corner: tuple[Value, Value]  # first row and column in C
    rows: int
    columns: int  # that C has; ``memory`` has whole tiles
    memory: Value  # 2-D memref, C itself or a buffer of the block
    start: tuple[Value, Value]  # of the block in ``memory``

    def recompute_if_special(self) -> None:
        """Creates the check of all sums, and their computation by multiply-adds if one is not finite."""
        branch(self._is_special(), lambda: rolled_loop(0, self.rows, self._recompute_row))

    def _is_special(self) -> Value:
        def of_row(row: Value, *marks: Value) -> list[Value]:
            at = total(self.start[0], row)
            sums = [
                value("vector.load", _line(), self.memory, at, self._column(tile)) for tile in self._tiles
            ]
            return [Term(line).fma(0.0, Term(mark)).value for line, mark in zip(sums, marks, strict=True)]

        marks = loop(0, self.rows, of_row, [zero(_line())] * len(self._tiles), is_rolled=True)
        mark = Term(marks[0])
        for other in marks[1:]:
            mark = mark + Term(other)
        is_nan = mark.is_nan().value
        kind = ir.Attribute.parse("#vector.kind<or>")
        return value("vector.reduction", ir.IntegerType.get_signless(1), is_nan, kind=kind)

    def _recompute_row(self, row: Value) -> None:
        of_c = total(self.corner[0], row)

        def step(k: Value, *sums: Value) -> list[Value]:
            indices = [k, of_c] if self.matmul.layout == "tn" else [of_c, k]
            factor = Term(value("vector.broadcast", _line(), load(self.matmul.a, indices)))
            new = []
            for tile, so_far in zip(self._tiles, sums, strict=True):
                new.append(factor.fma(Term(self._line_of_b(k, tile)), Term(so_far)).value)
            return new

        nothing = [zero(_line())] * len(self._tiles)
        for tile, sums in enumerate(loop(0, self.matmul.k, step, nothing, is_rolled=True)):
            at = (self.memory, total(self.start[0], row), self._column(tile))
            create("vector.store", [], [sums, *at])

    def _line_of_b(self, k: Value, tile: int) -> Value:
        """Creates the read of a row of B, of 16 columns; columns after the last are 0."""
        first = plus(self.corner[1], K_GROUPS * tile)
        if self.matmul.layout != "nt":
            row = (self.matmul.b, k, first)
            return value("vector.maskedload", _line(), *row, self._mask(tile), zero(_line()))
        nothing = zero(ir.F32Type.get())
        width = self._width(tile)
        numbers = [load(self.matmul.b, [plus(first, column), k]) for column in range(width)]
        return value("vector.from_elements", _line(), *numbers, *[nothing] * (K_GROUPS - width))

    @property
    def _tiles(self) -> range:
        return range(-(-self.columns // K_GROUPS))

    def _width(self, tile: int) -> int:
        return min(self.columns - K_GROUPS * tile, K_GROUPS)

    def _mask(self, tile: int) -> Value:
        return constant_mask(self._width(tile), K_GROUPS)

    def _column(self, tile: int) -> Value:
        return plus(self.start[1], K_GROUPS * tile)


def _line() -> Type:
    return ir.VectorType.get([K_GROUPS], ir.F32Type.get())
