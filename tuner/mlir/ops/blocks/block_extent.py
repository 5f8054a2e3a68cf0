"""The size of one dimension of a block: static, or one of two sizes that a loop over blocks gives."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.mlir.bindings import Value, ir
from tuner.mlir.rewrite.building import as_index, for_each, index, is_less, loop, plus, times, total, value

OfTile = Callable[[Value, Value], None]  # creates the ops of a tile from its numbers in two dimensions


@dataclass(frozen=True, eq=False)
class BlockExtent:
    """The size of a dimension: ``whole``; with a ``size``, that of the last block may be ``last`` instead.

    Code for an extent is made once for both sizes: loops over whole steps have a dynamic bound, and what is
    left of a static number of elements is guarded.
    """

    whole: int  # elements of every block, or of every block but the last
    last: int = 0  # elements of the last block; only with ``size``
    size: Value | None = None  # of type index: ``whole`` or ``last``; None: ``whole``

    def steps(self, step: int) -> int:
        """Returns the largest number of steps of ``step`` elements that cover the extent."""
        return -(-self.whole // step)

    def covering(self, step: int) -> Value:
        """Creates the number of steps that cover the extent, as an index."""
        if self.size is None:
            return index(self.steps(step))
        return _divided(plus(self.size, step - 1), step)

    def elements(self) -> Value:
        """Creates the number of elements, as an index."""
        return index(self.whole) if self.size is None else self.size

    def whole_steps(self, step: int) -> int | Value:
        """Returns the number of whole steps of ``step`` elements; creates it where the size is dynamic."""
        return self.whole // step if self.size is None else _divided(self.size, step)

    def left(self, step: int, number: Value) -> Value:
        """Creates the number of elements of a step, as an index: ``step``, or less at the end."""
        rest = value("arith.subi", number.type, self.elements(), times(number, step))
        return value("arith.minui", number.type, rest, index(step))

    def rests(self, step: int) -> tuple[int, ...]:
        """Returns the numbers of elements, not 0, that whole steps may leave."""
        sizes = (self.whole,) if self.size is None else (self.whole, self.last)
        return tuple(dict.fromkeys(size % step for size in sizes if size % step))


def in_steps(extent: BlockExtent, step: int, body: Callable[[Value, int], None]) -> None:
    """Creates the loop over the whole steps of an extent, and one over each rest of it as one step, if any.

    ``body`` creates the ops of a step, from its number and its size.
    """

    def over(first: Value | int, end: Value | int, size: int) -> None:
        def one(number: Value) -> tuple[()]:
            body(number, size)
            return ()

        loop(first, end, one)

    whole = extent.whole_steps(step)
    if extent.whole >= step:
        over(0, whole, step)
    for rest in extent.rests(step):
        over(whole, _end(extent, step, whole, rest), rest)


def over_tiles(
    rows: BlockExtent, height: int, columns: BlockExtent, width: int, whole: OfTile, partial: OfTile
) -> None:
    """Creates the loops over tiles of ``height`` x ``width``: in each row of tiles the whole ones come first.

    ``whole`` and ``partial`` create the ops of a tile, each once.
    """
    whole_rows, across = rows.whole_steps(height), columns.whole_steps(width)
    has_whole = rows.whole >= height and columns.whole >= width

    def one_row(row: Value) -> None:
        end = across if has_whole else 0
        if has_whole and rows.rests(height):
            is_whole = is_less(row, as_index(whole_rows))
            end = value("arith.select", row.type, is_whole, as_index(across), index(0))
        if has_whole:
            for_each(0, end, lambda column: whole(row, column))
        for_each(end, columns.covering(width), lambda column: partial(row, column))

    for_each(0, rows.covering(height), one_row)


def _end(extent: BlockExtent, step: int, whole: Value | int, rest: int) -> Value | int:
    """Creates the end of the loop over a rest: one iteration where the extent has this rest, else none."""
    if extent.size is None or isinstance(whole, int):
        return int(whole) + 1 if isinstance(whole, int) else plus(whole, 1)
    kind = ir.IndexType.get()
    left = value("arith.remui", kind, extent.size, index(step))
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)  # arith's eq
    has_rest = value("arith.cmpi", ir.IntegerType.get_signless(1), left, index(rest), predicate=predicate)
    return total(whole, value("arith.index_castui", kind, has_rest))


def _divided(number: Value, by: int) -> Value:
    return value("arith.divui", ir.IndexType.get(), number, index(by))
