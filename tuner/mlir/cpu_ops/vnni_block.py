"""``tuner.vnni_block`` and ``tuner.pair_block``: matmuls of i8 or bf16 buffers as products of K groups.

A K group is 32 bits: ``per_k_group`` elements, four i8 or two bf16, adjacent along K. ``depth`` is the number
of elements in one vector of K groups.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.cpu_ops import vnni_packing
from tuner.mlir.cpu_ops.buffer_matmul import BufferMatmul, buffer_matmuls
from tuner.mlir.cpu_ops.vector_lanes import multiply_add, store_lanes
from tuner.mlir.cpu_ops.vnni_operands import KGroupWeights, drop_views, packed_k_groups, take_k_group_weights
from tuner.mlir.cpu_ops.vnni_rows import KGroupRows, KGroupStrip
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import create, fetch, index, loop, plus, splat, times, total, value, zero
from tuner.mlir.ir.dot_products import (
    BFDOT,
    SDOT,
    VPDPBUSD,
    VPMADDWD,
    DotProduct,
    declare_dot_product,
    dot_product,
)

SIGN = -128  # of a signed byte: the bit that is flipped
AARCH64_LANES = 4  # sums of a register of 128 bits


class KGroupProducts(Protocol):
    """How K groups of A and B are multiplied, and what the sums of a row of C start from.

    A K group is 32 bits: two bf16 or four i8 that are adjacent along K; or 16 bits, two i8.
    """

    @property
    def k_group_bits(self) -> int: ...

    def prepare(self, strip: KGroupStrip) -> None:
        """Creates the code that must run for a strip of rows of A before ``start`` is used for these rows."""
        ...

    def start(self, strip: KGroupStrip, row: int) -> Value:
        """Creates the initial accumulators of one row of C: a vector of ``lanes`` 32-bit sums.

        ``row``: index within the strip, from 0.
        """
        ...

    def of_b(self, elements: Value) -> Value:
        """Creates the vector to pack in place of ``elements``, a vector of K groups of B.

        A K group is 32 bits, two bf16 or four i8 that are adjacent along K, or 16 bits, two i8.
        """
        ...

    @property
    def has_halves(self) -> bool:
        """Returns whether pairs of bf16 of A come as two vectors of f32: the first and the second numbers."""
        ...

    @property
    def reads_lanes(self) -> bool:
        """Returns whether A is read as whole registers of K groups, of which a product takes one lane.

        A K group is 32 bits: two bf16 or four i8 that are adjacent along K.
        """
        ...

    def after(self, before: Value, of_a: list[Value], k_groups_of_b: Value) -> Value:
        """Creates ``before`` plus the products of K groups of A and of B; returns the sums.

        ``of_a``: a vector of K groups, or of halves two. All are vectors of ``lanes`` times 32 bits.
        """
        ...


@dataclass(frozen=True, eq=False)
class ByteProducts:
    """Dot products of four signed bytes of A and four bytes of B, by vpdpbusd.

    B is packed with 128 added to each byte, so that it is unsigned; ``starts`` has, for each row of A, -128
    times the sum of the row, from which the row's sums start.
    """

    lanes: int
    starts: Value  # memref<rows of A x i32>
    k_group_bits = vnni_packing.K_GROUP_BITS
    has_halves = False
    reads_lanes = False

    @classmethod
    def of(cls, rows: int, lanes: int) -> "ByteProducts":
        return cls(lanes, vnni_packing.allocated((rows,), vnni_packing.k_group_type()))

    def prepare(self, strip: KGroupStrip) -> None:
        for row, byte_sum in enumerate(strip.byte_sums()):
            start = value("arith.muli", byte_sum.type, byte_sum, splat(byte_sum.type, SIGN))
            create("memref.store", [], [start, self.starts, plus(strip.first, row)])

    def start(self, strip: KGroupStrip, row: int) -> Value:
        number = value("memref.load", vnni_packing.k_group_type(), self.starts, plus(strip.first, row))
        return value("vector.broadcast", vnni_packing.k_groups_type(self.lanes), number)

    def of_b(self, elements: Value) -> Value:
        return value("arith.xori", elements.type, elements, splat(elements.type, SIGN))

    def after(self, before: Value, of_a: list[Value], k_groups_of_b: Value) -> Value:
        return dot_product(VPDPBUSD, before, k_groups_of_b, of_a[0])


@dataclass(frozen=True)
class LaneProducts:
    """Dot products by an instruction that takes one lane of a register of A, such as sdot of AArch64.

    The numbers of A and B are multiplied as they are.
    """

    dot: DotProduct
    lanes: int
    k_group_bits = vnni_packing.K_GROUP_BITS
    has_halves = False
    reads_lanes = True

    def prepare(self, strip: KGroupStrip) -> None:
        """Creates nothing: sums start from 0."""

    def start(self, _strip: KGroupStrip, _row: int) -> Value:
        return zero(self.dot.sums_type(self.lanes))

    def of_b(self, elements: Value) -> Value:
        return elements

    def after(self, before: Value, of_a: list[Value], k_groups_of_b: Value) -> Value:
        return dot_product(self.dot, before, k_groups_of_b, of_a[0])


@dataclass(frozen=True)
class WordProducts:
    """Products of pairs of bytes that are extended to 16 bits, by vpmaddwd: exact, unlike vpmaddubsw.

    A is packed extended, and so is B. Bytes of a B that comes packed are extended when they are loaded, once
    for all rows of a tile.
    """

    lanes: int
    k_group_bits = vnni_packing.HALF_BITS
    has_halves = False
    reads_lanes = False

    def prepare(self, strip: KGroupStrip) -> None:
        """Creates nothing: sums start from 0."""

    def start(self, _strip: KGroupStrip, _row: int) -> Value:
        return zero(VPMADDWD.sums_type(self.lanes))

    def of_b(self, elements: Value) -> Value:
        return vnni_packing.as_words(elements)

    def after(self, before: Value, of_a: list[Value], k_groups_of_b: Value) -> Value:
        return dot_product(VPMADDWD, before, of_a[0], vnni_packing.as_words(k_groups_of_b))


@dataclass(frozen=True)
class PairProducts:
    """Products of pairs of bf16, summed in f32: with ``dots`` by vdpbf16ps, else by two multiply-adds."""

    lanes: int
    dots: bool
    k_group_bits = vnni_packing.K_GROUP_BITS
    reads_lanes = False

    def prepare(self, strip: KGroupStrip) -> None:
        """Creates nothing: sums start from 0."""

    def start(self, _strip: KGroupStrip, _row: int) -> Value:
        return zero(self._sums)

    def of_b(self, elements: Value) -> Value:
        return elements

    @property
    def has_halves(self) -> bool:
        return not self.dots

    def after(self, before: Value, of_a: list[Value], k_groups_of_b: Value) -> Value:
        if self.dots:
            pairs = value("vector.bitcast", k_groups_of_b.type, of_a[0])
            return value(vnni_packing.DOT, self._sums, before, pairs, k_groups_of_b)
        bits = value("vector.bitcast", vnni_packing.k_groups_type(self.lanes), k_groups_of_b)
        of_b = (vnni_packing.first_half(bits), vnni_packing.second_half(bits))
        for left, right in zip(of_a, of_b, strict=True):
            before = multiply_add(left, vnni_packing.as_floats(right), before)
        return before

    @property
    def _sums(self) -> Type:
        return ir.VectorType.get([self.lanes], ir.F32Type.get())


@dataclass(frozen=True)
class KGroupTile:
    """The tile of C whose sums registers hold, and the order of the loops over such tiles."""

    rows: int
    columns: int  # also of a panel of B
    lanes: int  # sums of a register
    panels_first: bool = False  # the loop over panels is the outer one, so that a panel stays in L1
    fetches_a: bool = False  # rows of A of the next strip are prefetched to the second level of cache
    fetches_b: bool = False  # what is read of B after the block is prefetched

    @classmethod
    def of(cls, op: InPlaceOp) -> "KGroupTile | Refusal":
        """Returns the tile of an op's attributes; a Refusal if its columns are not whole registers.

        Refused too are sizes below 1.
        """
        tile = cls(
            attribute(op, "tile_m", 6),
            attribute(op, "tile_n", 64),
            attribute(op, "lanes", vnni_packing.K_GROUPS),
            bool(attribute(op, "panels_first", 0)),
            bool(attribute(op, "fetches_a", 0)),
            bool(attribute(op, "fetches_b", 0)),
        )
        if tile.rows < 1 or tile.lanes < 1 or tile.columns < 1 or tile.columns % tile.lanes:
            found = f"{tile.rows} x {tile.columns} sums in registers of {tile.lanes}"
            return Refusal(f"found {found}, allowed whole registers")
        return tile

    @property
    def vectors(self) -> int:
        return self.columns // self.lanes


@dataclass(frozen=True, eq=False)
class _TilePosition:
    """A tile of sums: a strip of rows of A by ``vectors`` vectors of columns of a panel of B."""

    strip: KGroupStrip
    panel: Value  # its number
    vectors: int


def multiply_k_groups(
    matmul: BufferMatmul, tile: KGroupTile, products: KGroupProducts, weight: KGroupWeights | None
) -> None:
    """Replaces ``matmul`` by loops that multiply K groups as ``products`` does.

    A K group is 32 bits: two bf16 or four i8 that are adjacent along K. ``weight``: B as it comes packed;
    None: the loops pack B first.
    """
    b = matmul.b
    with ir.InsertionPoint(matmul.op), matmul.op.location:
        _KGroupMatmul.of(matmul, tile, products, weight).build()
    matmul.erase()
    drop_views(weight, b)


@dataclass(frozen=True, eq=False)
class _KGroupMatmul:
    """One matmul with its operands as K groups; code is created at the current insertion point."""

    matmul: BufferMatmul
    columns: vnni_packing.BlockExtent  # of C
    tile: KGroupTile
    a: KGroupRows
    b: KGroupWeights
    source_of_b: vnni_packing.KGroupSource | None  # None: B is a weight, which comes packed
    products: KGroupProducts

    @classmethod
    def of(
        cls, matmul: BufferMatmul, tile: KGroupTile, products: KGroupProducts, weight: KGroupWeights | None
    ) -> "_KGroupMatmul":
        columns = matmul.columns()
        k = matmul.k
        rows = matmul.m if tile.panels_first else tile.rows
        bits = products.k_group_bits
        of_a = vnni_packing.KGroupSource(matmul.a, matmul.layout != "tn", tile.lanes, bits)
        a = KGroupRows.of(of_a, k, rows, has_all=tile.panels_first, has_halves=products.has_halves)
        of_b = vnni_packing.KGroupSource(matmul.b, matmul.layout == "nt", tile.lanes, bits)
        b = weight or packed_k_groups(of_b, columns, k, tile.vectors, products.of_b)
        return cls(matmul, columns, tile, a, b, None if weight else of_b, products)

    def build(self) -> None:
        if self.tile.panels_first:
            self._over_strips(self._prepare)
            self._over_panels(lambda panel, n: self._over_strips(lambda strip: self._tile(strip, panel, n)))
        else:

            def of_strip(strip: KGroupStrip) -> None:
                self._prepare(strip)
                self._over_panels(lambda panel, columns: self._tile(strip, panel, columns))

            self._over_strips(of_strip)

    def _over_strips(self, body: Callable[[KGroupStrip], None]) -> None:
        def of_number(number: Value, rows: int) -> None:
            body(KGroupStrip(self.a, number, times(number, self.tile.rows), rows))

        vnni_packing.in_steps(vnni_packing.BlockExtent(self.matmul.m), self.tile.rows, of_number)

    def _over_panels(self, body: Callable[[Value, int], None]) -> None:
        vnni_packing.in_steps(self.columns, self.tile.columns, body)

    def _prepare(self, strip: KGroupStrip) -> None:
        strip.pack()
        self.products.prepare(strip)

    def _tile(self, strip: KGroupStrip, panel: Value, columns: int) -> None:
        lanes = self.tile.lanes
        vectors = -(-columns // lanes)
        sums = self._sums(_TilePosition(strip, panel, vectors))
        column = times(panel, self.tile.columns)
        for tile_index, sums_of_vector in enumerate(sums):
            row, vector = divmod(tile_index, vectors)
            indices = (plus(strip.first, row), plus(column, vector * lanes))
            width = min(columns - vector * lanes, lanes)
            store_lanes(sums_of_vector, self.matmul.c, indices, width, adds=self.matmul.fill is None)

    def _sums(self, tile: "_TilePosition") -> list[Value]:
        """Creates the sums of a tile over all of K: the vectors of its first row first."""
        strip = tile.strip
        lanes = self.tile.lanes
        whole = strip.whole_k_groups
        registers = whole // lanes if self.products.reads_lanes else 0
        sums = [self.products.start(strip, row) for row in range(strip.rows) for _ in range(tile.vectors)]
        if registers:
            sums = loop(0, registers, partial(self._add_registers, tile), sums)
        if whole > registers * lanes:
            sums = loop(registers * lanes, whole, partial(self._add_k_group, tile), sums)
        if strip.has_rest:
            of_b = self._load_b(tile, index(whole))
            sums = self._add(sums, strip.broadcast_rest, of_b)
        return sums

    def _add_registers(self, tile: "_TilePosition", step: Value, *sums: Value) -> list[Value]:
        """Creates ``sums`` plus the products of as many K groups as a register of A has."""
        lanes = self.tile.lanes
        of_a = [tile.strip.vector(row, step, self.a.source.depth) for row in range(tile.strip.rows)]
        after = list(sums)
        for lane in range(lanes):
            k_group = plus(times(step, lanes), lane)
            of_b = self._load_b(tile, k_group)
            self._fetch(tile, k_group)
            after = self._add(after, partial(_lane_of, of_a, lane), of_b)
        return after

    def _add_k_group(self, tile: "_TilePosition", k_group: Value, *sums: Value) -> list[Value]:
        of_b = self._load_b(tile, k_group)
        self._fetch(tile, k_group)
        return self._add(sums, lambda row: tile.strip.broadcast(row, k_group), of_b)

    def _add(
        self, sums: Sequence[Value], of_row: Callable[[int], list[Value]], of_b: list[Value]
    ) -> list[Value]:
        """Creates ``sums`` plus the products of a K group of each row, ``of_row(row)``, and of B."""
        after: list[Value] = []
        for row in range(len(sums) // len(of_b)):
            of_a = of_row(row)
            for vector_index, vector in enumerate(of_b):
                after.append(self.products.after(sums[row * len(of_b) + vector_index], of_a, vector))
        return after

    def _fetch(self, tile: "_TilePosition", k_group: Value) -> None:
        if self.tile.fetches_a:
            self._fetch_a(tile.strip, tile.panel, k_group)
        if self.tile.fetches_b:
            self._fetch_b(tile.strip, tile.panel, k_group)

    def _fetch_a(self, strip: KGroupStrip, panel: Value, k_group: Value) -> None:
        """Creates prefetches of a K group of rows of the next strip.

        Each panel fetches its share of these rows.
        """
        if not self.a.source.is_along_k:
            return
        # with the strips' loop outside, a strip is multiplied by all panels: each fetches ``share`` rows of
        # the next strip; with the panels' loop outside, the next strip is next, and all its rows are fetched
        panels = 1 if self.tile.panels_first else self.columns.steps(self.tile.columns)
        share = -(-strip.rows // panels)
        first = strip.first if panels == 1 else total(strip.first, times(panel, share))
        for row in range(strip.rows, strip.rows + share):
            fetch(self.a.source.buffer, plus(first, row), times(k_group, self.a.source.per_k_group))

    def _fetch_b(self, strip: KGroupStrip, panel: Value, k_group: Value) -> None:
        """Creates prefetches of B's rows of the next block of K in a panel's columns, a strip's share."""
        source = self.source_of_b
        if source is None:
            self._fetch_next_weights(strip, panel, k_group)
            return
        if source.is_along_k:
            return
        # strips share the rows of a K group: each fetches ``share`` rows, number ``part`` of the shares
        share = -(-source.per_k_group // vnni_packing.BlockExtent(self.matmul.m).steps(self.tile.rows))
        part = value("arith.remui", ir.IndexType.get(), strip.number, index(source.per_k_group // share))
        row = total(times(k_group, source.per_k_group), times(part, share))
        source.fetch_rows(plus(row, self.matmul.k), times(panel, self.tile.columns), share, self.tile.columns)

    def _fetch_next_weights(self, strip: KGroupStrip, panel: Value, k_group: Value) -> None:
        """Creates prefetches of a strip's share of the panel of the next block in the place of ``panel``."""
        strips = vnni_packing.BlockExtent(self.matmul.m).steps(self.tile.rows)
        per_k_group = self.a.source.per_k_group
        step = total(times(strip.number, self.b.k_groups), k_group)
        later = self.b.row(plus(panel, self.columns.steps(self.tile.columns)), index(0))
        line = vnni_packing.LINE_BYTES * 8 * per_k_group // self.a.source.bits
        width = self.tile.columns * per_k_group
        vnni_packing.fetch_share((self.b.memory, later), step, strips, width, line)

    def _load_b(self, tile: "_TilePosition", k_group: Value) -> list[Value]:
        row = self.b.row(tile.panel, k_group)
        depth = self.a.source.depth
        type_ = ir.VectorType.get([depth], ir.MemRefType(self.b.memory.type).element_type)
        columns = [index(depth * vector) for vector in range(tile.vectors)]
        return [value("vector.load", type_, self.b.memory, row, column) for column in columns]


def _lane_of(registers: list[Value], lane: int, row: int) -> list[Value]:
    """Creates a vector with one K group of a row in each lane.

    ``registers``: per row, a vector of K groups; ``lane``: the K group's number in it.
    """
    type_ = vnni_packing.k_groups_type(AARCH64_LANES)
    k_groups = value("vector.bitcast", type_, registers[row])
    mask = ir.DenseI64ArrayAttr.get([lane] * AARCH64_LANES)
    return [value("vector.shuffle", type_, k_groups, k_groups, mask=mask)]


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
    with 16 lanes and for bfdot with 4 lanes (default 0: f32 arithmetic). The handle (a func.func) stays
    valid. Silenceable failure: a matmul that is not of memrefs of static sizes, as above, of bf16 into f32, a
    tile_n that is not a multiple of ``lanes``, and ``dots`` with other than 4 or 16 lanes.
    """

    def change(self, function: Op) -> Refusal | None:
        tile = KGroupTile.of(self)
        dots = bool(attribute(self, "dots", 0))
        if isinstance(tile, Refusal):
            return tile
        if dots and tile.lanes not in (AARCH64_LANES, vnni_packing.K_GROUPS):
            allowed = f"{AARCH64_LANES} or {vnni_packing.K_GROUPS}"
            return Refusal(f"found dots with {tile.lanes} lanes, allowed {allowed}")
        matmuls = buffer_matmuls(self, function, {"bf16": "f32"})
        if isinstance(matmuls, Refusal):
            return matmuls
        weights = take_k_group_weights(function, matmuls, tile.columns, tile.lanes)
        products: KGroupProducts = PairProducts(tile.lanes, dots)
        if dots and tile.lanes == AARCH64_LANES:
            declare_dot_product(function.parent, BFDOT, tile.lanes)
            products = LaneProducts(BFDOT, tile.lanes)
        for matmul, weight in zip(matmuls, weights, strict=True):
            multiply_k_groups(matmul, tile, products, weight)
        return None


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
    where B and C have a dynamic number of columns (default: it is static). The handle (a func.func) stays
    valid. Silenceable failure: a matmul that is not of memrefs of static sizes, as above, of i8 into i32, and
    a tile_n that is not a multiple of ``lanes``.

    Source: Intel 64 and IA-32 architectures optimization manual, chapter on AVX-512 VNNI; Arm architecture
    reference manual for A-profile, SDOT (vector) and SDOT (by element).
    """

    def change(self, function: Op) -> Refusal | None:
        tile = KGroupTile.of(self)
        if isinstance(tile, Refusal):
            return tile
        matmuls = buffer_matmuls(self, function, {"i8": "i32"})
        if isinstance(matmuls, Refusal):
            return matmuls
        dot = _dot_product_of_bytes(tile.lanes, bool(attribute(self, "words", 0)))
        if matmuls:
            declare_dot_product(function.parent, dot, tile.lanes)
        weights = take_k_group_weights(
            function,
            matmuls,
            tile.columns,
            tile.lanes,
            bits=vnni_packing.HALF_BITS if dot is VPMADDWD else vnni_packing.K_GROUP_BITS,
            unsigned=dot is VPDPBUSD,
        )
        for matmul, weight in zip(matmuls, weights, strict=True):
            multiply_k_groups(matmul, tile, _byte_products(matmul, dot, tile.lanes), weight)
        return None


def _dot_product_of_bytes(lanes: int, words: bool) -> DotProduct:
    if lanes == AARCH64_LANES:
        return SDOT
    return VPMADDWD if words else VPDPBUSD


def _byte_products(matmul: BufferMatmul, dot: DotProduct, lanes: int) -> KGroupProducts:
    if dot is SDOT:
        return LaneProducts(SDOT, lanes)
    if dot is VPMADDWD:
        return WordProducts(lanes)
    with ir.InsertionPoint(matmul.op), matmul.op.location:
        return ByteProducts.of(matmul.m, lanes)
