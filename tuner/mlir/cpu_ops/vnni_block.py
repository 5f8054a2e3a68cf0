"""``tuner.vnni_block`` and ``tuner.pair_block``: matmuls of i8 or bf16 buffers as products of K groups.

A K group is 32 bits: two bf16 or four i8, adjacent along K (``tuner.mlir.cpu_ops.instructions``).
"""

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op
from tuner.mlir.cpu_ops.instructions import products_of
from tuner.mlir.cpu_ops.register_block import RegisterTile, multiply_blocks
from tuner.mlir.dialect import InPlaceOp


class PairBlockOp(InPlaceOp, name="pair_block"):
    """``tuner.pair_block``: matmuls of buffers of bf16 into f32 become products of pairs.

    Takes a function whose ``linalg.matmul`` ops are on memrefs of static sizes (but for columns of B and C),
    each one block of the schedule. Each is replaced by loops over strips of ``tile_m`` rows and panels of
    ``tile_n`` columns, with all sums of a tile in vector registers. B is read as pairs of rows of K: a weight
    comes packed so (``tuner.mlir.cpu_ops.vnni_operands``), another B is packed first. A is packed for layout
    tn, and as f32 without ``dots``. A ``linalg.fill`` of C with zero is replaced too. Any size. vdpbf16ps and
    AArch64's bfdot take subnormal numbers as 0.

        linalg.fill ins(%zero : f32) outs(%c : memref<1x16xf32>)
        linalg.matmul ins(%a, %b : memref<1x64xbf16>, memref<64x16xbf16>) outs(%c : memref<1x16xf32>)
      becomes, after the loops that pack %b, with tile_m = 1, tile_n = 16 and dots = 1
        %total = scf.for %k_group = %c0 to %c32 step %c1 iter_args(%sums = %start) -> (vector<16xf32>) {
          %k_groups_of_b = vector.load %packed_b[%row, %c0] : memref<32x32xbf16>, vector<32xbf16>
          %pair = vector.load %a[%c0, %k] : memref<1x64xbf16>, vector<2xbf16>
          %pairs = vector.bitcast %broadcast : vector<16xi32> to vector<32xbf16>
          %next = x86.avx512.dot %sums, %pairs, %k_groups_of_b : vector<32xbf16> -> vector<16xf32>
          scf.yield %next : vector<16xf32>
        }
        vector.store %total, %c[%i, %j] : memref<1x16xf32>, vector<16xf32>

    Attributes, i64: those of ``tuner.vnni_block`` (``tile_m``, ``tile_n``, ``lanes``, ``panels_first``,
    ``fetches_a``, ``fetches_b``, ``columns``, ``last_columns``), and ``dots``, 1 for vdpbf16ps of AVX512-BF16
    with 16 lanes and for bfdot with 4 lanes (default 0: f32 arithmetic), or the string ``instruction`` in its
    place: vdpbf16ps, fma, bfdot or bfmmla. The handle (a func.func) stays valid. Silenceable failure: a
    matmul that is not of memrefs of static sizes, as above, of bf16 into f32, a tile_n that is not a multiple
    of ``lanes``, and an instruction without registers of so many lanes.
    """

    def change(self, function: Op) -> Refusal | None:
        tile = RegisterTile.of(self)
        if isinstance(tile, Refusal):
            return tile
        products = products_of(self, "bf16", tile.lanes)
        if isinstance(products, Refusal):
            return products
        return multiply_blocks(self, function, tile, {"bf16": products})


class VnniBlockOp(InPlaceOp, name="vnni_block"):
    """``tuner.vnni_block``: matmuls of buffers of i8 into i32 become dot products of four bytes.

    Takes a function whose ``linalg.matmul`` ops are on memrefs of static sizes (but for columns of B and C),
    each one block of the schedule. Each is replaced by loops: B is packed to panels of ``tile_n`` columns,
    then each strip of ``tile_m`` rows of A, packed for layout tn only, is multiplied by one panel after the
    other, with the sums in vector registers. A ``linalg.fill`` of C with zero before the matmul is replaced
    too. Any size.

    Registers of 128 bits, 4 lanes, are for sdot of AArch64, which multiplies signed bytes. vpdpbusd, of 8
    and 16 lanes, multiplies unsigned by signed bytes. There B is packed with its sign bits flipped, which
    adds 128 to each element, and sums start from -128 times the sum of their row of A; they wrap around. A B
    that is an argument ``tuner.weight`` comes packed and flipped (``tuner.mlir.cpu_ops.vnni_operands``). The
    dot product is a call until the lowering: deallocation of buffers takes no op of unknown effects.

    With ``words``, for AVX2 and AVX-512 without VNNI, bytes are multiplied as integers of 16 bits, two along
    K at a time, by vpmaddwd. A and B are packed extended; a B that comes packed is in pairs of bytes, which
    are extended when they are loaded.

        linalg.fill ins(%zero : i32) outs(%c : memref<1x16xi32>)
        linalg.matmul ins(%a, %b : memref<1x64xi8>, memref<64x16xi8>) outs(%c : memref<1x16xi32>)
      becomes, after the loops that pack %b and add up the row of %a, with tile_m = 1 and tile_n = 16
        %total = scf.for %k_group = %c0 to %c16 step %c1 iter_args(%sums = %start) -> (vector<16xi32>) {
          %k_groups_of_b = vector.load %packed_b[%row, %c0] : memref<16x64xi8>, vector<64xi8>
          %k_group_of_a = vector.load %a[%c0, %k] : memref<1x64xi8>, vector<4xi8>
          %bytes = vector.bitcast %broadcast_of_a : vector<16xi32> to vector<64xi8>
          %next = func.call @vpdpbusd_512(%sums, %k_groups_of_b, %bytes) : ...
          scf.yield %next : vector<16xi32>
        }
        vector.store %total, %c[%i, %j] : memref<1x16xi32>, vector<16xi32>

    Attributes, i64: ``tile_m`` and ``tile_n``, rows and columns of the sums in registers (default 6 and 64),
    ``lanes``, sums of a register (default 16; 8 for registers of 256 bits, 4 for sdot), ``panels_first``, 1
    for the loop over panels outside of that over strips (default 0), ``fetches_a``, 1 for prefetches of the
    rows of A of the next strip (default 0), ``words``, 1 for vpmaddwd (default 0), ``fetches_b``, 1 for
    prefetches of the rows of B that follow the block of K, of a weight that comes packed of the next block's
    columns (default 0), and ``columns`` and ``last_columns``, the sizes of a whole block and of the last one,
    where B and C have a dynamic number of columns (default: it is static). The string ``instruction`` is
    vpdpbusd, vpmaddwd, sdot or smmla (default: by ``lanes`` and ``words``). The handle (a func.func) stays
    valid. Silenceable failure: a matmul that is not of memrefs of static sizes, as above, of i8 into i32, a
    tile_n that is not a multiple of ``lanes``, and an instruction without registers of so many lanes.

    Source: Intel 64 and IA-32 architectures optimization manual, chapter on AVX-512 VNNI; Arm architecture
    reference manual for A-profile, SDOT (vector) and SDOT (by element).
    """

    def change(self, function: Op) -> Refusal | None:
        tile = RegisterTile.of(self)
        if isinstance(tile, Refusal):
            return tile
        products = products_of(self, "i8", tile.lanes)
        if isinstance(products, Refusal):
            return products
        return multiply_blocks(self, function, tile, {"i8": products})
