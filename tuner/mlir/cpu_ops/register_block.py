"""A block of a matmul as tiles of sums in registers: strips of rows of A times panels of columns of B.

    strips > panels > K, or panels > strips > K     the loops, outermost first, by ``panels_first``

A strip is packed, where its rows must be, before it is multiplied. A step along K is a K group: as many
elements as one sum takes at a time (``tuner.mlir.cpu_ops.instructions``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.cpu_ops import vnni_packing
from tuner.mlir.cpu_ops.buffer_matmul import BufferMatmul, buffer_matmuls
from tuner.mlir.cpu_ops.instructions import Products
from tuner.mlir.cpu_ops.vector_lanes import store_lanes
from tuner.mlir.cpu_ops.vnni_operands import (
    KGroupWeights,
    drop_views,
    packed_k_groups,
    take_k_group_weights,
)
from tuner.mlir.cpu_ops.vnni_packing import BlockExtent, KGroupSource, in_steps
from tuner.mlir.cpu_ops.vnni_rows import KGroupRows, KGroupStrip
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import create, index, loop, plus, splat, times, total, value, zero

OfRow = TypeVar("OfRow")


@dataclass(frozen=True, kw_only=True)
class RegisterTile:
    """The tile of C whose sums registers hold, and the order of the loops over such tiles."""

    rows: int
    columns: int  # also of a panel of B
    lanes: int  # sums of a register
    panels_first: bool = False  # the loop over panels is the outer one, so that a panel stays in L1
    fetches_a: bool = False  # rows of A of the next strip are prefetched to the second level of cache
    fetches_b: bool = False  # what is read of B after the block is prefetched
    unroll: int = 1  # K groups in one iteration of the innermost loop

    @classmethod
    def of(cls, op: InPlaceOp) -> "RegisterTile | Refusal":
        """Returns the tile of an op's attributes; a Refusal if its columns are not whole registers.

        Refused too are sizes below 1.
        """
        tile = cls(
            rows=attribute(op, "tile_m", 6),
            columns=attribute(op, "tile_n", 64),
            lanes=attribute(op, "lanes", vnni_packing.K_GROUPS),
            panels_first=bool(attribute(op, "panels_first", 0)),
            fetches_a=bool(attribute(op, "fetches_a", 0)),
            fetches_b=bool(attribute(op, "fetches_b", 0)),
        )
        if tile.rows < 1 or tile.lanes < 1 or tile.columns < 1 or tile.columns % tile.lanes:
            found = f"{tile.rows} x {tile.columns} sums in registers of {tile.lanes}"
            return Refusal(f"found {found}, allowed whole registers")
        return tile


def multiplied(
    sums: Sequence[Value],
    of_row: Callable[[int], OfRow],
    of_b: Sequence[Value],
    after: Callable[[Value, OfRow, Value], Value],
) -> list[Value]:
    """Creates ``sums``, registers of a tile row by row, plus the products of one step along K; returns them.

    ``of_row(row)`` creates what each register of a row is multiplied by, ``of_b``: a register of B for each
    of the row. ``after(before, of_row, of_b)`` creates the next sums of one register.
    """
    added: list[Value] = []
    for row in range(len(sums) // len(of_b)):
        of_a = of_row(row)
        for number, register in enumerate(of_b):
            added.append(after(sums[row * len(of_b) + number], of_a, register))
    return added


def multiplied_by_columns(
    sums: Sequence[Value],
    of_a: Sequence[Value],
    of_column: Callable[[int], Value],
    after: Callable[[Value, list[Value], Value], Value],
) -> list[Value]:
    """Creates ``sums``, registers of a tile row by row, plus the products of one step along K; returns them.

    ``of_a``: a register of A for each row; ``of_column(column)`` creates that of B, which is used up before
    the next is loaded.
    """
    added = list(sums)
    across = len(sums) // len(of_a)
    for column in range(across):
        of_b = of_column(column)
        for row, register in enumerate(of_a):
            number = row * across + column
            added[number] = after(sums[number], [register], of_b)
    return added


def multiply_blocks(
    op: InPlaceOp, function: Op, tile: RegisterTile, products: Mapping[str, Products]
) -> Refusal | None:
    """Replaces all ``linalg.matmul`` of ``function`` by register blocks, in place.

    ``products``: how A and B of an element type are multiplied, {"i8": ...}. ``op``: the transform op.
    Returns a Refusal, and changes nothing, if a matmul is of other types or not of buffers of static sizes;
    and where the tile does not fit an instruction (matmuls of other element types may be replaced by then).
    """
    matmuls = buffer_matmuls(op, function, {element: of.sum_element for element, of in products.items()})
    if isinstance(matmuls, Refusal):
        return matmuls
    by_element: dict[str, list[BufferMatmul]] = {}
    for matmul in matmuls:
        by_element.setdefault(matmul.element, []).append(matmul)
    for element, blocks in by_element.items():
        of_element = products[element]
        if tile.rows % of_element.rows or tile.columns % of_element.lanes:
            found = f"{tile.rows} x {tile.columns} sums"
            allowed = f"multiples of {of_element.rows} rows and {of_element.lanes} columns"
            return Refusal(f"found {found}, allowed {allowed}")
        weights = take_k_group_weights(
            function,
            blocks,
            tile.columns,
            of_element.columns,
            bits=of_element.k_group_bits,
            unsigned=bool(of_element.offset),
        )
        of_element.declare(function.parent)
        for matmul, weight in zip(blocks, weights, strict=True):
            b = matmul.b
            with ir.InsertionPoint(matmul.op), matmul.op.location:
                RegisterBlock.of(matmul, tile, of_element, weight).build()
            matmul.erase()
            drop_views(weight, b)
    return None


@dataclass(frozen=True, eq=False)
class _Tile:
    """A tile of sums: a strip of rows of A by ``across`` registers of columns of a panel of B."""

    strip: KGroupStrip
    panel: Value  # its number
    across: int


@dataclass(frozen=True, eq=False)
class RegisterBlock:
    """One matmul with its operands as K groups; code is created at the current insertion point."""

    matmul: BufferMatmul
    columns: BlockExtent  # of C
    tile: RegisterTile
    a: KGroupRows
    b: KGroupWeights
    source_of_b: KGroupSource | None  # None: B is a weight, which comes packed
    products: Products
    starts: Value | None  # memref<rows of A x i32>: what sums of a row start from; None: from 0

    @classmethod
    def of(
        cls, matmul: BufferMatmul, tile: RegisterTile, products: Products, weight: KGroupWeights | None
    ) -> "RegisterBlock":
        """Creates the buffers of packed operands, and the code that packs B."""
        starts = None
        if products.offset:
            starts = vnni_packing.allocated((matmul.m,), ir.Type.parse(products.sum_element))
        columns = matmul.columns()
        bits = products.k_group_bits
        width = products.rows if products.rows > 1 else products.columns
        of_a = KGroupSource(matmul.a, matmul.layout != "tn", width, bits)
        if products.rows > 1:
            a = KGroupRows.of_matrices(of_a, matmul.m, matmul.k, tile.rows)
        else:
            rows = matmul.m if tile.panels_first else tile.rows
            halves = products.has_halves
            a = KGroupRows.of(of_a, matmul.k, rows, has_all=tile.panels_first, has_halves=halves)
        of_b = KGroupSource(matmul.b, matmul.layout == "nt", products.columns, bits)
        across = tile.columns // products.columns
        b = weight or packed_k_groups(of_b, columns, matmul.k, across, products.of_b)
        return cls(matmul, columns, tile, a, b, None if weight else of_b, products, starts)

    def build(self) -> None:
        """Creates the loops over strips and panels."""
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

        in_steps(BlockExtent(self.matmul.m), self.tile.rows, of_number)

    def _over_panels(self, body: Callable[[Value, int], None]) -> None:
        in_steps(self.columns, self.tile.columns, body)

    def _prepare(self, strip: KGroupStrip) -> None:
        strip.pack()
        if self.starts is None:
            return
        for row, row_sum in enumerate(strip.sums(self.products)):
            start = value("arith.muli", row_sum.type, row_sum, splat(row_sum.type, -self.products.offset))
            create("memref.store", [], [start, self.starts, plus(strip.first, row)])

    def _tile(self, strip: KGroupStrip, panel: Value, columns: int) -> None:
        products = self.products
        across = -(-columns // products.columns)
        sums = self._sums(_Tile(strip, panel, across))
        column = times(panel, self.tile.columns)
        for row in range(strip.rows):
            first, row_of_register = divmod(row, products.rows)
            registers = sums[first * across :][:across]
            for number, line in enumerate(products.line(registers, row_of_register)):
                indices = (plus(strip.first, row), plus(column, number * products.lanes))
                width = min(columns - number * products.lanes, products.lanes)
                store_lanes(line, self.matmul.c, indices, width, adds=self.matmul.fill is None)

    def _sums(self, tile: "_Tile") -> list[Value]:
        """Creates the sums of a tile over all of K: the registers of its first rows first."""
        whole = tile.strip.whole_k_groups
        width = self.products.lanes if self.products.reads_lanes else self.tile.unroll
        steps = whole // width
        down = -(-tile.strip.rows // self.products.rows)
        sums = [self._start(tile.strip, row) for row in range(down) for _ in range(tile.across)]
        if steps:
            sums = loop(0, steps, partial(self._add_k_groups, tile, width), sums)
        if whole > steps * width:
            sums = loop(steps * width, whole, partial(self._add_k_groups, tile, 1), sums)
        if tile.strip.has_rest:
            of_b = self.b.load(tile.panel, index(whole), tile.across)
            sums = multiplied(sums, tile.strip.rest, of_b, self.products.after)
        return sums

    def _start(self, strip: KGroupStrip, row: int) -> Value:
        if self.starts is None:
            return zero(self.products.sums)
        number = value(
            "memref.load", ir.Type.parse(self.products.sum_element), self.starts, plus(strip.first, row)
        )
        return value("vector.broadcast", self.products.sums, number)

    def _add_k_groups(self, tile: "_Tile", width: int, step: Value, *sums: Value) -> Sequence[Value]:
        """Creates ``sums`` plus the products of the ``width`` K groups of a step."""
        registers: Sequence[Value] = ()
        if self.products.reads_lanes and width > 1:
            registers = tile.strip.registers(step)
        after: Sequence[Value] = sums
        for number in range(width):
            k_group = plus(times(step, width), number)
            of_row = tile.strip.k_group(k_group, registers, number)
            of_b = self.b.load(tile.panel, k_group, tile.across)
            self._fetch(tile, k_group)
            after = multiplied(after, of_row, of_b, self.products.after)
        return after

    def _fetch(self, tile: "_Tile", k_group: Value) -> None:
        if self.tile.fetches_a:
            # with the strips' loop outside, a strip is multiplied by all panels: each fetches a share of the
            # next strip; with the panels' loop outside, the next strip is next, and all its rows are fetched
            panels = 1 if self.tile.panels_first else self.columns.steps(self.tile.columns)
            tile.strip.fetch_next(tile.panel, panels, k_group)
        if not self.tile.fetches_b:
            return
        if self.source_of_b is None:
            self._fetch_next_weights(tile.strip, tile.panel, k_group)
        else:
            self._fetch_next_rows(self.source_of_b, tile.strip, tile.panel, k_group)

    def _fetch_next_rows(
        self, source: KGroupSource, strip: KGroupStrip, panel: Value, k_group: Value
    ) -> None:
        """Creates prefetches of B's rows of the next block of K in a panel's columns, a strip's share."""
        if source.is_along_k:
            return
        # strips share the rows of a K group: each fetches ``share`` rows, number ``part`` of the shares
        share = -(-source.per_k_group // BlockExtent(self.matmul.m).steps(self.tile.rows))
        part = value("arith.remui", ir.IndexType.get(), strip.number, index(source.per_k_group // share))
        row = total(times(k_group, source.per_k_group), times(part, share))
        source.fetch_rows(plus(row, self.matmul.k), times(panel, self.tile.columns), share, self.tile.columns)

    def _fetch_next_weights(self, strip: KGroupStrip, panel: Value, k_group: Value) -> None:
        """Creates prefetches of a strip's share of the panel of the next block in the place of ``panel``."""
        strips = BlockExtent(self.matmul.m).steps(self.tile.rows)
        per_k_group = self.a.source.per_k_group
        step = total(times(strip.number, self.b.k_groups), k_group)
        later = self.b.row(plus(panel, self.columns.steps(self.tile.columns)), index(0))
        line = vnni_packing.LINE_BYTES * 8 * per_k_group // self.a.source.bits
        width = self.tile.columns * per_k_group
        vnni_packing.fetch_share((self.b.memory, later), step, strips, width, line)
