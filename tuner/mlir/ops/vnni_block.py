"""``tuner.vnni_block``: matmuls of buffers of i8 into i32 become dot products of four bytes (vpdpbusd).

Takes a function whose ``linalg.matmul`` ops are on memrefs of static sizes, each one block of the schedule.
Each is replaced by loops: B is packed to panels of ``tile_n`` columns, then each strip of ``tile_m`` rows
of A is multiplied by one panel after the other, with the sums in vector registers. A is read where it lies,
but for layout tn, where strips are packed. A ``linalg.fill`` of zero of the same C goes with it: C is then
stored and not added to. Any size.

The instruction multiplies unsigned by signed bytes. So B is packed with its sign bits flipped, which adds 128
to each element, and sums start from -128 times the sum of their row of A: the result is exact, and sums wrap
around like those of i32. A B that is an argument ``tuner.weight`` comes packed and flipped
(``tuner.mlir.ops.blocks.weight_words``). The dot product is a call that the lowering replaces by the
instruction, since deallocation of buffers takes no op of unknown effects.

    linalg.fill ins(%zero : i32) outs(%c : memref<1x16xi32>)
    linalg.matmul ins(%a, %b : memref<1x64xi8>, memref<64x16xi8>) outs(%c : memref<1x16xi32>)
  becomes, after the loops that pack %b and add up the row of %a, with tile_m = 1 and tile_n = 16
    %total = scf.for %word = %c0 to %c16 step %c1 iter_args(%sums = %start) -> (vector<16xi32>) {
      %words = vector.load %packed_b[%row, %c0] : memref<16x64xi8>, vector<64xi8>
      %word_of_a = vector.load %a[%c0, %k] : memref<1x64xi8>, vector<4xi8>
      %bytes = vector.bitcast %broadcast_of_a : vector<16xi32> to vector<64xi8>
      %next = func.call @vpdpbusd_512(%sums, %words, %bytes) : ...
      scf.yield %next : vector<16xi32>
    }
    vector.store %total, %c[%i, %j] : memref<1x16xi32>, vector<16xi32>

Source: Intel 64 and IA-32 architectures optimization manual, chapter on AVX-512 VNNI.
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.ops.blocks.buffer_matmul import buffer_matmuls
from tuner.mlir.ops.blocks.weight_words import take_weight_words
from tuner.mlir.ops.blocks.word_matmul import WordTile, multiply_words
from tuner.mlir.ops.blocks.word_products import ByteProducts
from tuner.mlir.ops.dialect import InPlaceOp, attribute
from tuner.mlir.rewrite.byte_dots import declare_byte_dot


class VnniBlockOp(InPlaceOp, name="vnni_block"):
    """The transform op ``tuner.vnni_block``: each ``linalg.matmul`` of buffers becomes dot products of bytes.

    Attributes, i64: ``tile_m`` and ``tile_n``, rows and columns of the sums in registers (default 6 and 64),
    ``lanes``, sums of a register (default 16; 8 for registers of 256 bits), ``panels_first``, 1 for the loop
    over panels outside of that over strips (default 0), ``fetches_a``, 1 for prefetches of the rows of A of
    the next strip (default 0), ``fetches_b``, 1 for prefetches of the rows of B that follow the block of K
    (default 0), and ``columns`` and ``last_columns``, the sizes of a whole block and of the last one, where B
    and C have a dynamic number of columns (default: it is static). The handle (a func.func) stays valid.
    Silenceable failure: a matmul that is not of memrefs of static sizes of i8 into i32, and a tile_n that is
    no multiple of ``lanes``.
    """

    def change(self, function: Op) -> str | None:
        """Replaces each ``linalg.matmul`` of one function by packing and dot products, in place.

        Returns None, or a message about what is not allowed; then the function is unchanged.
        """
        tile = WordTile.of(self)
        if isinstance(tile, str):
            return tile
        found = buffer_matmuls(function, (attribute(self, "columns", 0), attribute(self, "last_columns", 0)))
        if isinstance(found, str):
            return f"found {found}, allowed memrefs of static sizes with adjacent elements"
        for matmul in found:
            if (matmul.element, matmul.sum_element) != ("i8", "i32"):
                return f"found a matmul of {matmul.element} into {matmul.sum_element}, allowed i8 into i32"
        if found:
            declare_byte_dot(function.parent, tile.lanes)
        weights = take_weight_words(function, found, tile.columns, tile.lanes, unsigned=True)
        for matmul, weight in zip(found, weights, strict=True):
            with ir.InsertionPoint(matmul.op), matmul.op.location:
                products = ByteProducts.of(matmul.m, tile.lanes)
            multiply_words(matmul, tile, products, weight)
        return None
