"""Where the AMX tiles of A and B lie: packed by a kernel, or in a weight that comes packed.

Each method creates its ops at the current insertion point.
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.ops.blocks.packing import allocated
from tuner.mlir.ops.blocks.weight_words import WeightWords
from tuner.mlir.ops.blocks.words import WORDS, WordSource
from tuner.mlir.rewrite.building import create, fetch, index, plus, times, total, value


@dataclass(frozen=True, eq=False)
class PackedTiles:
    """Packed tiles: for each panel and step of K, ``across`` tiles of 16 rows of 16 words."""

    memory: Value  # memref<rows x elements of 16 words>
    steps: int  # of K
    across: int  # tiles of a panel

    @classmethod
    def of(cls, source: WordSource, panels: int, k_steps: int, across: int) -> "PackedTiles":
        """Creates the allocation of tiles of one matrix."""
        shape = (panels * k_steps * across * WORDS, source.depth)
        return cls(allocated(shape, source.element), k_steps, across)

    def row(self, panel: Value, step: Value) -> Value:
        """Creates the number of the first row of the tiles of a panel and a step of K."""
        return times(total(times(panel, self.steps), step), self.across * WORDS)

    def load(self, kind: Type, row: Value, tile: int) -> Value:
        """Creates the load of one tile of a panel, whose first tile begins at ``row``."""
        return tile_load(kind, self.memory, plus(row, WORDS * tile), index(0))

    def store_a(self, row: Value, step: Value, words: Value) -> None:
        """Creates the store of words of a row of A, which has a single panel."""
        at = total(self.row(index(0), step), row)
        create("vector.store", [], [words, self.memory, at, index(0)])

    def store_b(self, panel: Value, step: Value, word: Value, tile: Value, words: Value) -> None:
        """Creates the store of one word of 16 columns of B: a row of a tile."""
        at = total(total(self.row(panel, step), times(tile, WORDS)), word)
        create("vector.store", [], [words, self.memory, at, index(0)])


@dataclass(frozen=True, eq=False)
class WeightTiles:
    """Tiles of a B that comes packed: of 16 rows of words of K, those of 16 columns."""

    words: WeightWords
    depth: int  # elements of K of a tile

    @property
    def steps(self) -> int:
        """Returns the steps of K."""
        return self.words.words // WORDS

    def row(self, panel: Value, step: Value) -> Value:
        """Creates the number of the first row of the tiles of a panel and a step of K."""
        return self.words.row(panel, times(step, WORDS))

    def load(self, kind: Type, row: Value, tile: int) -> Value:
        """Creates the load of one tile of a panel, which begins at ``row``."""
        return tile_load(kind, self.words.memory, row, index(self.depth * tile))

    def fetch(self, panel: Value, step: Value, part: Value, rows: int, across: int) -> None:
        """Creates prefetches of one part of the rows of ``across`` tiles to the second level of cache.

        Each part has ``rows`` rows. Addresses after the last panel are fetched too, which has no effect.
        """
        begin = total(self.row(panel, step), times(part, rows))
        for row in range(rows):
            for tile in range(across):
                fetch(self.words.memory, plus(begin, row), index(self.depth * tile))


def tile_load(kind: Type, buffer: Value, row: Value, column: Value) -> Value:
    """Creates the load of a tile from a place of a memref."""
    segments = ir.DenseI32ArrayAttr.get([1, 2, 0])
    return value("x86.amx.tile_load", kind, buffer, row, column, operandSegmentSizes=segments)


def tile_store(tile: Value, buffer: Value, row: Value, column: Value) -> None:
    """Creates the store of a tile to a place of a memref."""
    segments = ir.DenseI32ArrayAttr.get([1, 2, 1, 0])
    create("x86.amx.tile_store", [], [buffer, row, column, tile], operandSegmentSizes=segments)
