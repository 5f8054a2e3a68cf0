"""``tuner.pair_block``: matmuls of buffers of bf16 into f32 become products of pairs, with sums in registers.

Takes a function whose ``linalg.matmul`` ops are on memrefs of static sizes, each one block of the schedule.
Each is replaced by loops over strips of ``tile_m`` rows and panels of ``tile_n`` columns, with all sums of a
tile in vector registers. B is read as pairs of rows of K: a weight comes packed so
(``tuner.mlir.ops.blocks.weight_words``), another B is packed first. A is read where it lies, but for layout
tn, where strips are packed. A ``linalg.fill`` of zero of the same C goes with it. Any size.

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

from tuner.mlir.bindings import Op
from tuner.mlir.ops.blocks.buffer_matmul import buffer_matmuls
from tuner.mlir.ops.blocks.weight_words import take_weight_words
from tuner.mlir.ops.blocks.word_matmul import WordTile, multiply_words
from tuner.mlir.ops.blocks.word_products import PairProducts
from tuner.mlir.ops.blocks.words import WORDS
from tuner.mlir.ops.dialect import InPlaceOp, attribute


class PairBlockOp(InPlaceOp, name="pair_block"):
    """The transform op ``tuner.pair_block``: each ``linalg.matmul`` of buffers becomes products of pairs.

    Attributes, i64: ``tile_m`` and ``tile_n``, rows and columns of the sums in registers (default 6 and 64),
    ``lanes``, sums of a register (default 16; 8 for registers of 256 bits), ``panels_first``, 1 for the loop
    over panels outside of that over strips (default 0), ``fetches_a``, 1 for prefetches of the rows of A of
    the next strip (default 0), ``fetches_b``, 1 for prefetches of the rows of B that follow the block of K
    (default 0), ``dots``, 1 for the instruction of AVX512-BF16 (default 0: f32 arithmetic), and ``columns``
    and ``last_columns``, the sizes of a whole block and of the last one, where B and C have a dynamic number
    of columns (default: it is static). The handle (a func.func) stays valid. Silenceable failure: a matmul
    that is not of memrefs of static sizes of bf16 into f32, a tile_n that is no multiple of ``lanes``, and
    ``dots`` with other than 16 lanes.
    """

    def change(self, function: Op) -> str | None:
        """Replaces each ``linalg.matmul`` of one function by products of pairs, in place.

        Returns None, or a message about what is not allowed; then the function is unchanged.
        """
        tile, dots = WordTile.of(self), bool(attribute(self, "dots", 0))
        if isinstance(tile, str):
            return tile
        if dots and tile.lanes != WORDS:
            return f"found dots with {tile.lanes} lanes, allowed {WORDS}"
        found = buffer_matmuls(function, (attribute(self, "columns", 0), attribute(self, "last_columns", 0)))
        if isinstance(found, str):
            return f"found {found}, allowed memrefs of static sizes with adjacent elements"
        for matmul in found:
            if (matmul.element, matmul.sum_element) != ("bf16", "f32"):
                return f"found a matmul of {matmul.element} into {matmul.sum_element}, allowed bf16 into f32"
        weights = take_weight_words(function, found, tile.columns, tile.lanes)
        for matmul, weight in zip(found, weights, strict=True):
            multiply_words(matmul, tile, PairProducts(tile.lanes, dots), weight)
        return None
