"""Loops of a matmul over words of K: strips of rows of A, panels of columns of B, sums in registers."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.mlir.bindings import Value, ir
from tuner.mlir.ops.blocks.block_extent import BlockExtent, in_steps
from tuner.mlir.ops.blocks.buffer_matmul import BufferMatmul
from tuner.mlir.ops.blocks.lane_vectors import store_lanes
from tuner.mlir.ops.blocks.weight_words import WeightWords, drop_views
from tuner.mlir.ops.blocks.word_panels import packed_words
from tuner.mlir.ops.blocks.word_products import WordProducts
from tuner.mlir.ops.blocks.word_rows import WordRows, WordStrip
from tuner.mlir.ops.blocks.words import WORDS, WordSource
from tuner.mlir.ops.dialect import InPlaceOp, attribute
from tuner.mlir.rewrite.building import fetch, index, loop, plus, times, total, value


@dataclass(frozen=True)
class WordTile:
    """The sums that registers hold, and the order of the loops over such tiles of C."""

    rows: int
    columns: int  # also of a panel of B
    lanes: int  # sums of a register
    panels_first: bool = False  # the loop over panels is the outer one, so that a panel stays in L1
    fetches_a: bool = False  # rows of A of the next strip are prefetched to the second level of cache
    fetches_b: bool = False  # and the rows of B that follow its last one

    @classmethod
    def of(cls, op: InPlaceOp) -> "WordTile | str":
        """Returns the tile of an op's attributes, or what is not allowed of them, as text."""
        tile = cls(
            attribute(op, "tile_m", 6),
            attribute(op, "tile_n", 64),
            attribute(op, "lanes", WORDS),
            bool(attribute(op, "panels_first", 0)),
            bool(attribute(op, "fetches_a", 0)),
            bool(attribute(op, "fetches_b", 0)),
        )
        if tile.rows < 1 or tile.lanes < 1 or tile.columns < 1 or tile.columns % tile.lanes:
            found = f"{tile.rows} x {tile.columns} sums in registers of {tile.lanes}"
            return f"found {found}, allowed whole registers"
        return tile

    @property
    def vectors(self) -> int:
        """Returns the registers of a row of a tile."""
        return self.columns // self.lanes


def multiply_words(
    matmul: BufferMatmul, tile: WordTile, products: WordProducts, weight: WeightWords | None
) -> None:
    """Creates the code of a matmul before it, then erases it; its B may be a ``weight`` that comes packed."""
    b = matmul.b
    with ir.InsertionPoint(matmul.op), matmul.op.location:
        _WordMatmul.of(matmul, tile, products, weight).build()
    matmul.erase()
    drop_views(weight, b)


