"""``tuner.vnni_block``: matmuls of buffers of i8 into i32 become dot products of four bytes (vpdpbusd).

Takes a function whose ``linalg.matmul`` ops are on memrefs of static sizes, each one block of the schedule.
Each is replaced by loops: B is packed to panels of ``tile_n`` columns, then each strip of ``tile_m`` rows
of A is packed and multiplied by one panel after the other, with the sums in vector registers. A
``linalg.fill`` of zero of the same C goes with it: C is then stored and not added to. Any size.

The instruction multiplies unsigned by signed bytes. So A is packed with its sign bits flipped, which adds 128
to each element, and sums start from -128 times the sum of their column of B: the result is exact, and sums
wrap around like those of i32. A B that is an argument ``tuner.weight`` comes packed, and these sums with it
(``tuner.mlir.ops.blocks.weight_words``). The dot product is a call that the lowering replaces by the
instruction, since deallocation of buffers takes no op of unknown effects.

    linalg.fill ins(%zero : i32) outs(%c : memref<1x16xi32>)
    linalg.matmul ins(%a, %b : memref<1x64xi8>, memref<64x16xi8>) outs(%c : memref<1x16xi32>)
  becomes, after the loops that pack %a and %b, with tile_m = 1 and tile_n = 16
    %start = vector.load %corrections[%panel, %c0] : memref<1x16xi32>, vector<16xi32>
    %total = scf.for %word = %c0 to %c16 step %c1 iter_args(%sums = %start) -> (vector<16xi32>) {
      %words = vector.load %packed_b[%row, %c0] : memref<16x64xi8>, vector<64xi8>
      %word_of_a = memref.load %packed_a[%c0, %word] : memref<1x32xi32>
      %broadcast_of_a = vector.broadcast %word_of_a : i32 to vector<16xi32>
      %bytes = vector.bitcast %broadcast_of_a : vector<16xi32> to vector<64xi8>
      %next = func.call @vpdpbusd_512(%sums, %bytes, %words) : ...
      scf.yield %next : vector<16xi32>
    }
    vector.maskedstore %c[%i, %j], %all, %total : memref<1x16xi32>, vector<16xi1>, vector<16xi32>

Source: Intel 64 and IA-32 architectures optimization manual, chapter on AVX-512 VNNI.
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ops.blocks.block_extent import BlockExtent, in_steps
from tuner.mlir.ops.blocks.buffer_matmul import BufferMatmul, buffer_matmuls
from tuner.mlir.ops.blocks.byte_panels import SIGN, PackedBytes, WeightBytes, splat, sums_type
from tuner.mlir.ops.blocks.packing import allocated, pack_a
from tuner.mlir.ops.blocks.weight_words import WeightWords, drop_views, take_weight_words
from tuner.mlir.ops.blocks.words import WORD_BITS, WORDS, WordSource, constant_mask
from tuner.mlir.ops.dialect import InPlaceOp, attribute
from tuner.mlir.rewrite.building import create, index, loop, plus, times, value, zero
from tuner.mlir.rewrite.byte_dots import byte_dot, declare_byte_dot


class VnniBlockOp(InPlaceOp, name="vnni_block"):
    """The transform op ``tuner.vnni_block``: each ``linalg.matmul`` of buffers becomes dot products of bytes.

    Attributes, i64: ``tile_m`` and ``tile_n``, rows and columns of the sums in registers (default 6 and 64),
    and ``lanes``, sums of a register (default 16; 8 for registers of 256 bits); ``columns`` and
    ``last_columns``, the sizes of a whole block and of the last one, where B and C have a dynamic number of
    columns (default: it is static). The handle (a func.func) stays valid. Silenceable failure: a matmul that
    is not of memrefs of static sizes of i8 into i32, and a tile_n that is no multiple of ``lanes``.
    """

    def change(self, function: Op) -> str | None:
        """Replaces each ``linalg.matmul`` of one function by packing and dot products, in place.

        Returns None, or a message about what is not allowed; then the function is unchanged.
        """
        tile_m, tile_n = attribute(self, "tile_m", 6), attribute(self, "tile_n", 64)
        lanes = attribute(self, "lanes", WORDS)
        if tile_m < 1 or lanes < 1 or tile_n < 1 or tile_n % lanes:
            return f"found {tile_m} x {tile_n} sums in registers of {lanes}, allowed whole registers"
        found = buffer_matmuls(function, (attribute(self, "columns", 0), attribute(self, "last_columns", 0)))
        if isinstance(found, str):
            return f"found {found}, allowed memrefs of static sizes with adjacent elements"
        for matmul in found:
            if (matmul.element, matmul.sum_element) != ("i8", "i32"):
                return f"found a matmul of {matmul.element} into {matmul.sum_element}, allowed i8 into i32"
        if found:
            declare_byte_dot(function.parent, lanes)
        weights = take_weight_words(function, found, tile_n, lanes, has_sums=True)
        for matmul, weight in zip(found, weights, strict=True):
            b = matmul.b
            with ir.InsertionPoint(matmul.op), matmul.op.location:
                _VnniMatmul.of(matmul, tile_m, tile_n // lanes, lanes, weight).build()
            matmul.erase()
            drop_views(weight, b)
        return None


@dataclass(frozen=True, eq=False)
class _VnniMatmul:
    """One matmul with its packed buffers; its methods create its code at the current insertion point."""

    matmul: BufferMatmul
    columns: BlockExtent  # of C
    tile_m: int
    vectors: int  # of a row of sums, and of a packed panel of B
    a: WordSource
    packed_a: Value  # memref<tile_m x words of K, and one vector of space, x i32>
    b: PackedBytes | WeightBytes

    @classmethod
    def of(
        cls, matmul: BufferMatmul, tile_m: int, vectors: int, lanes: int, weight: WeightWords | None
    ) -> "_VnniMatmul":
        """Creates the buffers of a matmul, whose B may be a ``weight``."""
        a = WordSource(matmul.a, matmul.layout != "tn", lanes)
        columns = matmul.columns()
        k_words = -(-matmul.k // a.depth) * a.words
        # rows a power of two apart would lie in the same sets of the cache
        packed_a = allocated((tile_m, k_words + lanes), ir.IntegerType.get_signless(WORD_BITS))
        source = WordSource(matmul.b, matmul.layout == "nt", lanes)
        b = WeightBytes(weight, lanes) if weight else PackedBytes.of(source, columns, matmul.k, vectors)
        return cls(matmul, columns, tile_m, vectors, a, packed_a, b)

    @property
    def _lanes(self) -> int:
        return self.a.words

    @property
    def _sums(self) -> Type:
        return sums_type(self._lanes)

    @property
    def _words(self) -> int:
        """Returns the words of K that are multiplied; more are packed where K is no multiple of a vector."""
        return -(-self.matmul.k // self.a.per_word)

    def build(self) -> None:
        """Creates the code: packing of a B that is no weight, then loops over strips of rows and panels."""
        if isinstance(self.b, PackedBytes):
            self.b.pack(self.columns, self.matmul.k)
        in_steps(BlockExtent(self.matmul.m), self.tile_m, self._strip)

    def _store_a(self, row: Value, step: Value, words: Value) -> None:
        flipped = value("arith.xori", self.a.vector, words, splat(self.a.vector, SIGN))
        words = value("vector.bitcast", self._sums, flipped)
        create("vector.store", [], [words, self.packed_a, row, times(step, self._lanes)])

    def _strip(self, number: Value, rows: int) -> None:
        first = times(number, self.tile_m)
        pack_a(self.a, first, BlockExtent(rows), self.matmul.k, self._store_a)
        in_steps(
            self.columns,
            self.vectors * self._lanes,
            lambda panel, columns: self._tile(first, rows, panel, columns),
        )

    def _tile(self, first: Value, rows: int, panel: Value, columns: int) -> None:
        """Creates the sums of ``rows`` x ``columns`` of C in registers, and their stores."""
        vectors = -(-columns // self._lanes)
        starts = self.b.starts(panel, vectors)

        def multiply(word: Value, *sums: Value) -> list[Value]:
            of_b = self.b.load(panel, word, vectors)
            element = ir.IntegerType.get_signless(WORD_BITS)
            after = []
            for row in range(rows):
                of_a = value("memref.load", element, self.packed_a, index(row), word)
                words = value("vector.broadcast", self._sums, of_a)
                bytes_of_a = value("vector.bitcast", self.a.vector, words)
                for number, each in enumerate(of_b):
                    after.append(byte_dot(sums[row * vectors + number], bytes_of_a, each))
            return after

        sums = loop(0, self._words, multiply, starts * rows)
        column = times(panel, self.vectors * self._lanes)
        for number, each in enumerate(sums):
            row, vector = divmod(number, vectors)
            width = min(columns - vector * self._lanes, self._lanes)
            self._store_c(each, plus(first, row), plus(column, vector * self._lanes), width)

    def _store_c(self, sums: Value, row: Value, column: Value, width: int) -> None:
        """Creates the store of a vector of sums to C, added to C after the first block of K."""
        target = (self.matmul.c, row, column)
        mask = constant_mask(width, self._lanes)
        if self.matmul.fill is None:
            before = value("vector.maskedload", self._sums, *target, mask, zero(self._sums))
            sums = value("arith.addi", self._sums, sums, before)
        create("vector.maskedstore", [], [*target, mask, sums])
