"""Reads words of K from a matrix: pairs of bf16, or fours of i8, as AMX and VNNI multiply them.

A word has 32 bits and holds elements of one row of A, or of one column of B, that follow each other along K.
Where K is not the dimension that is adjacent in memory, words are made by interleaving rows.
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.rewrite.building import fetch, index, is_less, line_of, piece, plus, value, with_line, zero

WORD_BITS, HALF_BITS = 32, 16
HIGH = -(1 << HALF_BITS)  # mask of the upper half of a word
DOT = "x86.avx512.dot"  # of pairs of bf16, added to f32: vdpbf16ps
LINE_BYTES = 64  # of a cache
WORDS = 16  # of a vector of 64 bytes, and of a tile row


@dataclass(frozen=True, eq=False)
class WordSource:
    """A matrix A or B as words of K: ``across`` counts rows of A or columns of B."""

    buffer: Value  # 2-D memref, rows of adjacent elements
    is_along_k: bool  # K is the dimension of adjacent elements: A of layout nn and nt, B of nt
    words: int = WORDS  # of one vector

    @property
    def element(self) -> Type:
        """Returns the element type."""
        return ir.MemRefType(self.buffer.type).element_type

    @property
    def per_word(self) -> int:
        """Returns the number of elements of a word: 2 of bf16, 4 of i8."""
        return {"bf16": 2, "i8": 4}[str(self.element)]

    @property
    def depth(self) -> int:
        """Returns the number of elements of a vector of words: of 16 words 32 bf16, or 64 i8."""
        return self.words * self.per_word

    @property
    def vector(self) -> Type:
        """Returns the type of a vector of words: of 16 words vector<32xbf16> or vector<64xi8>."""
        return ir.VectorType.get([self.depth], self.element)

    def along_k(self, across: Value, k: Value, depth: int) -> Value:
        """Creates the vector of words from ``k`` on, of one row of A or column of B.

        Elements from ``depth`` on are 0. Only for a matrix stored along K.
        """
        return self._read(across, k, depth, self.depth)

    def side_by_side(self, k: Value, across: Value, depth: int, width: int, total: int) -> list[Value]:
        """Creates the words that begin at ``k`` of ``total`` rows or columns, as vectors of words.

        Elements from ``depth`` on and words from ``width`` on are 0. Only for a matrix not stored along K.
        """
        kind = ir.VectorType.get([total], self.element)
        rows = [
            self._read(plus(k, row), across, width, total) if row < depth else zero(kind)
            for row in range(self.per_word)
        ]
        return self._words_of(rows, total)

    def fetch_rows(self, k: Value, across: Value, count: int, total: int) -> None:
        """Creates prefetches of ``total`` elements of ``count`` rows to the second level of cache.

        Only for a matrix not stored along K. Rows after the last one are fetched too, which has no effect.
        """
        elements = LINE_BYTES * self.per_word * 8 // WORD_BITS
        for row in range(count):
            for column in range(0, total, elements):
                fetch(self.buffer, plus(k, row), plus(across, column))

    def along_k_where(self, mask: Value, across: Value, k: Value) -> Value:
        """Creates the vector of words from ``k`` on, of one row of A or column of B, 0 outside a mask.

        Only for a matrix stored along K.
        """
        return self._read_where(mask, across, k, self.depth)

    def side_by_side_within(self, end: int, k: Value, across: Value, bits: Value) -> list[Value]:
        """Creates the words that begin at ``k``, as vectors of words; elements from ``end`` of K on are 0.

        ``bits``: an integer with a bit for each row or column from ``across`` on; words without their bit are
        0. Only for a matrix not stored along K.
        """
        total, rows = bits.type.width, []
        for number in range(self.per_word):
            row, none = plus(k, number), zero(bits.type)
            taken = value("arith.select", bits.type, is_less(row, index(end)), bits, none)
            place = value("arith.minui", row.type, row, index(end - 1))  # one that is there
            rows.append(self._read_where(mask_of(taken), place, across, total))
        return self._words_of(rows, total)

    def _words_of(self, rows: list[Value], total: int) -> list[Value]:
        """Creates vectors of words from as many rows as a word has elements, ``total`` elements of each."""
        while len(rows) > 1:  # of four rows, 0 with 2 and 1 with 3 first
            half = len(rows) // 2
            rows = [_interleaved(rows[each], rows[each + half]) for each in range(half)]
        return [piece(rows[0], self.depth * part, self.depth) for part in range(total // self.words)]

    def _read(self, row: Value, column: Value, count: int, total: int) -> Value:
        """Creates the read of ``count`` adjacent elements as a vector of ``total``; the others are 0."""
        kind = ir.VectorType.get([total], self.element)
        if count >= total:
            return value("vector.load", kind, self.buffer, row, column)
        return self._read_where(constant_mask(count, total), row, column, total)

    def _read_where(self, mask: Value, row: Value, column: Value, total: int) -> Value:
        """Creates the read of those of ``total`` adjacent elements that a mask has; the others are 0."""
        kind = ir.VectorType.get([total], self.element)
        return value("vector.maskedload", kind, self.buffer, row, column, mask, zero(kind))


def prefix_bits(count: Value, total: int) -> Value:
    """Creates the integer of ``total`` bits whose lowest ``count`` are 1; ``count``: an index from 1 on."""
    kind = ir.IntegerType.get_signless(total)
    every = value("arith.constant", kind, value=ir.IntegerAttr.get(kind, -1))
    others = value("arith.subi", count.type, index(total), count)
    return value("arith.shrui", kind, every, value("arith.index_castui", kind, others))


def mask_of(bits: Value) -> Value:
    """Creates the mask vector whose elements are the bits of an integer, the lowest bit first."""
    one = value("vector.broadcast", ir.VectorType.get([1], bits.type), bits)
    kind = ir.VectorType.get([bits.type.width], ir.IntegerType.get_signless(1))
    return value("vector.bitcast", kind, one)


def constant_mask(count: int, total: int) -> Value:
    """Creates the mask vector<``total`` x i1> whose first ``count`` elements are true."""
    kind = ir.VectorType.get([total], ir.IntegerType.get_signless(1))
    return value("vector.constant_mask", kind, mask_dim_sizes=ir.DenseI64ArrayAttr.get([min(count, total)]))


def transposed(rows: list[Value]) -> list[Value]:
    """Creates the transpose of a square of words: vector p of the result has word p of each vector."""
    count, kind = len(rows), rows[0].type
    line, square = (ir.VectorType.get(shape, word_type()) for shape in ([count], [count, count]))
    words = zero(square)
    for number, row in enumerate(rows):
        words = with_line(words, number, value("vector.bitcast", line, row))
    turned = value("vector.transpose", square, words, permutation=ir.DenseI64ArrayAttr.get([1, 0]))
    lines = [line_of(turned, number) for number in range(count)]
    return [value("vector.bitcast", kind, each) for each in lines]


def _interleaved(even: Value, odd: Value) -> Value:
    kind = ir.VectorType(even.type)
    return value("vector.interleave", ir.VectorType.get([2 * kind.shape[0]], kind.element_type), even, odd)


def word_type() -> Type:
    """Returns the type of a word: i32."""
    return ir.IntegerType.get_signless(WORD_BITS)


def words_type(lanes: int = WORDS) -> Type:
    """Returns the type of a vector of words: vector<16xi32>."""
    return ir.VectorType.get([lanes], word_type())


def splat(kind: Type, number: int) -> Value:
    """Creates the integer ``number``, or the vector of integers that are all ``number``, of type ``kind``."""
    if not isinstance(kind, ir.VectorType):
        return value("arith.constant", kind, value=ir.IntegerAttr.get(kind, number))
    one = ir.IntegerAttr.get(kind.element_type, number)
    return value("arith.constant", kind, value=ir.DenseElementsAttr.get_splat(kind, one))


def first_half(words: Value) -> Value:
    """Creates the first bf16 of a word, or of each word of a vector: the bits of the f32 that it is."""
    return value("arith.shli", words.type, words, splat(words.type, HALF_BITS))


def second_half(words: Value) -> Value:
    """Creates the second bf16 of a word, or of each word of a vector: the bits of the f32 that it is."""
    return value("arith.andi", words.type, words, splat(words.type, HIGH))
