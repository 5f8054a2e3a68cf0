"""Packs words of a matrix to tiles of 16 rows of 64 bytes, each tile contiguous in memory, as AMX loads them.

A tile of A has a row per row of A, a tile of B a row per word of K; elements behind the last of K are 0. Rows
and columns behind the last of the matrix are not written, or are 0: nobody may store what is computed from
them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.ops.blocks.words import WORDS, WordSource, transposed
from tuner.mlir.rewrite.building import create, index, loop, plus, times, value, zero


@dataclass(frozen=True, eq=False)
class TileBuffer:
    """Packed tiles: for each panel and tile of K, ``tiles`` tiles of 16 rows of 16 words."""

    memory: Value  # memref<rows x elements of 16 words>
    k_tiles: int  # tiles along K
    tiles: int  # of a panel

    def row(self, panel: Value, k_tile: Value) -> Value:
        """Creates the number of the first row of a panel's tiles for one tile of K."""
        return times(_sum(times(panel, self.k_tiles), k_tile), self.tiles * WORDS)

    def store(self, row: Value, words: Value) -> None:
        """Creates the store of one tile row, a vector of 16 words."""
        create("vector.store", [], [words, self.memory, row, index(0)])


def tile_buffer(element: Type, panels: int, k_tiles: int, tiles: int, depth: int) -> TileBuffer:
    """Creates the allocation of packed tiles, aligned to cache lines; ``depth``: elements of a tile row."""
    kind = ir.MemRefType.get([panels * k_tiles * tiles * WORDS, depth], element)
    return TileBuffer(allocated(kind), k_tiles, tiles)


def allocated(kind: Type) -> Value:
    """Creates the allocation of a memref at a multiple of 64 bytes; bufferization's passes free it."""
    align = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
    segments = ir.DenseI32ArrayAttr.get([0, 0])
    return value("memref.alloc", kind, alignment=align, operandSegmentSizes=segments)


def steps(extent: int, step: int) -> Iterator[tuple[int, int, int]]:
    """Yields (first, end, size): the whole steps of an extent, then the rest of it as one step, if any."""
    whole = extent // step
    if whole:
        yield 0, whole, step
    if extent % step:
        yield whole, whole + 1, extent % step


def pack_b(source: WordSource, target: TileBuffer, n: int, k: int) -> None:
    """Creates the code that packs B, ``k`` x ``n``, to panels of ``target.tiles`` * 16 columns.

    B is read in the order in which it is stored.
    """
    if source.is_along_k:
        _over(steps(n, WORDS), steps(k, source.depth), lambda *at: _turn_b(source, target, *at))
    else:
        width = target.tiles * WORDS
        _over(
            steps(k, source.depth),
            steps(n, width),
            lambda k_tile, depth, panel, columns: _interleave_b(
                source, target, panel, columns, k_tile, depth
            ),
        )


def pack_a(source: WordSource, target: TileBuffer, first: Value, rows: int, k: int) -> None:
    """Creates the code that packs ``rows`` rows of A, from row ``first`` on, to one panel."""
    if not source.is_along_k:
        _over(
            steps(rows, WORDS),
            steps(k, source.depth),
            lambda tile, count, k_tile, depth: _turn_a(source, target, first, tile, count, k_tile, depth),
        )
        return

    def copy_row(row: Value) -> tuple[()]:
        for begin, end, depth in steps(k, source.depth):

            def copy(k_tile: Value, depth: int = depth) -> tuple[()]:
                words = source.along_k(_sum(first, row), times(k_tile, source.depth), depth)
                target.store(_sum(target.row(index(0), k_tile), row), words)
                return ()

            loop(begin, end, copy)
        return ()

    loop(0, rows, copy_row)


def _over(
    outer: Iterator[tuple[int, int, int]],
    inner: Iterator[tuple[int, int, int]],
    body: Callable[[Value, int, Value, int], None],
) -> None:
    """Creates the loops over two lists of steps; ``body`` gets (number, size) of the outer and inner step."""
    inner_steps = tuple(inner)
    for begin, end, size in outer:

        def one(number: Value, size: int = size) -> tuple[()]:
            for inner_begin, inner_end, inner_size in inner_steps:

                def two(inner_number: Value, inner_size: int = inner_size) -> tuple[()]:
                    body(number, size, inner_number, inner_size)
                    return ()

                loop(inner_begin, inner_end, two)
            return ()

        loop(begin, end, one)


def _interleave_b(
    source: WordSource, target: TileBuffer, panel: Value, columns: int, k_tile: Value, depth: int
) -> None:
    """Packs one tile of K of a panel of a B that is stored by rows of K: each word row by interleaving."""
    base = target.row(panel, k_tile)
    across = times(panel, target.tiles * WORDS)
    k = times(k_tile, source.depth)

    def pack_row(word: Value, count: int) -> tuple[()]:
        first = _sum(k, times(word, source.per_word))
        vectors = source.side_by_side(first, across, count, columns, target.tiles * WORDS)
        for tile, vector in enumerate(vectors):
            target.store(plus(_sum(base, word), tile * WORDS), vector)
        return ()

    whole, rest = divmod(depth, source.per_word)
    if whole:
        loop(0, whole, lambda word: pack_row(word, source.per_word))
    if rest:
        pack_row(index(whole), rest)
    empty = whole + bool(rest)
    if empty < WORDS:

        def clear(row: Value) -> tuple[()]:
            for tile in range(target.tiles):
                target.store(plus(_sum(base, row), tile * WORDS), zero(source.vector))
            return ()

        loop(empty, WORDS, clear)


def _turn_b(
    source: WordSource, target: TileBuffer, tile: Value, columns: int, k_tile: Value, depth: int
) -> None:
    """Packs one tile of a B that is stored by columns: a transpose of 16 x 16 words."""
    k = times(k_tile, source.depth)
    across = times(tile, WORDS)
    lines = [
        source.along_k(plus(across, column), k, depth) if column < columns else zero(source.vector)
        for column in range(WORDS)
    ]
    kind = ir.IndexType.get()
    panel, place = (value(f"arith.{name}", kind, tile, index(target.tiles)) for name in ("divui", "remui"))
    base = _sum(target.row(panel, k_tile), times(place, WORDS))
    for number, line in enumerate(transposed(lines)):
        target.store(plus(base, number), line)


def _turn_a(
    source: WordSource, target: TileBuffer, first: Value, tile: Value, rows: int, k_tile: Value, depth: int
) -> None:
    """Packs one tile of an A that is stored by columns: interleaving, and a transpose of 16 x 16 words."""
    across = _sum(first, times(tile, WORDS))
    k = times(k_tile, source.depth)
    lines = []
    for word in range(WORDS):
        left = min(depth - word * source.per_word, source.per_word)
        if left > 0:
            lines += source.side_by_side(plus(k, word * source.per_word), across, left, rows, WORDS)
        else:
            lines.append(zero(source.vector))
    base = _sum(target.row(index(0), k_tile), times(tile, WORDS))
    for number, line in enumerate(transposed(lines)[:rows]):
        target.store(plus(base, number), line)


def _sum(left: Value, right: Value) -> Value:
    return value("arith.addi", ir.IndexType.get(), left, right)
