"""Rows of A as words of K, which are broadcast one by one: where A lies, or packed where K is not adjacent.

Each method creates its ops at the current insertion point.
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Value, ir
from tuner.mlir.ops.blocks.block_extent import BlockExtent
from tuner.mlir.ops.blocks.packing import allocated, pack_a
from tuner.mlir.ops.blocks.words import WordSource, splat, word_type, words_type
from tuner.mlir.rewrite.building import create, index, loop, plus, times, total, value, zero
from tuner.mlir.rewrite.byte_dots import byte_dot


@dataclass(frozen=True, eq=False)
class WordRows:
    """The rows of A of a matmul, ``k`` elements each."""

    source: WordSource
    k: int
    packed: Value | None  # memref<rows x words of K, and one vector of space, x i32>; None: in place
    has_all: bool  # all rows of A are packed, not those of one strip at a time

    @classmethod
    def of(cls, source: WordSource, k: int, rows: int, *, has_all: bool) -> "WordRows":
        """Creates the buffer of ``rows`` rows, all of A or those of a strip, if A is not stored along K."""
        if source.is_along_k:
            return cls(source, k, None, has_all)
        words = -(-k // source.depth) * source.words
        # rows a power of two apart would lie in the same sets of the cache
        return cls(source, k, allocated((rows, words + source.words), word_type()), has_all)


@dataclass(frozen=True, eq=False)
class WordStrip:
    """Some rows of A, from row ``first`` on."""

    of: WordRows
    number: Value  # of the strip, from 0 on
    first: Value
    rows: int

    @property
    def whole_words(self) -> int:
        """Returns the words of a row that can be loaded: all but a part of one at the end of A in place."""
        source = self.of.source
        return self.of.k // source.per_word if self.of.packed is None else -(-self.of.k // source.per_word)

    @property
    def has_rest(self) -> bool:
        """Returns whether a part of a word follows the whole words."""
        return self.of.packed is None and bool(self.of.k % self.of.source.per_word)

    def pack(self) -> None:
        """Creates the packing of the rows, if they are packed."""
        source, packed = self.of.source, self.of.packed
        if packed is None:
            return

        def store(row: Value, step: Value, elements: Value) -> None:
            words = value("vector.bitcast", words_type(source.words), elements)
            place = (total(self._begin, row), times(step, source.words))
            create("vector.store", [], [words, packed, *place])

        pack_a(source, self.first, BlockExtent(self.rows), self.of.k, store)

    def broadcast(self, row: int, word: Value) -> Value:
        """Creates the vector whose words are all one whole word of a row of the strip."""
        source, lanes = self.of.source, self.of.source.words
        if self.of.packed is not None:
            loaded = value("memref.load", word_type(), self.of.packed, plus(self._begin, row), word)
            return value("vector.broadcast", words_type(lanes), loaded)
        kind = ir.VectorType.get([source.per_word], source.element)
        place = (plus(self.first, row), times(word, source.per_word))
        return _spread(value("vector.load", kind, source.buffer, *place), lanes)

    def broadcast_rest(self, row: int) -> Value:
        """Creates the vector whose words are all the last word of a row, with zeros after the last of K."""
        source = self.of.source
        begin, at = self.whole_words * source.per_word, plus(self.first, row)
        elements = [
            value("memref.load", source.element, source.buffer, at, index(k))
            if k < self.of.k
            else zero(source.element)
            for k in range(begin, begin + source.per_word)
        ]
        kind = ir.VectorType.get([source.per_word], source.element)
        return _spread(value("vector.from_elements", kind, *elements), source.words)

    def byte_sums(self) -> list[Value]:
        """Creates the sum of the bytes of each row, an i32 each."""
        source, kind = self.of.source, words_type(self.of.source.words)
        whole, rest = divmod(self.of.k, source.depth)
        if self.of.packed is not None:  # zeros follow the last of K
            whole, rest = whole + bool(rest), 0
        ones = splat(source.vector, 1)

        def add(step: Value, *sums: Value, depth: int = source.depth) -> list[Value]:
            return [byte_dot(before, ones, self._vector(row, step, depth)) for row, before in enumerate(sums)]

        sums = [zero(kind)] * self.rows
        if whole:
            sums = list(loop(0, whole, add, sums))
        if rest:
            sums = add(index(whole), *sums, depth=rest)
        add_all = ir.Attribute.parse("#vector.kind<add>")
        return [value("vector.reduction", word_type(), each, kind=add_all) for each in sums]

    @property
    def _begin(self) -> Value:
        """Returns the number of the strip's first row among the packed ones; creates it where it is 0."""
        return self.first if self.of.has_all else index(0)

    def _vector(self, row: int, step: Value, depth: int) -> Value:
        """Creates the vector of a step of K of a row; elements from ``depth`` on are 0."""
        source = self.of.source
        if self.of.packed is None:
            return source.along_k(plus(self.first, row), times(step, source.depth), depth)
        place = (plus(self._begin, row), times(step, source.words))
        words = value("vector.load", words_type(source.words), self.of.packed, *place)
        return value("vector.bitcast", source.vector, words)


def _spread(elements: Value, lanes: int) -> Value:
    """Creates the vector whose words are all the one word that has these elements."""
    word = value("vector.bitcast", words_type(1), elements)
    return value("vector.broadcast", words_type(lanes), word)
