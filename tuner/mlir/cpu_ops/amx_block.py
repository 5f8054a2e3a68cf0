"""The transform op ``tuner.amx_block``."""

from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.cpu_ops import amx_tiles
from tuner.mlir.cpu_ops.amx_planes import PLANES, PlaneProducts
from tuner.mlir.cpu_ops.amx_products import ElementProducts, TilePanel, TileProducts, accumulator_type
from tuner.mlir.cpu_ops.amx_sums import BlockSums
from tuner.mlir.cpu_ops.buffer_matmul import BufferMatmul, buffer_matmuls
from tuner.mlir.cpu_ops.vnni_operands import drop_views, take_k_group_weights
from tuner.mlir.cpu_ops.vnni_packing import (
    K_GROUPS,
    BlockExtent,
    KGroupSource,
    allocated,
    constant_mask,
    in_steps,
)
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import (
    branch,
    create,
    for_each,
    index,
    is_less,
    loop,
    plus,
    rolled_loop,
    times,
    total,
    value,
    zero,
)

SUMS = {"bf16": "f32", "i8": "i32"}  # type of A and B -> type of C
SUMS_OF_PLANES = {"f32": "f32"}  # where A and B are split into planes of bf16
ADD = {"f32": "arith.addf", "i32": "arith.addi"}
REGISTERS = 8  # tile registers of a processor with AMX


class AmxBlockOp(InPlaceOp, name="amx_block"):
    """``tuner.amx_block``: matmuls of buffers become AMX tiles: bf16 or f32 into f32, or i8 into i32.

    Takes a function whose ``linalg.matmul`` ops are on memrefs of static sizes, each one block of the
    schedule. Each is replaced by loops: B is packed to panels, then each strip of rows of A is packed and
    multiplied by one panel after the other, 16 * ``tiles_m`` rows by 16 * ``tiles_n`` columns at a time, with
    the sums in tile registers. A ``linalg.fill`` of C with zero before the matmul is replaced too. Any size:
    K is padded by zeros; rows and columns after the last are computed and not stored. A B that is an argument
    ``tuner.weight`` comes packed (``tuner.mlir.cpu_ops.vnni_operands``).

        linalg.fill ins(%zero : f32) outs(%c : memref<32x32xf32>)
        linalg.matmul ins(%a, %b : memref<32x64xbf16>, memref<64x32xbf16>) outs(%c : memref<32x32xf32>)
      becomes, after the loops that pack %a and %b, with tiles_m = tiles_n = 1, for each tile of C
        %sums = x86.amx.tile_zero : !x86.amx.tile<16x16xf32>
        %total = scf.for %kt = %c0 to %c2 step %c1 iter_args(%acc = %sums) -> (!x86.amx.tile<16x16xf32>) {
          %ta = x86.amx.tile_load %packed_a[%ra, %c0] : memref<32x32xbf16> into !x86.amx.tile<16x32xbf16>
          %tb = x86.amx.tile_load %packed_b[%rb, %c0] : memref<64x32xbf16> into !x86.amx.tile<16x32xbf16>
          %next = x86.amx.tile_mulf %ta, %tb, %acc : ...
          scf.yield %next : !x86.amx.tile<16x16xf32>
        }
        x86.amx.tile_store %c[%i, %j], %total : memref<32x32xf32>, !x86.amx.tile<16x16xf32>

    Source: Intel 64 and IA-32 architectures optimization manual, chapter 20.
    Attributes, i64: ``tiles_m`` and ``tiles_n``, the sums in tile registers (default 2 and 2), and
    ``pack_a`` (default 1; 0: tiles of A are loaded from where A lies, which needs rows by 16, whole tiles of
    K and A stored by rows); ``columns`` and ``last_columns``, the sizes of a whole block and of the last
    one, where B and C have a dynamic number of columns (default: it is static); ``ahead``, 1 to fetch the
    next panel of a weight to the second level of cache (default 0); ``planes``, 3 where A and B are f32: each
    is split into three planes of bf16, and six products of tiles make up a product
    (``tuner.mlir.cpu_ops.amx_planes``; default 0), and a block with sums that are not finite is computed
    again by multiply-adds. The handle (a func.func) stays valid.
    Silenceable failure: a matmul that is not of memrefs of static sizes of bf16 into f32, of i8 into i32 or,
    with planes, of f32 into f32, too many tiles, or an A that has to be packed with ``pack_a`` 0.
    """

    def change(self, function: Op) -> Refusal | None:
        tiles = (attribute(self, "tiles_m", 2), attribute(self, "tiles_n", 2))
        packs_a = bool(attribute(self, "pack_a", 1))
        planes = attribute(self, "planes", 0)
        needed = tiles[0] * tiles[1] + tiles[0] + 1  # the sums, a column of A, one tile of B
        if min(tiles) < 1 or needed > REGISTERS:
            return Refusal(
                f"found {tiles[0]} x {tiles[1]} tiles, which need {needed} registers, allowed {REGISTERS}"
            )
        matmuls = buffer_matmuls(self, function, SUMS_OF_PLANES if planes else SUMS)
        if isinstance(matmuls, Refusal):
            return matmuls
        if planes not in (0, PLANES):
            return Refusal(f"found planes = {planes}, allowed 0 or {PLANES}")
        if planes and not packs_a:
            return Refusal("found pack_a = 0 with planes, allowed 1: planes are made when A is packed")
        if planes:
            self._multiply_planes(matmuls, tiles)
            return None
        for matmul in matmuls:
            why_not = _why_not(matmul, packs_a)
            if why_not is not None:
                return why_not
        self._multiply_elements(function, matmuls, tiles, packs_a)
        return None

    def _multiply_planes(self, matmuls: list[BufferMatmul], tiles: tuple[int, int]) -> None:
        for matmul in matmuls:
            with ir.InsertionPoint(matmul.op), matmul.op.location:
                columns = matmul.columns()
                products = PlaneProducts.of(matmul, columns, tiles)
                _AmxMatmul.of(matmul, columns, tiles, products).build()
            matmul.erase()

    def _multiply_elements(
        self, function: Op, matmuls: list[BufferMatmul], tiles: tuple[int, int], packs_a: bool
    ) -> None:
        fetches = bool(attribute(self, "ahead", 0))
        weights = take_k_group_weights(function, matmuls, K_GROUPS * tiles[1])
        for matmul, k_groups in zip(matmuls, weights, strict=True):
            b = matmul.b
            with ir.InsertionPoint(matmul.op), matmul.op.location:
                columns = matmul.columns()
                products = ElementProducts.of(matmul, columns, tiles, packs_a, k_groups, fetches)
                _AmxMatmul.of(matmul, columns, tiles, products).build()
            matmul.erase()
            drop_views(k_groups, b)


