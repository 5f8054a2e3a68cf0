"""B of a matmul of i8 as panels of words of K, with what sums start from, as dot products of bytes take it.

The instruction multiplies unsigned by signed bytes. A is packed with its sign bits flipped, which adds 128 to
each element, so sums start from -128 times the sum of their column of B. Of a weight, that comes packed with
it; of another B, it is computed after B is packed. Each method creates its ops at the current insertion
point.
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.ops.blocks.block_extent import BlockExtent
from tuner.mlir.ops.blocks.packing import allocated, pack_b
from tuner.mlir.ops.blocks.weight_words import WeightWords
from tuner.mlir.ops.blocks.words import WORD_BITS, WordSource
from tuner.mlir.rewrite.building import create, index, loop, plus, times, total, value, zero
from tuner.mlir.rewrite.byte_dots import byte_dot

SIGN = -128  # of a signed byte: the bit that is flipped


@dataclass(frozen=True, eq=False)
class WeightBytes:
    """B of a matmul that is a weight, packed by the caller."""

    words: WeightWords
    lanes: int

    def load(self, panel: Value, word: Value, vectors: int) -> list[Value]:
        """Creates the loads of the first vectors of a panel, each of a word of K of its columns."""
        row = self.words.row(panel, word)
        kind = ir.VectorType.get([self._bytes], ir.IntegerType.get_signless(8))
        places = [index(self._bytes * each) for each in range(vectors)]
        return [value("vector.load", kind, self.words.memory, row, place) for place in places]

    def starts(self, panel: Value, vectors: int) -> list[Value]:
        """Creates the vectors that the sums of a panel start from."""
        loaded = self.load(panel, index(self.words.words), vectors)
        return [value("vector.bitcast", sums_type(self.lanes), each) for each in loaded]

    @property
    def _bytes(self) -> int:
        return self.lanes * WORD_BITS // 8


@dataclass(frozen=True, eq=False)
class PackedBytes:
    """B of a matmul that is packed inside, and the sums of its columns."""

    source: WordSource
    words: int  # of K
    packed_words: int  # of K: whole vectors, the last of which may be filled up by zeros
    vectors: int  # of a panel
    memory: Value  # memref<rows of vectors x bytes>
    corrections: Value  # memref<panels * vectors x lanes x i32>: -128 times the sum of each column

    @classmethod
    def of(cls, source: WordSource, columns: BlockExtent, k: int, vectors: int) -> "PackedBytes":
        """Creates the buffers of a B with ``k`` rows."""
        word = ir.IntegerType.get_signless(WORD_BITS)
        panels = columns.steps(vectors * source.words)
        packed_words = -(-k // source.depth) * source.words
        memory = allocated((panels * packed_words * vectors, source.depth), source.element)
        corrections = allocated((panels * vectors, source.words), word)
        return cls(source, -(-k // source.per_word), packed_words, vectors, memory, corrections)

    def pack(self, columns: BlockExtent, k: int) -> None:
        """Creates the loops that pack B and add up its columns."""
        pack_b(self.source, columns, k, self.vectors, self._store)
        loop(0, columns.covering(self.vectors * self.source.words), self._correct)

    def load(self, panel: Value, word: Value, vectors: int) -> list[Value]:
        """Creates the loads of the first vectors of a panel, each of a word of K of its columns."""
        row = self._row(panel, word)
        return [
            value("vector.load", self.source.vector, self.memory, plus(row, each), index(0))
            for each in range(vectors)
        ]

    def starts(self, panel: Value, vectors: int) -> list[Value]:
        """Creates the vectors that the sums of a panel start from."""
        row, kind = times(panel, self.vectors), sums_type(self.source.words)
        return [
            value("vector.load", kind, self.corrections, plus(row, each), index(0)) for each in range(vectors)
        ]

    def _row(self, panel: Value, word: Value) -> Value:
        return times(total(times(panel, self.packed_words), word), self.vectors)

    def _store(self, panel: Value, step: Value, word: Value, vector: Value, words: Value) -> None:
        row = total(self._row(panel, total(times(step, self.source.words), word)), vector)
        create("vector.store", [], [words, self.memory, row, index(0)])

    def _correct(self, panel: Value) -> tuple[()]:
        """Creates the sums of the columns of a panel, times -128."""
        ones, kind = splat(self.source.vector, 1), sums_type(self.source.words)

        def add(word: Value, *sums: Value) -> list[Value]:
            of_b = self.load(panel, word, self.vectors)
            return [byte_dot(before, ones, each) for before, each in zip(sums, of_b, strict=True)]

        sums = loop(0, self.words, add, [zero(kind)] * self.vectors)
        row = times(panel, self.vectors)
        for number, each in enumerate(sums):
            start = value("arith.muli", kind, each, splat(kind, SIGN))
            create("vector.store", [], [start, self.corrections, plus(row, number), index(0)])
        return ()


def sums_type(lanes: int) -> Type:
    """Returns the type of a register of sums: vector<16xi32>."""
    return ir.VectorType.get([lanes], ir.IntegerType.get_signless(WORD_BITS))


def splat(kind: Type, number: int) -> Value:
    """Creates the constant vector of type ``kind`` whose elements are all ``number``."""
    one = ir.IntegerAttr.get(ir.VectorType(kind).element_type, number)
    return value("arith.constant", kind, value=ir.DenseElementsAttr.get_splat(kind, one))
