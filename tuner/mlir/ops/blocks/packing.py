"""Packs the words of a matrix: creates the loops that read it, and hands each vector of words to be stored.

B is packed to panels of columns, with a vector for each word of K; A is packed by strips of rows, with a
vector for each row and 16 words of K. Elements behind the last of K are 0. So are columns behind the last of
B; rows behind the last of A are left out.
"""

from collections.abc import Callable, Iterator, Sequence

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.ops.blocks.words import WordSource, transposed
from tuner.mlir.rewrite.building import index, loop, plus, times, total, value, zero

# Creates the store of a vector of words of B: panel, step of K, word in the step, vector of the panel, words
StoreOfB = Callable[[Value, Value, Value, Value, Value], None]
# Creates the store of words of a row of A: row in the strip, step of K, words
StoreOfA = Callable[[Value, Value, Value], None]
Step = tuple[int, int, int]  # first, end, size


def allocated(shape: Sequence[int], element: Type) -> Value:
    """Creates the allocation of a memref at a multiple of 64 bytes; bufferization's passes free it."""
    align = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
    segments = ir.DenseI32ArrayAttr.get([0, 0])
    kind = ir.MemRefType.get(list(shape), element)
    return value("memref.alloc", kind, alignment=align, operandSegmentSizes=segments)


def steps(extent: int, step: int) -> Iterator[Step]:
    """Yields (first, end, size): the whole steps of an extent, then the rest of it as one step, if any."""
    whole = extent // step
    if whole:
        yield 0, whole, step
    if extent % step:
        yield whole, whole + 1, extent % step


def pack_b(source: WordSource, n: int, k: int, vectors: int, store: StoreOfB) -> None:
    """Creates the code that packs B, ``k`` x ``n``, to panels of ``vectors`` vectors of words each.

    B is read in the order in which it is stored.
    """
    if source.is_along_k:
        _over(
            steps(n, source.words),
            steps(k, source.depth),
            lambda vector, columns, step, depth: _turn_b(
                source, vectors, vector, columns, step, depth, store
            ),
        )
    else:
        _over(
            steps(k, source.depth),
            steps(n, vectors * source.words),
            lambda step, depth, panel, columns: _interleave_b(
                source, vectors, panel, columns, step, depth, store
            ),
        )


def pack_a(source: WordSource, first: Value, rows: int, k: int, store: StoreOfA) -> None:
    """Creates the code that packs ``rows`` rows of A, from row ``first`` on."""
    if source.is_along_k:

        def copy(row: Value, _size: int, step: Value, depth: int) -> None:
            words = source.along_k(total(first, row), times(step, source.depth), depth)
            store(row, step, words)

        _over([(0, rows, 1)], steps(k, source.depth), copy)
    else:
        _over(
            steps(rows, source.words),
            steps(k, source.depth),
            lambda part, count, step, depth: _turn_a(source, first, part, count, step, depth, store),
        )


def _over(
    outer: Iterator[Step] | Sequence[Step],
    inner: Iterator[Step],
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
    source: WordSource, vectors: int, panel: Value, columns: int, step: Value, depth: int, store: StoreOfB
) -> None:
    """Packs a step of K of one panel of a B that is stored by rows of K, each word by interleaving rows."""
    width = vectors * source.words
    across, k = times(panel, width), times(step, source.depth)

    def pack(word: Value, count: int) -> tuple[()]:
        first = total(k, times(word, source.per_word))
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
