"""How a quantized matmul unpacks and multiplies its integers: the subclasses of ``Scheme``.

    scheme     class                  products of                      instruction
    "dots"     Dots                   i8, quantized A                  vpdpbusd, sdot; with ``words`` vpmaddwd
               NibbleWords            likewise, weights of 4 bits      vpmaddubsw (with ``words``)
    "bytes"    those of "dots"        likewise, unpacked before        likewise
    "pairs"    Pairs                  bf16                             vdpbf16ps
    "singles"  Singles                f32                              fused multiply-add
    "scaled"   Scaled                 f32, weights scaled before       fused multiply-add
    "tiles"    TileBytes, TilePairs   i8 of quantized A, or bf16       AMX

A scheme unpacks; its instruction is an object of ``tuner.mlir.cpu_ops.instructions``, as of other products.
A run is the elements of K whose sum is scaled at once; a step is the rows of K that one row of packed weights
has; a factor is what one instruction multiplies; a span is the steps whose products are summed in narrow
registers before these are added to the sums (``tuner.models.ops.quantized_product``).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from tuner.core.dtypes import number_type
from tuner.core.errors import Refusal, UsageError
from tuner.core.fusions import FUSION_ENTRY
from tuner.core.packings import NIBBLE_ROWS
from tuner.core.quantization import QUANTIZATION, WeightFormat, quantized_text
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.cpu.needed_instructions import AARCH64_LANES
from tuner.mlir.cpu_ops.instructions import (
    AmxProducts,
    DotSums,
    Products,
    SingleProducts,
    products_of,
)
from tuner.mlir.cpu_ops.vnni_packing import as_words
from tuner.mlir.dialect import InPlaceOp, attribute, text
from tuner.mlir.ir.building import index, splat, value, zero
from tuner.mlir.ir.dot_products import VPMADDUBSW, VPMADDWD
from tuner.mlir.ir.reading import name_of
from tuner.mlir.ir.table_lookup import FLOATS, WORDS, Lookup, declare_lookup, looked_up, table_of

DOTS, BYTES, PAIRS, SINGLES, SCALED, TILES = SCHEMES = (
    "dots",
    "bytes",
    "pairs",
    "singles",
    "scaled",
    "tiles",
)
MOST_TILED = 1024  # sums of four tiles, which leaves four tile registers for A and B
TILE_ROWS = 16  # of an AMX tile
NIBBLE = 8  # what is added to integers of 4 bits, so that they are unsigned
BYTE_BITS = 8
WORD_BITS = 32  # of the elements of K that a sum takes at a time
ROW_PADDING = 64  # elements after a row of A: rows a power of two apart would lie in the same sets of L1
FLOAT_MAGIC = 0x4B000000  # the bits of 2**23 in f32; its last 4 bits count units
BF16_TABLE = tuple(int(np.float32(unsigned - NIBBLE).view(np.uint32)) >> 16 for unsigned in range(2 * NIBBLE))


@dataclass(frozen=True)
class QuantizedTile:
    """The knobs of ``tuner.quantized_matmul``: scheme, tile of C in registers, blocks of K, prefetches."""

    scheme: str  # how integers are multiplied: one of SCHEMES
    rows: int
    columns: int  # also of a panel
    lanes: int
    block_k: int  # elements of K in a block; 0: all of K
    ahead_bytes: int  # from weights that are multiplied to those that are prefetched; 0: none are
    words: int  # 1: bytes are multiplied to integers of 16 bits, without VNNI

    @classmethod
    def of(cls, op: InPlaceOp) -> "QuantizedTile":
        names = (("tile_m", 4), ("tile_n", 64), ("lanes", 16), ("block_k", 0), ("prefetch", 0), ("words", 0))
        return cls(text(op, "scheme", SINGLES), *(attribute(op, name, usual) for name, usual in names))

    @property
    def vectors(self) -> int:
        return self.columns // self.lanes


@dataclass(frozen=True, eq=False)
class QuantizedOperands:
    """A quantized matmul as the function's arguments and their sizes."""

    format: WeightFormat
    sizes: tuple[int, int, int]  # (m, n, k)
    dtype: str  # of A
    output: str  # type of C
    arguments: tuple[Value, ...]  # A, B, scales[, zero points], C
    depth: int  # elements of K whose sum is scaled at once: a group, or without groups a block of K

    @property
    def k(self) -> int:
        return self.sizes[2]

    @property
    def runs(self) -> int:
        """Returns the number of runs: parts of K whose sums are scaled one after another."""
        return -(-self.k // self.depth)

    @property
    def zero_points(self) -> Value | None:
        if self.format.has_zero_points:
            return self.arguments[3]
        return None

    def group(self, run: Value) -> Value:
        """Creates the index of the group of K whose scales and zero points a run has; 0 without groups.

        ``run``: number of the run, the elements of K whose sum is scaled at once; with groups, a run is a
        group.
        """
        if self.format.group:
            return run
        return index(0)


def operands_of(function: Op, block_k: int) -> QuantizedOperands | Refusal:
    """Returns the operands of the quantized matmul that ``function`` is; a Refusal if it is none.

    ``block_k``: elements of K in a block; 0: all of K.
    """
    if QUANTIZATION not in function.attributes:
        return Refusal(f"found a function without {QUANTIZATION}, allowed a quantized matmul")
    arguments = tuple(function.regions[0].blocks[0].arguments)
    types = [ir.MemRefType(argument.type) for argument in arguments]
    format_ = WeightFormat.of_text(ir.StringAttr(function.attributes[QUANTIZATION]).value)
    (m, k), n = types[0].shape, types[1].shape[0]
    depth = format_.group or block_k or k
    dtype, output = (str(types[position].element_type) for position in (0, -1))
    try:
        expected = quantized_text((m, n, k), dtype, format_, output)
    except UsageError as error:
        return Refusal(str(error))
    # the op computes what this text says, and nothing else: an edited payload is refused
    module = ir.Module.parse(expected.replace(f"@{FUSION_ENTRY}(", f"@{name_of(function)}("))
    if str(module.body.operations[0]) != str(function):
        return Refusal("found other operations than those of a quantized matmul")
    return QuantizedOperands(format_, (m, n, k), dtype, output, arguments, depth)


class Scheme(ABC):
    """How the integers of a quantized matmul are unpacked and multiplied; one object for each matmul."""

    nibbles: str  # where weights have 4 bits: their order in a step's bytes, a key of core.packings.NIBBLES
    sum_element = "f32"
    span = 1  # steps whose products are summed by ``products`` before they are added to the sums of a run
    is_in_tiles = False  # rows of A are read 16 at a time
    is_scaled_ahead = False  # weights are unpacked to f32, and scaled, once for all rows

    def __init__(self, tile: QuantizedTile, operands: QuantizedOperands, products: Products) -> None:
        self.tile = tile
        self.operands = operands
        self.products = products
        self.lanes = tile.lanes

    @property
    def is_nibbles(self) -> bool:
        return self.operands.format.bits < BYTE_BITS

    @property
    def element(self) -> str:
        """Returns the element type of a row of A, as multiplied: "f32"."""
        return self.products.element

    @property
    def per_factor(self) -> int:
        """Returns how many elements of K a sum takes at a time, together 4 bytes."""
        return WORD_BITS // number_type(self.element).bits

    @property
    def step(self) -> int:
        """Returns how many elements of K a step of the inner loop multiplies: a row of packed weights."""
        if self.is_nibbles:
            return NIBBLE_ROWS
        return self.per_factor

    @property
    def sums(self) -> Type:
        return self.vector(self.lanes, self.sum_element)

    @property
    def vector_bytes(self) -> int:
        """Returns the bytes of packed weights that a step, one row of them, has for one vector of columns."""
        return self.step * self.lanes * self.operands.format.bits // 8

    def vector(self, lanes: int, element: str) -> Type:
        return ir.VectorType.get([lanes], ir.Type.parse(element))

    @property
    def is_unpacked_ahead(self) -> bool:
        """Returns whether weights are unpacked once for all rows of A, to a buffer."""
        return self.tile.scheme == BYTES

    @property
    def offset(self) -> int:
        """Returns what is added to weights before they are multiplied; sums start from less instead."""
        if self.is_nibbles and self.sum_element == "i32" and not self.is_in_tiles:
            return NIBBLE
        return self.products.offset

    @property
    def tables(self) -> tuple[Lookup, ...]:
        """Returns the tables by which weights are unpacked."""
        return ()

    def prepare(self, function: Op) -> None:
        """Declares the functions that the scheme's code calls, in the module that contains ``function``."""
        self.products.declare(function.parent)
        for table in self.tables:
            declare_lookup(function.parent, table)

    def start(self, row_sum: Value | None) -> Value:
        """Creates the vector of initial sums of a run, the elements of K whose sum is scaled at once.

        ``row_sum``: the sum of the row's elements of A in the run, with an ``offset``; else None.
        """
        if row_sum is None:
            return zero(self.sums)
        shifted = value("arith.muli", row_sum.type, row_sum, splat(row_sum.type, -self.offset))
        return value("vector.broadcast", self.sums, shifted)

    def partial(self, before: Value) -> Value:
        """Creates the vector to which the products of a span are added; a span is ``span`` steps along K.

        ``before``: the run's sums before the span.
        """
        return before

    def joined(self, before: Value, partial: Value) -> Value:
        """Creates the sums of a run, the elements of K that are scaled at once, after one more span of it.

        A span is ``span`` steps along K. ``before``: the sums before it; ``partial``: what
        ``self.partial(before)`` made, plus the span's products. By default ``partial`` includes ``before``
        and is returned.
        """
        return partial

    @abstractmethod
    def factors(self, loaded: Value) -> list[Value]:
        """Creates the unpacked weights of a step from its packed bytes ``loaded``.

        Returns f factors for one vector of columns, each with ``step / f`` rows of K.
        """

    @final
    def of_a(self, buffer: Value, row: Value, k: Value) -> list[Value]:
        """Creates the elements of a row of A from ``k`` on that multiply one factor, repeated in all lanes.

        ``buffer``: the rows of A as prepared.
        """
        if self.per_factor == 1:
            number = value("memref.load", ir.Type.parse(self.element), buffer, row, k)
            return [value("vector.broadcast", self.sums, number)]
        few = value("vector.load", self.vector(self.per_factor, self.element), buffer, row, k)
        single = value("vector.bitcast", self.vector(1, "i32"), few)
        every = value("vector.broadcast", self.vector(self.lanes, "i32"), single)
        return [value("vector.bitcast", self.vector(self.per_factor * self.lanes, self.element), every)]


class Dots(Scheme):
    """Dot products of bytes of A and of B, summed in i32, which is exact."""

    sum_element = "i32"
    nibbles = "fours"

    def factors(self, loaded: Value) -> list[Value]:
        if not self.is_nibbles:
            return [as_words(loaded) if self.element == "i16" else loaded]
        words = self.vector(2 * self.lanes, "i16")
        high = value("arith.shrui", words, value("vector.bitcast", words, loaded), splat(words, 4))
        high = value("vector.bitcast", loaded.type, high)
        return [
            value("arith.andi", loaded.type, nibbles, splat(loaded.type, 15)) for nibbles in (loaded, high)
        ]


class NibbleWords(Dots):
    """Products of two signed bytes of A and two nibbles of B (vpmaddubsw), summed in 16 bits, then in 32.

    Such a sum of two is at most 2 * 15 * 128 = 3840, and eight of these, which a span has, are in the range
    of 16 bits. No sum saturates.
    """

    span = 4  # of two factors each

    def __init__(self, tile: QuantizedTile, operands: QuantizedOperands) -> None:
        super().__init__(tile, operands, DotSums.of(VPMADDUBSW, 2 * tile.lanes))
        self.joining = DotSums.of(VPMADDWD, tile.lanes)

    def prepare(self, function: Op) -> None:
        super().prepare(function)
        self.joining.declare(function.parent)

    def partial(self, before: Value) -> Value:
        return zero(self.products.sums)

    def joined(self, before: Value, partial: Value) -> Value:
        return self.joining.after(before, [partial], splat(partial.type, 1))


class Pairs(Scheme):
    """Products of pairs of bf16 (vdpbf16ps), summed in f32.

    Weights of 4 bits become bf16 by a table in a register, those of 8 bits by f32, whose high half they are.
    """

    nibbles = "pairs"

    @property
    def tables(self) -> tuple[Lookup, ...]:
        return (WORDS,) if self.is_nibbles else ()

    def factors(self, loaded: Value) -> list[Value]:
        pairs = self.vector(2 * self.lanes, "bf16")
        if not self.is_nibbles:
            return [value("vector.bitcast", pairs, self._bits_of_bytes(loaded))]
        words = self.vector(2 * self.lanes, "i16")
        short = ir.IntegerType.get_signless(16)
        entries = [ir.IntegerAttr.get(short, _as_signed(number)) for number in BF16_TABLE]
        table = table_of(WORDS, entries)
        packed = value("vector.bitcast", words, loaded)
        shifted = [
            value("arith.shrui", words, packed, splat(words, 4 * nibble)) if nibble else packed
            for nibble in range(4)
        ]
        return [value("vector.bitcast", pairs, looked_up(WORDS, table, indices)) for indices in shifted]

    def _bits_of_bytes(self, loaded: Value) -> Value:
        """Creates the bits of two bytes per lane as bf16, exactly: the high half of an f32 each."""
        words = self.vector(self.lanes, "i32")
        shorts = value("vector.bitcast", self.vector(self.lanes, "i16"), loaded)
        both = value("arith.extsi", words, shorts)
        shifted = value("arith.shli", words, both, splat(words, 24))
        low = self._float_bits(value("arith.shrsi", words, shifted, splat(words, 24)))
        high = self._float_bits(value("arith.shrsi", words, both, splat(words, 8)))
        # of such a number the low half is 0
        return value("arith.ori", words, value("arith.shrui", words, low, splat(words, 16)), high)

    def _float_bits(self, integers: Value) -> Value:
        number = value("arith.sitofp", self.vector(self.lanes, "f32"), integers)
        return value("vector.bitcast", integers.type, number)


class Singles(Scheme):
    """Products of single f32 numbers by fused multiply-add.

    Weights of 4 bits become f32 by a table in a register (AVX-512), or as the bits of 2**23 + u.
    """

    nibbles = "rows"

    @property
    def _has_table(self) -> bool:
        return self.lanes == FLOATS.lanes

    @property
    def tables(self) -> tuple[Lookup, ...]:
        return (FLOATS,) if self.is_nibbles and self._has_table else ()

    def factors(self, loaded: Value) -> list[Value]:
        if not self.is_nibbles:
            return [value("arith.sitofp", self.vector(self.lanes, "f32"), loaded)]
        words = self.vector(self.lanes, "i32")
        packed = value("vector.bitcast", words, loaded)
        shifted = [
            value("arith.shrui", words, packed, splat(words, 4 * nibble)) if nibble else packed
            for nibble in range(NIBBLE_ROWS)
        ]
        return [self._number(word, words) for word in shifted]

    def _number(self, shifted: Value, words: Type) -> Value:
        floats = self.vector(self.lanes, "f32")
        f32 = ir.F32Type.get()
        if self._has_table:
            entries = [ir.FloatAttr.get(f32, float(unsigned - NIBBLE)) for unsigned in range(2 * NIBBLE)]
            return looked_up(FLOATS, table_of(FLOATS, entries), shifted)
        # 2**23 + u is exact, and so is the difference
        units = value("arith.andi", words, shifted, splat(words, 15))
        large = value("vector.bitcast", floats, value("arith.ori", words, units, splat(words, FLOAT_MAGIC)))
        return value("arith.subf", floats, large, splat(floats, 2**23 + NIBBLE))


class Scaled(Singles):
    """Products of f32 like ``Singles``, where weights are unpacked and scaled once for all rows of A."""

    is_scaled_ahead = True


class TileBytes(Dots):
    """Products of signed bytes, summed in i32, in AMX tiles."""

    is_in_tiles = True

    def factors(self, loaded: Value) -> list[Value]:
        bytes_ = super().factors(loaded)
        if not self.is_nibbles:
            return bytes_
        return [value("arith.subi", factor.type, factor, splat(factor.type, NIBBLE)) for factor in bytes_]


class TilePairs(Pairs):
    """Products of pairs of bf16, summed in f32, in AMX tiles."""

    is_in_tiles = True


def scheme_of(op: InPlaceOp, tile: QuantizedTile, operands: QuantizedOperands) -> Scheme | Refusal:
    """Returns the scheme with the name ``tile.scheme``, one of SCHEMES, and the op's instruction.

    For "tiles" it is TileBytes if activations are quantized, else TilePairs; with ``tile.words``, "dots" and
    "bytes" are schemes without VNNI. Refuses an instruction that does not fit.
    """
    if tile.scheme == TILES:
        if operands.format.activations:
            return TileBytes(tile, operands, AmxProducts.of("i8"))
        return TilePairs(tile, operands, AmxProducts.of("bf16"))
    if tile.scheme in (SINGLES, SCALED):
        of_singles = Scaled if tile.scheme == SCALED else Singles
        return of_singles(tile, operands, SingleProducts.of(tile.lanes, "f32"))
    if tile.scheme == PAIRS:
        products = products_of(op, "bf16", tile.lanes)
    elif tile.words and tile.lanes != AARCH64_LANES and operands.format.bits < BYTE_BITS:
        return NibbleWords(tile, operands)
    else:
        products = products_of(op, "i8", tile.lanes)
    if isinstance(products, Refusal):
        return products
    if products.rows > 1:
        return Refusal("found an instruction of small matrices, allowed one of a row of A")
    if tile.scheme == PAIRS:
        return Pairs(tile, operands, products)
    return Dots(tile, operands, products)


def _as_signed(word: int) -> int:
    if word >= 2**15:
        return word - 2**16
    return word
