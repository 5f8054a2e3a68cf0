"""The transform op ``tuner.matrix_block``."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.cpu_ops.buffer_matmul import BufferMatmul, buffer_matmuls
from tuner.mlir.cpu_ops.vector_lanes import store_lanes
from tuner.mlir.cpu_ops.vnni_operands import KGroupWeights, packed_k_groups
from tuner.mlir.cpu_ops.vnni_packing import BlockExtent, KGroupSource, in_steps
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import index, loop, plus, times, value, zero
from tuner.mlir.ir.dot_products import BFMMLA, SMMLA, DotProduct, declare_dot_product, dot_product

LANES = 4  # sums of a register, 2 x 2
SIDE = 2  # of the matrix of sums that a register has
K_GROUP_BITS = 64  # of a row of A or a column of B that one product takes
PRODUCTS = {"i8": SMMLA, "bf16": BFMMLA}  # by element of A and B
SUMS = {element: dot.sums for element, dot in PRODUCTS.items()}
TOP = (0, 1, 4, 5)  # lanes of two adjacent matrices that are their first row
BOTTOM = (2, 3, 6, 7)


class MatrixBlockOp(InPlaceOp, name="matrix_block"):
    """``tuner.matrix_block``: matmuls of buffers of i8 or bf16 by products of small matrices (AArch64).

    Takes a function whose ``linalg.matmul`` ops are on memrefs of static sizes (but for columns of B and C),
    each one block of the schedule. Each is replaced by loops: A is packed to panels of ``tile_m`` rows and B
    to panels of ``tile_n`` columns, then panels are multiplied, with the sums in vector registers. smmla
    multiplies 2 rows by 2 columns of 8 bytes, bfmmla of 4 bf16, so a register has 2 x 2 sums; after all of K
    two registers become two rows. A ``linalg.fill`` of C with zero before the matmul is replaced too. Any
    size. bfmmla takes subnormal numbers as 0. The product is a call until the lowering.

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
        tile = _MatrixTile(
            attribute(self, "tile_m", 8),
            attribute(self, "tile_n", 8),
            attribute(self, "unroll", 4),
            bool(attribute(self, "panels_first", 0)),
        )
        if min(tile.rows, tile.columns, tile.unroll) < 1 or tile.rows % SIDE or tile.columns % LANES:
            found = f"{tile.rows} x {tile.columns} sums, unroll {tile.unroll}"
            return Refusal(f"found {found}, allowed an even number of rows and columns by {LANES}")
        matmuls = buffer_matmuls(self, function, SUMS)
        if isinstance(matmuls, Refusal):
            return matmuls
        for matmul in matmuls:
            declare_dot_product(function.parent, PRODUCTS[matmul.element], LANES)
            with ir.InsertionPoint(matmul.op), matmul.op.location:
                _MatrixMatmul.of(matmul, tile).build()
            matmul.erase()
        return None


@dataclass(frozen=True)
class _MatrixTile:
    """The knobs of ``tuner.matrix_block``: the tile of C in registers, unrolling, and the order of loops."""

    rows: int  # of sums in registers, and of a panel of A
    columns: int  # also of a panel of B
    unroll: int
    panels_first: bool


@dataclass(frozen=True, eq=False)
class _MatrixMatmul:
    """One matmul with its packed operands; code is created at the current insertion point."""

    matmul: BufferMatmul
    columns: BlockExtent  # of C
    tile: _MatrixTile
    dot: DotProduct
    a: KGroupWeights
    b: KGroupWeights

    @classmethod
    def of(cls, matmul: BufferMatmul, tile: _MatrixTile) -> "_MatrixMatmul":
        rows = BlockExtent(matmul.m)
        columns = matmul.columns()
        of_a = KGroupSource(matmul.a, matmul.layout != "tn", SIDE, K_GROUP_BITS)
        of_b = KGroupSource(matmul.b, matmul.layout == "nt", SIDE, K_GROUP_BITS)
        a = packed_k_groups(of_a, rows, matmul.k, tile.rows // SIDE, _as_it_is)
        b = packed_k_groups(of_b, columns, matmul.k, tile.columns // SIDE, _as_it_is)
        return cls(matmul, columns, tile, PRODUCTS[matmul.element], a, b)

    def build(self) -> None:
        if self.tile.panels_first:
            self._over_columns(
                lambda panel, columns: self._over_rows(
                    lambda strip, rows: self._tile(strip, rows, panel, columns)
                )
            )
        else:
            self._over_rows(
                lambda strip, rows: self._over_columns(
                    lambda panel, columns: self._tile(strip, rows, panel, columns)
                )
            )

    def _over_rows(self, body: Callable[[Value, int], None]) -> None:
        in_steps(BlockExtent(self.matmul.m), self.tile.rows, body)

    def _over_columns(self, body: Callable[[Value, int], None]) -> None:
        in_steps(self.columns, self.tile.columns, body)

    def _tile(self, strip: Value, rows: int, panel: Value, columns: int) -> None:
        down = -(-rows // SIDE)
        across = -(-columns // SIDE)
        k_groups = self.b.k_groups
        unroll = self.tile.unroll
        whole = k_groups // unroll

        def multiply(k_group: Value, *sums: Value) -> list[Value]:
            of_a = self._load(self.a, strip, k_group, down)
            of_b = self._load(self.b, panel, k_group, across)
            pairs = ((left, right) for left in of_a for right in of_b)
            return [
                dot_product(self.dot, before, left, right)
                for before, (left, right) in zip(sums, pairs, strict=True)
            ]

        def multiply_all(step: Value, *sums: Value) -> list[Value]:
            after = list(sums)
            for number in range(unroll):
                after = multiply(plus(times(step, unroll), number), *after)
            return after

        sums = [zero(self.dot.sums_type(LANES))] * (down * across)
        if whole:
            sums = loop(0, whole, multiply_all, sums)
        if k_groups % unroll:
            sums = loop(whole * unroll, k_groups, multiply, sums)
        for row in range(rows):
            first = row // SIDE * across
            at = plus(times(strip, self.tile.rows), row)
            self._store_row(sums[first : first + across], row % SIDE, at, panel, columns)

    def _load(self, packed: KGroupWeights, panel: Value, k_group: Value, vectors: int) -> list[Value]:
        row = packed.row(panel, k_group)
        type_ = self.dot.factors_type(LANES)
        width = ir.VectorType(type_).shape[0]
        return [value("vector.load", type_, packed.memory, row, index(width * i)) for i in range(vectors)]

    def _store_row(self, matrices: list[Value], half: int, row: Value, panel: Value, columns: int) -> None:
        """Creates the stores of one row of adjacent 2 x 2 matrices; ``half``: 0 for their first row, or 1."""
        column = times(panel, self.tile.columns)
        mask = ir.DenseI64ArrayAttr.get(BOTTOM if half else TOP)
        for first in range(0, columns, LANES):
            left = matrices[first // SIDE]
            is_last = first // SIDE + 1 == len(matrices)
            right = left if is_last else matrices[first // SIDE + 1]
            line = value("vector.shuffle", left.type, left, right, mask=mask)
            width = min(columns - first, LANES)
            adds = self.matmul.fill is None
            store_lanes(line, self.matmul.c, (row, plus(column, first)), width, adds=adds)


def _as_it_is(elements: Value) -> Value:
    return elements
