"""The transform op ``tuner.amx_block``."""

from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.cpu_ops import amx_packing, amx_tiles
from tuner.mlir.cpu_ops.buffer_matmul import BufferMatmul, buffer_matmuls
from tuner.mlir.cpu_ops.vnni_operands import KGroupWeights, drop_views, take_k_group_weights
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
MULTIPLY = {"bf16": "x86.amx.tile_mulf", "i8": "x86.amx.tile_muli"}
ADD = {"f32": "arith.addf", "i32": "arith.addi"}
REGISTERS = 8  # tile registers of a processor with AMX


class AmxBlockOp(InPlaceOp, name="amx_block"):
    """``tuner.amx_block``: matmuls of buffers become AMX tiles: bf16 into f32, or i8 into i32.

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
    next panel of a weight to the second level of cache (default 0). The handle (a func.func) stays valid.
    Silenceable failure: a matmul that is not of memrefs of static sizes of bf16 into f32 or of i8 into i32,
    too many tiles, or an A that has to be packed.
    """

    def change(self, function: Op) -> Refusal | None:
        tiles = (attribute(self, "tiles_m", 2), attribute(self, "tiles_n", 2))
        packs_a = bool(attribute(self, "pack_a", 1))
        needed = tiles[0] * tiles[1] + tiles[0] + 1  # the sums, a column of A, one tile of B
        if min(tiles) < 1 or needed > REGISTERS:
            return Refusal(
                f"found {tiles[0]} x {tiles[1]} tiles, which need {needed} registers, allowed {REGISTERS}"
            )
        matmuls = buffer_matmuls(self, function, SUMS)
        if isinstance(matmuls, Refusal):
            return matmuls
        for matmul in matmuls:
            why_not = _why_not(matmul, packs_a)
            if why_not is not None:
                return why_not
        weights = take_k_group_weights(function, matmuls, K_GROUPS * tiles[1])
        for matmul, k_groups in zip(matmuls, weights, strict=True):
            b = matmul.b
            with ir.InsertionPoint(matmul.op), matmul.op.location:
                _AmxMatmul.of(matmul, *tiles, packs_a, k_groups, bool(attribute(self, "ahead", 0))).build()
            matmul.erase()
            drop_views(k_groups, b)
        return None


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
    a: KGroupSource
    packed_a: amx_tiles.PackedTiles | None  # None: A is read where it lies
    packed_b: amx_tiles.PackedTiles | amx_tiles.WeightTiles
    scratch: Value | None  # tiles at the edge of C are stored here first; None: C has whole tiles only
    fetches: bool  # the next panel of a weight

    @classmethod
    def of(
        cls,
        matmul: BufferMatmul,
        tiles_m: int,
        tiles_n: int,
        packs_a: bool,
        weight: KGroupWeights | None,
        fetches: bool,
    ) -> "_AmxMatmul":
        a = KGroupSource(matmul.a, matmul.layout != "tn")
        b = KGroupSource(matmul.b, matmul.layout == "nt")
        columns = matmul.columns()
        k_steps = -(-matmul.k // a.depth)
        panels = columns.steps(K_GROUPS * tiles_n)
        tiles = None if weight else amx_tiles.PackedTiles.of(b, panels, k_steps, tiles_n)
        packed_a = amx_tiles.PackedTiles.of(a, 1, k_steps, tiles_m) if packs_a else None
        has_edge = matmul.m % K_GROUPS or columns.rests(K_GROUPS)
        element = ir.MemRefType(matmul.c.type).element_type
        if has_edge:
            scratch = allocated((K_GROUPS * tiles_m, K_GROUPS * tiles_n), element)
        else:
            scratch = None
        if tiles is not None:
            amx_packing.pack_b_to_tiles(b, columns, matmul.k, tiles_n, tiles.store_b)
        packed_b = amx_tiles.WeightTiles(weight, a.depth) if weight else tiles
        assert packed_b is not None
        return cls(matmul, columns, tiles_m, tiles_n, a, packed_a, packed_b, scratch, fetches)

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
        if self.packed_a is not None:
            amx_packing.pack_a_to_tiles(self.a, first, rows, self.matmul.k, self.packed_a.store_a)
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
            of_a = [self._load_a(first, i, step) for i in range(len(sums) // across)]
            row = self.packed_b.row(panel, step)
            if self.fetches and isinstance(self.packed_b, amx_tiles.WeightTiles):
                strips = BlockExtent(self.matmul.m).steps(self.tiles_m * K_GROUPS)
                self.packed_b.fetch(total(panel, index(1)), step, strip, -(-K_GROUPS // strips), self.tiles_n)
            name = MULTIPLY[self.matmul.element]
            totals = list(sums)
            for j in range(across):  # a tile of B is used up before the next is loaded
                of_b = self.packed_b.load(self._kind, row, j)
                for number in range(j, len(sums), across):
                    totals[number] = value(
                        name, self._accumulator_kind, of_a[number // across], of_b, sums[number]
                    )
            return totals

        totals = loop(0, self.packed_b.steps, multiply, list(map(self._start, positions)))
        for number, (position, tile) in enumerate(zip(positions, totals, strict=True)):
            if position.is_whole:
                amx_tiles.tile_store(tile, self.matmul.c, position.row, position.column)
            else:
                assert self.scratch is not None
                down, right = (index(K_GROUPS * position) for position in divmod(number, across))
                amx_tiles.tile_store(tile, self.scratch, down, right)
        for begin in range(0, len(positions), across):  # rows of tiles
            edge = [
                (j, tile_place)
                for j, tile_place in enumerate(positions[begin : begin + across])
                if not tile_place.is_whole
            ]
            self._copy_edge(K_GROUPS * (begin // across), edge)

    @property
    def _kind(self) -> Type:
        return ir.Type.parse(f"!x86.amx.tile<{K_GROUPS}x{self.a.depth}x{self.matmul.element}>")

    @property
    def _accumulator_kind(self) -> Type:
        return ir.Type.parse(f"!x86.amx.tile<{K_GROUPS}x{K_GROUPS}x{self.matmul.accumulator_element}>")

    def _load_a(self, first: Value, tile: int, step: Value) -> Value:
        if self.packed_a is None:
            row = plus(first, K_GROUPS * tile)
            column = times(step, self.a.depth)
            return amx_tiles.tile_load(self._kind, self.a.buffer, row, column)
        row = plus(self.packed_a.row(index(0), step), K_GROUPS * tile)
        return amx_tiles.tile_load(self._kind, self.packed_a.memory, row, index(0))

    def _start(self, position: "_TilePosition") -> Value:
        if self.matmul.fill is None and position.is_whole:
            return amx_tiles.tile_load(self._accumulator_kind, self.matmul.c, position.row, position.column)
        return value("x86.amx.tile_zero", self._accumulator_kind)

    def _copy_edge(self, down: int, edge: list[tuple[int, "_TilePosition"]]) -> None:
        """Creates the copies of the parts of tiles that lie in C, from row ``down`` of ``scratch`` on."""

        def copy(row: Value) -> None:
            for number, position in edge:
                type_ = ir.VectorType.get([K_GROUPS], ir.MemRefType(self.matmul.c.type).element_type)
                mask = constant_mask(position.columns, K_GROUPS)
                sums = value("vector.load", type_, self.scratch, plus(row, down), index(K_GROUPS * number))
                target = (self.matmul.c, total(position.row, row), position.column)
                if self.matmul.fill is None:
                    before = value("vector.maskedload", type_, *target, mask, zero(type_))
                    sums = value(ADD[self.matmul.accumulator_element], type_, sums, before)
                create("vector.maskedstore", [], [*target, mask, sums])

        if edge:
            rolled_loop(0, edge[0][1].rows, copy)


@dataclass(frozen=True, eq=False)
class _TilePosition:
    row: Value
    column: Value
    rows: int
    columns: int

    @property
    def is_whole(self) -> bool:
        return self.rows == self.columns == K_GROUPS
