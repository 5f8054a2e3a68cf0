"""Packs the words of a matrix: creates the loops that read it, and hands each vector of words to be stored.

B is packed to panels of columns, with a vector for each word of K; A is packed by strips of rows, with a
vector for each row and 16 words of K. Elements after the last of K are 0. So are columns after the last of
B; rows after the last of A are left out.
"""

from collections.abc import Callable, Sequence

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.ops.blocks.block_extent import BlockExtent, in_steps
from tuner.mlir.ops.blocks.words import WordSource, transposed
from tuner.mlir.rewrite.building import index, loop, plus, times, total, value, zero

# Creates the store of a vector of words of B: panel, step of K, word in the step, vector of the panel, words
StoreOfB = Callable[[Value, Value, Value, Value, Value], None]
# Creates the store of words of a row of A: row in the strip, step of K, words
StoreOfA = Callable[[Value, Value, Value], None]


def allocated(shape: Sequence[int], element: Type) -> Value:
    """Creates the allocation of a memref at a multiple of 64 bytes; bufferization's passes free it."""
    align = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
    segments = ir.DenseI32ArrayAttr.get([0, 0])
    kind = ir.MemRefType.get(list(shape), element)
    return value("memref.alloc", kind, alignment=align, operandSegmentSizes=segments)


def pack_b(
    source: WordSource, n: BlockExtent, k: int, vectors: int, store: StoreOfB, *, fetches: bool = False
) -> None:
    """Creates the code that packs B, ``k`` x ``n``, to panels of ``vectors`` vectors of words each.

    B is read in the order in which it is stored. With ``fetches``, rows of K that are interleaved are
    prefetched a step of K before, since a processor does not foresee reads that lie a row apart.
    """
    width = vectors * source.words

    def of_vector(vector: Value, columns: int) -> None:
        in_steps(
            BlockExtent(k),
            source.depth,
            lambda step, depth: _turn_b(source, vectors, vector, columns, step, depth, store),
        )

    def of_step(step: Value, depth: int) -> None:
        in_steps(
            n,
            width,
            lambda panel, columns: interleave_b(source, vectors, panel, columns, step, depth, store, fetches),
        )

    if source.is_along_k:
        in_steps(n, source.words, of_vector)
    else:
        in_steps(BlockExtent(k), source.depth, of_step)


def pack_a(source: WordSource, first: Value, rows: BlockExtent, k: int, store: StoreOfA) -> None:
    """Creates the code that packs ``rows`` rows of A, from row ``first`` on."""

    def of_row(row: Value, _size: int) -> None:
        def copy(step: Value, depth: int) -> None:
            store(row, step, source.along_k(total(first, row), times(step, source.depth), depth))

        in_steps(BlockExtent(k), source.depth, copy)

    def of_part(part: Value, count: int) -> None:
        in_steps(
            BlockExtent(k),
            source.depth,
            lambda step, depth: _turn_a(source, first, part, count, step, depth, store),
        )

    if source.is_along_k:
        in_steps(rows, 1, of_row)
    else:
        in_steps(rows, source.words, of_part)


def interleave_b(
    source: WordSource,
    vectors: int,
    panel: Value,
    columns: int,
    step: Value,
    depth: int,
    store: StoreOfB,
    fetches: bool = False,
) -> None:
    """Packs a step of K of one panel of a B that is stored by rows of K, each word by interleaving rows."""
    width = vectors * source.words
    across, k = times(panel, width), times(step, source.depth)

    def pack(word: Value, count: int) -> tuple[()]:
        first = total(k, times(word, source.per_word))
        if fetches:
            source.fetch_rows(plus(first, source.depth), across, count, width)
        for place, words in enumerate(source.side_by_side(first, across, count, columns, width)):
            store(panel, step, word, index(place), words)
        return ()

    def clear(word: Value) -> tuple[()]:
        for place in range(vectors):
            store(panel, step, word, index(place), zero(source.vector))
        return ()

    whole, rest = divmod(depth, source.per_word)
    if whole:
        loop(0, whole, lambda word: pack(word, source.per_word))
    if rest:
        pack(index(whole), rest)
    if whole + bool(rest) < source.words:
        loop(whole + bool(rest), source.words, clear)


def _turn_b(
    source: WordSource, vectors: int, vector: Value, columns: int, step: Value, depth: int, store: StoreOfB
) -> None:
    """Packs a step of K of one vector of columns of a B that is stored by columns: a transpose of words."""
    k, across = times(step, source.depth), times(vector, source.words)
    lines = [
        source.along_k(plus(across, column), k, depth) if column < columns else zero(source.vector)
        for column in range(source.words)
    ]
    store_columns(lines, vectors, vector, step, store)


def store_columns(lines: list[Value], vectors: int, vector: Value, step: Value, store: StoreOfB) -> None:
    """Creates the transpose of the words of one vector of columns of B, and the stores to its panel.

    ``lines``: for each column, the words of a step of K.
    """
    kind = ir.IndexType.get()
    panel, place = (value(f"arith.{name}", kind, vector, index(vectors)) for name in ("divui", "remui"))
    for number, line in enumerate(transposed(lines)):
        store(panel, step, index(number), place, line)


def _turn_a(
    source: WordSource, first: Value, part: Value, rows: int, step: Value, depth: int, store: StoreOfA
) -> None:
    """Packs a step of K of some rows of an A that is stored by columns: interleaving, then a transpose."""
    k, begin = times(step, source.depth), times(part, source.words)
    across = total(first, begin)
    lines = []
    for word in range(source.words):
        left = min(depth - word * source.per_word, source.per_word)
        if left > 0:
            place = plus(k, word * source.per_word)
            lines += source.side_by_side(place, across, left, rows, source.words)
        else:
            lines.append(zero(source.vector))
    for number, line in enumerate(transposed(lines)[:rows]):
        store(plus(begin, number), step, line)
