"""The transform op ``tuner.matrix_block``."""

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op
from tuner.mlir.cpu.needed_instructions import AARCH64_LANES
from tuner.mlir.cpu_ops.instructions import INSTRUCTIONS
from tuner.mlir.cpu_ops.register_block import RegisterTile, multiply_blocks
from tuner.mlir.dialect import InPlaceOp, attribute

SIDE = 2  # of the matrix of sums that a register has


class MatrixBlockOp(InPlaceOp, name="matrix_block"):
    """``tuner.matrix_block``: matmuls of buffers of i8 or bf16 by products of small matrices (AArch64).

    Takes a function whose ``linalg.matmul`` ops are on memrefs of static sizes (but for columns of B and C),
    each one block of the schedule. Each is replaced by loops: A is packed to panels of ``tile_m`` rows and B
    to panels of ``tile_n`` columns, then panels are multiplied, with the sums in vector registers. smmla
    multiplies 2 rows by 2 columns of 8 bytes, bfmmla of 4 bf16, so a register has 2 x 2 sums; after all of K
    two registers become two rows. A ``linalg.fill`` of C with zero before the matmul is replaced too. A B
    that is an argument ``tuner.weight`` comes packed (``tuner.mlir.cpu_ops.vnni_operands``). Any size. bfmmla
    takes subnormal numbers as 0. The product is a call until the lowering.

        linalg.fill ins(%zero : i32) outs(%c : memref<2x4xi32>)
        linalg.matmul ins(%a, %b : memref<2x64xi8>, memref<64x4xi8>) outs(%c : memref<2x4xi32>)
      becomes, after the loops that pack %a and %b, with tile_m = 2, tile_n = 4 and unroll = 1
        %sums:2 = scf.for %k_group = %c0 to %c8 step %c1 iter_args(%s0 = %start, %s1 = %start) -> ... {
          %rows = vector.load %packed_a[%row_of_a, %c0] : memref<8x16xi8>, vector<16xi8>
          %left = vector.load %packed_b[%row_of_b, %c0] : memref<8x32xi8>, vector<16xi8>
          %next = func.call @smmla_128(%s0, %rows, %left) : ...
          scf.yield %next, %other : vector<4xi32>, vector<4xi32>
        }
        %top = vector.shuffle %sums#0, %sums#1 [0, 1, 4, 5] : vector<4xi32>, vector<4xi32>
        vector.store %top, %c[%i, %j] : memref<2x4xi32>, vector<4xi32>

    Attributes, i64: ``tile_m`` and ``tile_n``, rows and columns of the sums in registers (default 8 and 8),
    ``unroll``, products of a register of sums in one iteration (default 4), ``panels_first``, 1 for the loop
    over panels of B outside of that over panels of A (default 0), and ``columns`` and ``last_columns``, the
    sizes of a whole block and of the last one, where B and C have a dynamic number of columns (default: it is
    static). The handle (a func.func) stays valid. Silenceable failure: a matmul that is not of memrefs of
    static sizes, as above, of i8 into i32 or bf16 into f32, a ``tile_m`` that is odd and a ``tile_n`` that is
    not a multiple of 4.

    Source: Arm architecture reference manual for A-profile, SMMLA (vector) and BFMMLA.
    """

    def change(self, function: Op) -> Refusal | None:
        tile = RegisterTile(
            rows=attribute(self, "tile_m", 8),
            columns=attribute(self, "tile_n", 8),
            lanes=AARCH64_LANES,
            panels_first=bool(attribute(self, "panels_first", 0)),
            unroll=attribute(self, "unroll", 4),
        )
        if min(tile.rows, tile.columns, tile.unroll) < 1 or tile.rows % SIDE or tile.columns % AARCH64_LANES:
            found = f"{tile.rows} x {tile.columns} sums, unroll {tile.unroll}"
            return Refusal(f"found {found}, allowed an even number of rows and columns by {AARCH64_LANES}")
        products = {"i8": INSTRUCTIONS["smmla"](tile.lanes), "bf16": INSTRUCTIONS["bfmmla"](tile.lanes)}
        return multiply_blocks(self, function, tile, products)
