"""The product of a word of A, for all lanes, and a vector of words of B, added to a vector of sums.

Each method creates its ops at the current insertion point. A word has 32 bits: two bf16, or four i8.
"""

from dataclasses import dataclass
from typing import Protocol

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.ops.blocks.lane_vectors import multiply_add
from tuner.mlir.ops.blocks.packing import allocated
from tuner.mlir.ops.blocks.word_rows import WordStrip
from tuner.mlir.ops.blocks.words import DOT, first_half, second_half, splat, word_type, words_type
from tuner.mlir.rewrite.building import create, plus, value, zero
from tuner.mlir.rewrite.byte_dots import byte_dot

SIGN = -128  # of a signed byte: the bit that is flipped


class WordProducts(Protocol):
    """How words of A and B are multiplied, and what the sums of a row of C start from."""

    def prepare(self, strip: WordStrip) -> None:
        """Creates what the starts of the rows of a strip need, before its first tile."""
        ...

    def start(self, strip: WordStrip, row: int) -> Value:
        """Creates the vector that sums of a row of a strip start from."""
        ...

    def of_b(self, elements: Value) -> Value:
        """Creates what is packed in place of a vector of words of B."""
        ...

    def after(self, before: Value, words_of_a: Value, words_of_b: Value) -> Value:
        """Creates the sums after the products of words of A (vector<16xi32>) and B (vector<32xbf16>)."""
        ...


@dataclass(frozen=True, eq=False)
class ByteProducts:
    """Dot products of four signed bytes of A and four of B with 128 added (vpdpbusd).

    Sums start from -128 times the sum of their row of A, which makes up for what was added.
    """

    lanes: int
    starts: Value  # memref<rows of A x i32>

    @classmethod
    def of(cls, rows: int, lanes: int) -> "ByteProducts":
        """Creates the buffer of the starts of ``rows`` rows."""
        return cls(lanes, allocated((rows,), word_type()))

    def prepare(self, strip: WordStrip) -> None:
        """Creates the starts of the rows of a strip."""
        for row, each in enumerate(strip.byte_sums()):
            start = value("arith.muli", each.type, each, splat(each.type, SIGN))
            create("memref.store", [], [start, self.starts, plus(strip.first, row)])

    def start(self, strip: WordStrip, row: int) -> Value:
        """Creates the vector that sums of a row of a strip start from."""
        number = value("memref.load", word_type(), self.starts, plus(strip.first, row))
        return value("vector.broadcast", words_type(self.lanes), number)

    def of_b(self, elements: Value) -> Value:
        """Creates bytes with their sign bits flipped."""
        return value("arith.xori", elements.type, elements, splat(elements.type, SIGN))

    def after(self, before: Value, words_of_a: Value, words_of_b: Value) -> Value:
        """Creates the sums after the products of words of A and B."""
        return byte_dot(before, words_of_b, value("vector.bitcast", words_of_b.type, words_of_a))


@dataclass(frozen=True)
class PairProducts:
    """Products of pairs of bf16, sums in f32.

    With ``dots`` by an instruction of AVX512-BF16, vdpbf16ps; without, first elements are multiplied and
    added in f32, then second ones.
    """

    lanes: int
    dots: bool

    def prepare(self, strip: WordStrip) -> None:
        """Creates nothing: sums start from 0."""

    def start(self, _strip: WordStrip, _row: int) -> Value:
        """Creates the vector of zeros."""
        return zero(self._sums)

    def of_b(self, elements: Value) -> Value:
        """Returns the elements as they are."""
        return elements

    def after(self, before: Value, words_of_a: Value, words_of_b: Value) -> Value:
        """Creates the sums after the products of words of A and B."""
        if self.dots:
            pairs = value("vector.bitcast", words_of_b.type, words_of_a)
            return value(DOT, self._sums, before, pairs, words_of_b)
        words_of_b = value("vector.bitcast", words_of_a.type, words_of_b)
        for half in (first_half, second_half):
            left, right = (self._as_floats(half(each)) for each in (words_of_a, words_of_b))
            before = multiply_add(left, right, before)
        return before

    @property
    def _sums(self) -> Type:
        return ir.VectorType.get([self.lanes], ir.F32Type.get())

    def _as_floats(self, bits: Value) -> Value:
        return value("vector.bitcast", self._sums, bits)