@dataclass(frozen=True, eq=False)
class _WordMatmul:
    """One matmul with its operands as words of K; code is created at the current insertion point."""

    matmul: BufferMatmul
    columns: BlockExtent  # of C
    tile: WordTile
    a: WordRows
    b: WeightWords
    source_of_b: WordSource | None  # None: B is a weight, which comes packed
    products: WordProducts

    @classmethod
    def of(
        cls, matmul: BufferMatmul, tile: WordTile, products: WordProducts, weight: WeightWords | None
    ) -> "_WordMatmul":
        """Creates the buffers of a matmul, and the packing of a B that is no weight."""
        columns, k = matmul.columns(), matmul.k
        rows = matmul.m if tile.panels_first else tile.rows
        of_a = WordSource(matmul.a, matmul.layout != "tn", tile.lanes)
        a = WordRows.of(of_a, k, rows, has_all=tile.panels_first)
        of_b = WordSource(matmul.b, matmul.layout == "nt", tile.lanes)
        b = weight or packed_words(of_b, columns, k, tile.vectors, products.of_b)
        return cls(matmul, columns, tile, a, b, None if weight else of_b, products)

    def build(self) -> None:
        """Creates the loops over strips of rows, and over panels of B."""
        if self.tile.panels_first:
            self._over_strips(self._prepare)
            self._over_panels(lambda panel, n: self._over_strips(lambda strip: self._tile(strip, panel, n)))
        else:
            self._over_strips(self._strip)

    def _over_strips(self, body: Callable[[WordStrip], None]) -> None:
        def of_number(number: Value, rows: int) -> None:
            body(WordStrip(self.a, number, times(number, self.tile.rows), rows))

        in_steps(BlockExtent(self.matmul.m), self.tile.rows, of_number)

    def _over_panels(self, body: Callable[[Value, int], None]) -> None:
        in_steps(self.columns, self.tile.columns, body)

    def _prepare(self, strip: WordStrip) -> None:
        strip.pack()
        self.products.prepare(strip)

    def _strip(self, strip: WordStrip) -> None:
        self._prepare(strip)
        self._over_panels(lambda panel, columns: self._tile(strip, panel, columns))

    def _tile(self, strip: WordStrip, panel: Value, columns: int) -> None:
        """Creates the sums of a strip and of ``columns`` columns of C in registers, and their stores."""
        lanes = self.tile.lanes
        vectors = -(-columns // lanes)

        def step(word: Value, *sums: Value, of_row: Callable[[int], Value] | None = None) -> list[Value]:
            of_b = self._load_b(panel, word, vectors)
            if self.tile.fetches_a and not of_row:
                self._fetch_a(strip, panel, word)
            if self.tile.fetches_b and not of_row:
                self._fetch_b(strip, panel, word)
            after: list[Value] = []
            for row in range(strip.rows):
                words = of_row(row) if of_row else strip.broadcast(row, word)
                for number, each in enumerate(of_b):
                    after.append(self.products.after(sums[row * vectors + number], words, each))
            return after

        sums = [self.products.start(strip, row) for row in range(strip.rows) for _ in range(vectors)]
        if strip.whole_words:
            sums = list(loop(0, strip.whole_words, step, sums))
        if strip.has_rest:
            sums = step(index(strip.whole_words), *sums, of_row=strip.broadcast_rest)
        column = times(panel, self.tile.columns)
        for number, each in enumerate(sums):
            row, vector = divmod(number, vectors)
            place = (plus(strip.first, row), plus(column, vector * lanes))
            width = min(columns - vector * lanes, lanes)
            store_lanes(each, self.matmul.c, place, width, adds=self.matmul.fill is None)

    def _fetch_a(self, strip: WordStrip, panel: Value, word: Value) -> None:
        """Creates prefetches of a word of K in those rows of the next strip that fall to a panel.

        Rows after the last one are fetched too, which has no effect. Nothing where A is packed.
        """
        if self.a.packed is not None:
            return
        panels = 1 if self.tile.panels_first else self.columns.steps(self.tile.columns)
        share = -(-strip.rows // panels)
        first = strip.first if panels == 1 else total(strip.first, times(panel, share))
        for row in range(strip.rows, strip.rows + share):
            fetch(self.a.source.buffer, plus(first, row), times(word, self.a.source.per_word))

    def _fetch_b(self, strip: WordStrip, panel: Value, word: Value) -> None:
        """Creates prefetches of rows of B that follow this block of K, in a panel's columns.

        A word's rows are divided among the strips. Nothing where B is stored along K, or comes packed.
        """
        source = self.source_of_b
        if source is None or source.is_along_k:
            return
        share = -(-source.per_word // BlockExtent(self.matmul.m).steps(self.tile.rows))
        part = value("arith.remui", ir.IndexType.get(), strip.number, index(source.per_word // share))
        row = total(times(word, source.per_word), times(part, share))
        source.fetch_rows(plus(row, self.matmul.k), times(panel, self.tile.columns), share, self.tile.columns)

    def _load_b(self, panel: Value, word: Value, vectors: int) -> list[Value]:
        """Creates the loads of a word of K of the first vectors of a panel."""
        row, depth = self.b.row(panel, word), self.a.source.depth
        kind = ir.VectorType.get([depth], self.a.source.element)
        places = [index(depth * each) for each in range(vectors)]
        return [value("vector.load", kind, self.b.memory, row, place) for place in places]
