"""f32 by AMX tiles: three planes of bf16 of each operand, whose six largest products make up a product.

x = h + m + l: h has the upper half of the bits of x, m is the rest x - h rounded to bf16, l the rest of
that, which bf16 holds exactly unless it is subnormal. Of the nine products of planes those of m and l and of
l and l are left out, which are below 2^-24 of the product. h is cut and not rounded, so that the largest
numbers stay finite; m is rounded, so that what is left out has no bias. Infinity gives NaN, as its m is NaN:
``tuner.mlir.cpu_ops.amx_sums`` computes such sums again.

Packed tiles lie in panels, as without planes, the three tiles of the planes one after the other. They are
made by lines, 16 a tile. A line of an operand that is stored along K has 32 elements of one row of A or
column of B, another line has 16 adjacent elements of two rows of K. Where lines are columns of tiles, a
transpose follows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.cpu_ops.amx_products import TilePanel, TileProducts
from tuner.mlir.cpu_ops.amx_tiles import PackedTiles
from tuner.mlir.cpu_ops.buffer_matmul import BufferMatmul
from tuner.mlir.cpu_ops.instructions import AmxProducts
from tuner.mlir.cpu_ops.vnni_packing import (
    HALF_BITS,
    HIGH,
    K_GROUPS,
    BlockExtent,
    OfTile,
    allocated,
    k_groups_type,
    over_tiles,
    transposed,
)
from tuner.mlir.ir.building import create, index, is_less, plus, rolled_loop, splat, times, total, value, zero

DEPTH: Final = 2 * K_GROUPS  # elements of K of a tile
PLANES: Final = 3
H, M, L = range(PLANES)
# Plane of A -> planes of B that it is multiplied by, h by h last: h + m of the largest number is infinite,
# h + m + l is not. At a time registers hold the sums, a column of tiles of A and one tile of B. An order with
# fewer loads, 14 in place of 16 for 24 products, needs all eight, and LLVM copies tiles through memory then.
PRODUCTS: Final = ((L, (H,)), (M, (H, M)), (H, (M, L, H)))
# Creates the store of a row of a tile: plane, row, K groups
StoreOfPlane: TypeAlias = Callable[[int, Value, Value], None]


@dataclass(frozen=True, eq=False)
class PlaneSource:
    """A or B of f32 in memory, read as lines of tiles of bf16.

    Parameters of the methods: ``first`` is a row of A or a column of B, ``k`` an index along K.
    """

    buffer: Value  # 2-D memref of f32, rows of adjacent elements
    is_along_k: bool  # K is the dimension of adjacent elements: A of layout nn and nt, B of nt
    are_lines_rows: bool  # of tiles; else their columns
    extent: BlockExtent  # rows of A, columns of B
    k: int

    def pack(self, first: Value, k: Value, store: StoreOfPlane, *, is_whole: bool) -> None:
        """Creates the code that packs the tiles of the planes that begin at ``first`` and ``k``.

        ``store`` creates the store of one line of a plane's tile. Elements after the matrix's last are 0;
        with ``is_whole`` there must be none.
        """
        if self.are_lines_rows:
            rolled_loop(0, K_GROUPS, lambda line: self._line(first, k, line, store, is_whole))
            return
        square = allocated((PLANES * K_GROUPS, DEPTH), ir.BF16Type.get())

        def to_square(plane: int, line: Value, k_groups: Value) -> None:
            create("vector.store", [], [k_groups, square, plus(line, plane * K_GROUPS), index(0)])

        rolled_loop(0, K_GROUPS, lambda line: self._line(first, k, line, to_square, is_whole))
        for plane in range(PLANES):
            for row, k_groups in enumerate(transposed(_lines(square, plane))):
                store(plane, index(row), k_groups)

    def _line(self, first: Value, k: Value, line: Value, store: StoreOfPlane, is_whole: bool) -> None:
        if self.is_along_k:
            row = total(first, line)
            halves = [self._read(row, k, is_whole), self._read(row, plus(k, K_GROUPS), is_whole)]
            words = list(range(1, 2 * DEPTH, 2))  # upper halves of the first vector, then of the second
        else:
            row = total(k, times(line, 2))
            halves = [self._read(row, first, is_whole), self._read(plus(row, 1), first, is_whole)]
            words = [word + number for word in range(1, DEPTH, 2) for number in (0, DEPTH)]  # alternately
        for plane, (left, right) in enumerate(zip(*map(_split, halves), strict=True)):
            store(plane, line, _words_of(left, right, words))

    def _read(self, row: Value, column: Value, is_whole: bool) -> Value:
        type_ = _floats()
        if is_whole:
            return value("vector.load", type_, self.buffer, row, column)
        extents = [self.extent.elements(), index(self.k)]
        if not self.is_along_k:
            extents.reverse()
        rows, columns = extents
        left = value("arith.subi", row.type, columns, column)
        count = value("arith.select", row.type, is_less(row, rows), left, index(0))
        mask_type = ir.VectorType.get([K_GROUPS], ir.IntegerType.get_signless(1))
        mask = value("vector.create_mask", mask_type, count)
        nearest = value("arith.minui", row.type, row, plus(rows, -1))  # one that is there
        return value("vector.maskedload", type_, self.buffer, nearest, column, mask, zero(type_))


@final
@dataclass(frozen=True, eq=False)
class PlaneProducts(TileProducts):
    """Tiles of three planes of bf16 of A and of B, both of f32: six products of tiles for each sum."""

    matmul: BufferMatmul
    columns: BlockExtent  # of C
    tiles: tuple[int, int]  # of sums: down, across
    packed_a: PackedTiles  # of a strip of rows
    packed_b: PackedTiles

    @classmethod
    def of(cls, matmul: BufferMatmul, columns: BlockExtent, tiles: tuple[int, int]) -> "PlaneProducts":
        """Allocates packed tiles of one strip of rows of A and of B for all ``columns``; returns products.

        ``columns``: those of C; ``tiles``: tiles of sums (down, across) that are computed at a time.
        """
        k_steps = -(-matmul.k // DEPTH)
        packed_a = _packed_planes(1, k_steps, tiles[0])
        packed_b = _packed_planes(columns.steps(K_GROUPS * tiles[1]), k_steps, tiles[1])
        return cls(matmul, columns, tiles, packed_a, packed_b)

    @property
    def steps(self) -> int:
        return self.packed_b.steps

    @property
    def can_be_nan(self) -> bool:
        return True

    def pack_b(self) -> None:
        is_along_k = self.matmul.layout == "nt"
        source = PlaneSource(self.matmul.b, is_along_k, not is_along_k, self.columns, self.matmul.k)
        width = self.tiles[1] * K_GROUPS

        def of_panel(is_whole: bool) -> OfTile:
            def pack(step: Value, panel: Value) -> None:
                begin = self.packed_b.row(panel, step)
                for tile in range(self.tiles[1]):
                    column = plus(times(panel, width), K_GROUPS * tile)
                    store = _store_to(self.packed_b, plus(begin, tile * PLANES * K_GROUPS))
                    source.pack(column, times(step, DEPTH), store, is_whole=is_whole)

            return pack

        steps = BlockExtent(self.matmul.k)
        over_tiles(steps, DEPTH, self.columns, width, of_panel(True), of_panel(False))

    def pack_a(self, first: Value, rows: BlockExtent) -> None:
        is_along_k = self.matmul.layout != "tn"
        every_row = BlockExtent(self.matmul.m)
        source = PlaneSource(self.matmul.a, is_along_k, is_along_k, every_row, self.matmul.k)

        def of_tile(is_whole: bool) -> OfTile:
            def pack(tile: Value, step: Value) -> None:
                begin = total(self.packed_a.row(index(0), step), times(tile, PLANES * K_GROUPS))
                row = total(first, times(tile, K_GROUPS))
                store = _store_to(self.packed_a, begin)
                source.pack(row, times(step, DEPTH), store, is_whole=is_whole)

            return pack

        over_tiles(rows, K_GROUPS, BlockExtent(self.matmul.k), DEPTH, of_tile(True), of_tile(False))

    def multiply(self, at: TilePanel, sums: list[Value], across: int) -> list[Value]:
        type_ = ir.Type.parse(f"!x86.amx.tile<{K_GROUPS}x{DEPTH}xbf16>")
        row_a = self.packed_a.row(index(0), at.step)
        row_b = self.packed_b.row(at.panel, at.step)
        products = AmxProducts.of("bf16")
        down = len(sums) // across
        totals = list(sums)
        columns = list(range(across))
        loaded = (-1, -1)  # plane and column of the tile of B in its register
        of_b = row_b
        for left, planes_of_b in PRODUCTS:
            of_a = [self.packed_a.load(type_, row_a, PLANES * i + left) for i in range(down)]
            for right in planes_of_b:
                for j in columns:
                    if loaded != (right, j):
                        of_b = self.packed_b.load(type_, row_b, PLANES * j + right)
                        loaded = (right, j)
                    for i in range(down):
                        number = i * across + j
                        totals[number] = products.after(totals[number], [of_a[i]], of_b)
                columns.reverse()  # the last tile of B is multiplied by the next plane of A first
        return totals


def _packed_planes(panels: int, k_steps: int, tiles: int) -> PackedTiles:
    rows = panels * k_steps * tiles * PLANES * K_GROUPS
    return PackedTiles(allocated((rows, DEPTH), ir.BF16Type.get()), k_steps, tiles * PLANES)


def _store_to(packed: PackedTiles, begin: Value) -> StoreOfPlane:
    """Returns what creates the stores to three tiles, which begin at row ``begin`` of ``packed``."""

    def store(plane: int, row: Value, k_groups: Value) -> None:
        at = total(plus(begin, plane * K_GROUPS), row)
        create("vector.store", [], [k_groups, packed.memory, at, index(0)])

    return store


def _split(numbers: Value) -> list[Value]:
    """Creates the planes of 16 f32; returns vectors of i32, whose upper halves are the numbers in bf16."""
    bits = k_groups_type()
    mask = splat(bits, HIGH)
    high = value("arith.andi", bits, value("vector.bitcast", bits, numbers), mask)
    rest = value("arith.subf", _floats(), numbers, value("vector.bitcast", _floats(), high))
    half = splat(bits, 1 << (HALF_BITS - 1))
    # to the nearest, halves away from 0; NaN stays NaN, unless it has all bits of the mantissa, as h then has
    rounded = value("arith.addi", bits, value("vector.bitcast", bits, rest), half)
    middle = value("arith.andi", bits, rounded, mask)
    low = value("arith.subf", _floats(), rest, value("vector.bitcast", _floats(), middle))
    return [high, middle, value("vector.bitcast", bits, low)]


def _words_of(left: Value, right: Value, words: list[int]) -> Value:
    """Creates the vector of 32 bf16 that are the 16-bit ``words`` of two vectors of 16 i32."""
    short = ir.VectorType.get([DEPTH], ir.IntegerType.get_signless(HALF_BITS))
    parts = [value("vector.bitcast", short, left), value("vector.bitcast", short, right)]
    shuffled = value("vector.shuffle", short, *parts, mask=ir.DenseI64ArrayAttr.get(words))
    return value("vector.bitcast", _tile_row(), shuffled)


def _lines(square: Value, plane: int) -> list[Value]:
    first = plane * K_GROUPS
    return [
        value("vector.load", _tile_row(), square, index(line), index(0))
        for line in range(first, first + K_GROUPS)
    ]


def _floats() -> Type:
    return ir.VectorType.get([K_GROUPS], ir.F32Type.get())


def _tile_row() -> Type:
    return ir.VectorType.get([DEPTH], ir.BF16Type.get())