def _why_not(matmul: BufferMatmul, packs_a: bool) -> Refusal | None:
    depth = K_GROUPS * KGroupSource(matmul.a, is_along_k=True).per_k_group
    if packs_a or (matmul.layout != "tn" and matmul.m % K_GROUPS == 0 and matmul.k % depth == 0):
        return None
    return Refusal(
        f"found pack_a = 0 for {matmul.m} rows and {matmul.k} of K, layout {matmul.layout}; "
        f"allowed multiples of {K_GROUPS} and {depth}, layout nn or nt"
    )


@dataclass(frozen=True, eq=False)
class _AmxMatmul:
    """One matmul with its packed buffers; its methods create its code at the current insertion point."""

    matmul: BufferMatmul
    columns: BlockExtent  # of C
    tiles_m: int
    tiles_n: int
    products: TileProducts
    scratch: Value | None  # tiles at the edge of C are stored here first; None: C has whole tiles only

    @classmethod
    def of(
        cls, matmul: BufferMatmul, columns: BlockExtent, tiles: tuple[int, int], products: TileProducts
    ) -> "_AmxMatmul":
        has_edge = matmul.m % K_GROUPS or columns.rests(K_GROUPS)
        scratch = None
        if has_edge or (products.can_be_nan and matmul.fill is None):
            element = ir.MemRefType(matmul.c.type).element_type
            scratch = allocated((K_GROUPS * tiles[0], K_GROUPS * tiles[1]), element)
        products.pack_b()
        return cls(matmul, columns, *tiles, products, scratch)

    def build(self) -> None:
        """Creates the loops over strips of rows of A; a narrower last strip shares the code that packs A."""
        height = self.tiles_m * K_GROUPS
        m = self.matmul.m
        if m <= height or m % height == 0:
            in_steps(BlockExtent(m), height, lambda number, rows: self._strip(number, BlockExtent(rows)))
            return

        def strip(number: Value) -> None:
            self._strip(number, BlockExtent(height, m % height, BlockExtent(m).left(height, number)))

        for_each(0, BlockExtent(m).covering(height), strip)

    def _strip(self, number: Value, rows: BlockExtent) -> None:
        first = times(number, self.tiles_m * K_GROUPS)
        self.products.pack_a(first, rows)
        if rows.size is None:
            self._panels(number, first, rows.whole)
            return
        is_last = is_less(rows.size, index(rows.whole))
        branch(
            is_last,
            lambda: self._panels(number, first, rows.last),
            lambda: self._panels(number, first, rows.whole),
        )

    def _panels(self, number: Value, first: Value, rows: int) -> None:
        in_steps(
            self.columns,
            self.tiles_n * K_GROUPS,
            lambda panel, columns: self._tiles(number, first, rows, panel, columns),
        )

    def _tiles(self, strip: Value, first: Value, rows: int, panel: Value, columns: int) -> None:
        column = times(panel, self.tiles_n * K_GROUPS)
        positions = [
            _TilePosition(
                plus(first, K_GROUPS * i),
                plus(column, K_GROUPS * j),
                min(rows - K_GROUPS * i, K_GROUPS),
                min(columns - K_GROUPS * j, K_GROUPS),
            )
            for i in range(-(-rows // K_GROUPS))
            for j in range(-(-columns // K_GROUPS))
        ]
        across = -(-columns // K_GROUPS)

        def multiply(step: Value, *sums: Value) -> list[Value]:
            return self.products.multiply(TilePanel(strip, first, panel, step), list(sums), across)

        totals = loop(0, self.products.steps, multiply, list(map(self._start, positions)))
        is_in_scratch = [not position.is_whole for position in positions]
        if self.products.can_be_nan and (any(is_in_scratch) or self.matmul.fill is None):
            is_in_scratch = [True] * len(positions)  # C is added to sums that are right
        for tile_index, (position, tile) in enumerate(zip(positions, totals, strict=True)):
            if not is_in_scratch[tile_index]:
                amx_tiles.tile_store(tile, self.matmul.c, position.row, position.column)
            else:
                assert self.scratch is not None
                down, right = (index(K_GROUPS * position) for position in divmod(tile_index, across))
                amx_tiles.tile_store(tile, self.scratch, down, right)
        if self.products.can_be_nan:
            self._block_sums(positions, rows, columns, is_in_scratch[0]).recompute_if_special()
        for begin in range(0, len(positions), across):  # rows of tiles
            staged = [(j, positions[begin + j]) for j in range(across) if is_in_scratch[begin + j]]
            self._copy_from_scratch(K_GROUPS * (begin // across), staged)

    def _block_sums(
        self, positions: list["_TilePosition"], rows: int, columns: int, is_in_scratch: bool
    ) -> BlockSums:
        corner = (positions[0].row, positions[0].column)
        if self.scratch is None or not is_in_scratch:
            return BlockSums(self.matmul, corner, rows, columns, self.matmul.c, corner)
        return BlockSums(self.matmul, corner, rows, columns, self.scratch, (index(0), index(0)))

    @property
    def _accumulator_type(self) -> Type:
        return accumulator_type(self.matmul)

    def _start(self, position: "_TilePosition") -> Value:
        if self.matmul.fill is None and position.is_whole and not self.products.can_be_nan:
            return amx_tiles.tile_load(self._accumulator_type, self.matmul.c, position.row, position.column)
        return value("x86.amx.tile_zero", self._accumulator_type)

    def _copy_from_scratch(self, down: int, staged: list[tuple[int, "_TilePosition"]]) -> None:
        """Creates the copies of the parts of tiles that lie in C, from row ``down`` of ``scratch`` on."""

        def copy(row: Value) -> None:
            for number, position in staged:
                type_ = ir.VectorType.get([K_GROUPS], ir.MemRefType(self.matmul.c.type).element_type)
                mask = constant_mask(position.columns, K_GROUPS)
                sums = value("vector.load", type_, self.scratch, plus(row, down), index(K_GROUPS * number))
                target = (self.matmul.c, total(position.row, row), position.column)
                if self.matmul.fill is None:
                    before = value("vector.maskedload", type_, *target, mask, zero(type_))
                    sums = value(ADD[self.matmul.accumulator_element], type_, sums, before)
                create("vector.maskedstore", [], [*target, mask, sums])

        if staged:
            rolled_loop(0, staged[0][1].rows, copy)


@dataclass(frozen=True, eq=False)
class _TilePosition:
    """A tile of sums in C: its first row and column, and how many rows and columns of C it covers."""

    row: Value
    column: Value
    rows: int
    columns: int

    @property
    def is_whole(self) -> bool:
        return self.rows == self.columns == K_GROUPS
