"""``tuner.pair_block``: matmuls of buffers of bf16 into f32 become products of pairs, with sums in registers.

Takes a function whose ``linalg.matmul`` ops are on memrefs of static sizes, each one block of the schedule.
Each is replaced by loops over strips of ``tile_m`` rows and panels of ``tile_n`` columns, with all sums of a
tile in vector registers. B is read as pairs of rows of K: a weight comes packed so
(``tuner.mlir.ops.blocks.weight_words``), another B is packed first. A is read where it lies. A
``linalg.fill`` of zero of the same C goes with it. Any size.

With ``dots`` a pair is one instruction of AVX512-BF16, vdpbf16ps, which takes subnormal numbers as 0.
Without, both elements of a word are extended to f32 and multiplied one after the other.

    linalg.fill ins(%zero : f32) outs(%c : memref<1x16xf32>)
    linalg.matmul ins(%a, %b : memref<1x64xbf16>, memref<64x16xbf16>) outs(%c : memref<1x16xf32>)
  becomes, after the loops that pack %b, with tile_m = 1, tile_n = 16 and dots = 1
    %total = scf.for %word = %c0 to %c32 step %c1 iter_args(%sums = %start) -> (vector<16xf32>) {
      %words = vector.load %packed_b[%row, %c0] : memref<32x32xbf16>, vector<32xbf16>
      %pair = vector.load %a[%c0, %k] : memref<1x64xbf16>, vector<2xbf16>
      %pairs = vector.bitcast %broadcast : vector<16xi32> to vector<32xbf16>
      %next = x86.avx512.dot %sums, %pairs, %words : vector<32xbf16> -> vector<16xf32>
      scf.yield %next : vector<16xf32>
    }
    vector.store %total, %c[%i, %j] : memref<1x16xf32>, vector<16xf32>
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ops.blocks.block_extent import BlockExtent, in_steps
from tuner.mlir.ops.blocks.buffer_matmul import BufferMatmul, buffer_matmuls
from tuner.mlir.ops.blocks.lane_vectors import multiply_add, store_lanes
from tuner.mlir.ops.blocks.packing import allocated, pack_b
from tuner.mlir.ops.blocks.weight_words import WeightWords, drop_views, take_weight_words
from tuner.mlir.ops.blocks.words import WORD_BITS, WORDS, WordSource
from tuner.mlir.ops.dialect import InPlaceOp, attribute
from tuner.mlir.rewrite.building import create, index, loop, plus, times, total, value, zero

DOT = "x86.avx512.dot"
HIGH = -(1 << 16)  # mask of the upper half of a word, which is its second element
HALF_BITS = 16  # by which the first element is shifted to be an f32


class PairBlockOp(InPlaceOp, name="pair_block"):
    """The transform op ``tuner.pair_block``: each ``linalg.matmul`` of buffers becomes products of pairs.

    Attributes, i64: ``tile_m`` and ``tile_n``, rows and columns of the sums in registers (default 6 and 64),
    ``lanes``, sums of a register (default 16; 8 for registers of 256 bits), and ``dots``, 1 for the
    instruction of AVX512-BF16 (default 0: f32 arithmetic). The handle (a func.func) stays valid. Silenceable
    failure: a matmul that is not of memrefs of static sizes of bf16 into f32 with A and B stored by rows, a
    tile_n that is no multiple of ``lanes``, and ``dots`` with other than 16 lanes.
    """

    def change(self, function: Op) -> str | None:
        """Replaces each ``linalg.matmul`` of one function by products of pairs, in place.

        Returns None, or a message about what is not allowed; then the function is unchanged.
        """
        tile_m, tile_n = attribute(self, "tile_m", 6), attribute(self, "tile_n", 64)
        lanes, dots = attribute(self, "lanes", WORDS), bool(attribute(self, "dots", 0))
        if tile_m < 1 or lanes < 1 or tile_n < 1 or tile_n % lanes:
            return f"found {tile_m} x {tile_n} sums in registers of {lanes}, allowed whole registers"
        if dots and lanes != WORDS:
            return f"found dots with {lanes} lanes, allowed {WORDS}"
        found = buffer_matmuls(function)
        if isinstance(found, str):
            return f"found {found}, allowed memrefs of static sizes with adjacent elements"
        for matmul in found:
            kind = (matmul.element, matmul.sum_element, matmul.layout)
            if kind != ("bf16", "f32", "nn"):
                return (
                    f"found a matmul of {kind[0]} into {kind[1]}, layout {kind[2]}; allowed bf16 into f32, nn"
                )
        for matmul, weight in zip(found, take_weight_words(function, found, tile_n, lanes), strict=True):
            b = matmul.b
            with ir.InsertionPoint(matmul.op), matmul.op.location:
                _PairMatmul.of(matmul, tile_m, tile_n // lanes, lanes, dots, weight).build()
            matmul.erase()
            drop_views(weight, b)
        return None


@dataclass(frozen=True, eq=False)
class _PairMatmul:
    """One matmul and the words of its B; its methods create its code at the current insertion point."""

    matmul: BufferMatmul
    tile_m: int
    vectors: int  # of a row of sums, and of a panel of B
    lanes: int
    dots: bool
    b: WeightWords

    @classmethod
    def of(
        cls,
        matmul: BufferMatmul,
        tile_m: int,
        vectors: int,
        lanes: int,
        dots: bool,
        weight: WeightWords | None,
    ) -> "_PairMatmul":
        """Takes the weight that B is; creates the code that packs another B to the same layout."""
        return cls(matmul, tile_m, vectors, lanes, dots, weight or _packed(matmul, vectors, lanes))

    @property
    def _sums(self) -> Type:
        return ir.VectorType.get([self.lanes], ir.F32Type.get())

    @property
    def _words(self) -> Type:
        return ir.VectorType.get([self.lanes], ir.IntegerType.get_signless(WORD_BITS))

    def build(self) -> None:
        """Creates the loops over strips of rows, and over panels of B."""
        in_steps(BlockExtent(self.matmul.m), self.tile_m, self._strip)

    def _strip(self, number: Value, rows: int) -> None:
        first = times(number, self.tile_m)
        in_steps(
            BlockExtent(self.matmul.n),
            self.vectors * self.lanes,
            lambda panel, columns: self._tile(first, rows, panel, columns),
        )

    def _tile(self, first: Value, rows: int, panel: Value, columns: int) -> None:
        """Creates the sums of ``rows`` x ``columns`` of C in registers, and their stores."""
        vectors = -(-columns // self.lanes)

        def step(word: Value, *sums: Value, elements: int = 2) -> list[Value]:
            of_b = self._load_b(panel, word, vectors)
            after: list[Value] = []
            for row in range(rows):
                of_a = self._load_a(plus(first, row), times(word, 2), elements)
                for number, each in enumerate(of_b):
                    after.append(self._multiplied(of_a, each, sums[row * vectors + number]))
            return after

        pairs, rest = divmod(self.matmul.k, 2)
        sums = [zero(self._sums)] * (rows * vectors)
        if pairs:
            sums = list(loop(0, pairs, step, sums))
        if rest:
            sums = step(index(pairs), *sums, elements=1)
        column = times(panel, self.vectors * self.lanes)
        for number, each in enumerate(sums):
            row, vector = divmod(number, vectors)
            place = (plus(first, row), plus(column, vector * self.lanes))
            width = min(columns - vector * self.lanes, self.lanes)
            store_lanes(each, self.matmul.c, place, width, adds=self.matmul.fill is None)

    def _load_b(self, panel: Value, word: Value, vectors: int) -> list[Value]:
        row = self.b.row(panel, word)
        kind = ir.VectorType.get([2 * self.lanes], ir.BF16Type.get())
        places = [index(2 * self.lanes * each) for each in range(vectors)]
        return [value("vector.load", kind, self.b.memory, row, place) for place in places]

    def _load_a(self, row: Value, k: Value, elements: int) -> list[Value]:
        """Creates what a pair of A is multiplied as: one vector of pairs, or a vector of f32 per element.

        Of the last element of an odd K, the other one of its pair is 0.
        """
        narrow = ir.BF16Type.get()
        if not self.dots:
            numbers = [
                value("memref.load", narrow, self.matmul.a, row, plus(k, each)) for each in range(elements)
            ]
            wide = [value("arith.extf", ir.F32Type.get(), each) for each in numbers]
            return [value("vector.broadcast", self._sums, each) for each in wide]
        kind = ir.VectorType.get([2], narrow)
        if elements == 2:
            pair = value("vector.load", kind, self.matmul.a, row, k)
        else:
            number = value("memref.load", narrow, self.matmul.a, row, k)
            pair = value("vector.from_elements", kind, number, zero(narrow))
        one = ir.VectorType.get([1], ir.IntegerType.get_signless(WORD_BITS))
        word = value("vector.bitcast", one, pair)
        words = value("vector.broadcast", self._words, word)
        return [value("vector.bitcast", ir.VectorType.get([2 * self.lanes], narrow), words)]

    def _multiplied(self, of_a: list[Value], of_b: Value, before: Value) -> Value:
        """Creates the sums after the products of one pair of A with words of B."""
        if self.dots:
            return value(DOT, self._sums, before, of_a[0], of_b)
        words = value("vector.bitcast", self._words, of_b)
        low = value("arith.shli", self._words, words, _splat(self._words, HALF_BITS))
        after = multiply_add(of_a[0], value("vector.bitcast", self._sums, low), before)
        if len(of_a) == 1:
            return after
        high = value("arith.andi", self._words, words, _splat(self._words, HIGH))
        return multiply_add(of_a[1], value("vector.bitcast", self._sums, high), after)


def _packed(matmul: BufferMatmul, vectors: int, lanes: int) -> WeightWords:
    """Creates the code that packs a B that is no weight: panels of pairs of rows."""
    source = WordSource(matmul.b, is_along_k=False, words=lanes)
    words = -(-matmul.k // source.depth) * source.words
    panels = -(-matmul.n // (vectors * lanes))
    memory = allocated((panels * words, vectors * source.depth), source.element)
    made = WeightWords(memory, words, vectors * lanes, 0)

    def store(panel: Value, step: Value, word: Value, vector: Value, pairs: Value) -> None:
        row = made.row(panel, total(times(step, source.words), word))
        create("vector.store", [], [pairs, memory, row, times(vector, source.depth)])

    pack_b(source, BlockExtent(matmul.n), matmul.k, vectors, store)
    return made


def _splat(kind: Type, number: int) -> Value:
    """Creates the constant vector of type ``kind`` whose elements are all ``number``."""
    one = ir.IntegerAttr.get(ir.VectorType(kind).element_type, number)
    return value("arith.constant", kind, value=ir.DenseElementsAttr.get_splat(kind, one))
