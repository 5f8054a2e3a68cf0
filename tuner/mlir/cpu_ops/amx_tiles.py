"""AMX tiles of A and B in memory: where they lie, and their loads and stores."""

from dataclasses import dataclass

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.cpu_ops.vnni_operands import KGroupWeights
from tuner.mlir.cpu_ops.vnni_packing import K_GROUPS, KGroupSource, allocated
from tuner.mlir.ir.building import create, fetch, index, plus, times, total, value


@dataclass(frozen=True, eq=False)
class PackedTiles:
    """A buffer of packed AMX tiles: for each panel and step of K, ``across`` tiles of 16 rows of 16 K groups.

    A K group is 32 bits: two bf16 or four i8 that are adjacent along K.
    """

    memory: Value  # memref<rows x elements of 16 K groups>
    steps: int  # of K
    across: int  # tiles of a panel

    @classmethod
    def of(cls, source: KGroupSource, panels: int, k_steps: int, across: int) -> "PackedTiles":
        shape = (panels * k_steps * across * K_GROUPS, source.depth)
        return cls(allocated(shape, source.element), k_steps, across)

    def row(self, panel: Value, step: Value) -> Value:
        """Creates the index of the buffer's row at which the tiles of a panel and a step of K begin."""
        return times(total(times(panel, self.steps), step), self.across * K_GROUPS)

    def load(self, type_: Type, row: Value, tile: int) -> Value:
        """Creates the load of tile number ``tile``, from 0, of those from the buffer's row ``row`` on."""
        return tile_load(type_, self.memory, plus(row, K_GROUPS * tile), index(0))

    def store_a(self, row: Value, step: Value, k_groups: Value) -> None:
        at = total(self.row(index(0), step), row)
        create("vector.store", [], [k_groups, self.memory, at, index(0)])

    def store_b(self, panel: Value, step: Value, k_group: Value, tile: Value, k_groups: Value) -> None:
        at = total(total(self.row(panel, step), times(tile, K_GROUPS)), k_group)
        create("vector.store", [], [k_groups, self.memory, at, index(0)])


@dataclass(frozen=True, eq=False)
class WeightTiles:
    """AMX tiles of a weight that comes packed: 16 rows of 16 K groups each.

    A K group is 32 bits: two bf16 or four i8 that are adjacent along K.
    """

    weights: KGroupWeights
    depth: int  # elements of K of a tile

    @property
    def steps(self) -> int:
        return self.weights.k_groups // K_GROUPS

    def row(self, panel: Value, step: Value) -> Value:
        return self.weights.row(panel, times(step, K_GROUPS))

    def load(self, type_: Type, row: Value, tile: int) -> Value:
        return tile_load(type_, self.weights.memory, row, index(self.depth * tile))

    def fetch(self, panel: Value, step: Value, part: Value, rows: int, across: int) -> None:
        """Creates prefetches of ``rows`` rows of tiles of a step along K, from row ``part * rows`` on.

        ``across``: the number of tiles in a row of tiles.
        """
        begin = total(self.row(panel, step), times(part, rows))
        for row in range(rows):
            for tile in range(across):
                fetch(self.weights.memory, plus(begin, row), index(self.depth * tile))


def tile_load(type_: Type, buffer: Value, row: Value, column: Value) -> Value:
    """Creates the load of an AMX tile of type ``type_``; its first element is ``buffer[row, column]``."""
    segments = ir.DenseI32ArrayAttr.get([1, 2, 0])
    return value("x86.amx.tile_load", type_, buffer, row, column, operandSegmentSizes=segments)


def tile_store(tile: Value, buffer: Value, row: Value, column: Value) -> None:
    """Creates the store of an AMX ``tile`` to a 2-D memref, its first element to ``buffer[row, column]``."""
    segments = ir.DenseI32ArrayAttr.get([1, 2, 1, 0])
    create("x86.amx.tile_store", [], [buffer, row, column, tile], operandSegmentSizes=segments)
