"""Products of AMX tiles: how the operands of a matmul are packed to tiles, and which products they need."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.cpu_ops import amx_packing, amx_tiles
from tuner.mlir.cpu_ops.buffer_matmul import BufferMatmul
from tuner.mlir.cpu_ops.instructions import AmxProducts
from tuner.mlir.cpu_ops.register_block import multiplied_by_columns
from tuner.mlir.cpu_ops.vnni_operands import KGroupWeights
from tuner.mlir.cpu_ops.vnni_packing import K_GROUPS, BlockExtent, KGroupSource
from tuner.mlir.ir.building import index, plus, times, total


@dataclass(frozen=True, eq=False)
class TilePanel:
    """The position of a product of tiles: a strip of rows of A, a panel of columns of B, a step along K.

    A step is as many elements of K as a tile holds.
    """

    strip: Value
    first: Value  # row of A of the strip
    panel: Value
    step: Value


class TileProducts(ABC):
    """The packed operands of a matmul, and the products of their tiles; methods create code.

    A step is as many elements of K as a tile holds.
    """

    @property
    @abstractmethod
    def steps(self) -> int:
        """Returns the number of steps along K, each as many elements as a tile holds."""

    @property
    @abstractmethod
    def can_be_nan(self) -> bool:
        """Returns whether a sum of the tiles may be NaN or infinite where the exact type's sum is finite."""

    @abstractmethod
    def pack_b(self) -> None:
        """Creates the code that packs all of B."""

    @abstractmethod
    def pack_a(self, first: Value, rows: BlockExtent) -> None:
        """Creates the code that packs a strip: ``rows`` rows of A from row ``first`` on."""

    @abstractmethod
    def multiply(self, at: TilePanel, sums: list[Value], across: int) -> list[Value]:
        """Creates the products of one step along K, added to ``sums``; returns the new sums.

        ``sums``: tiles, row by row of ``across`` tiles each.
        """


def accumulator_type(matmul: BufferMatmul) -> Type:
    """Returns the MLIR type of an AMX tile of 16 x 16 sums, of the element type of C."""
    return ir.Type.parse(f"!x86.amx.tile<{K_GROUPS}x{K_GROUPS}x{matmul.accumulator_element}>")


@final
@dataclass(frozen=True, eq=False)
class ElementProducts(TileProducts):
    """Tiles of the elements of A and B themselves, bf16 or i8: one product of two tiles for each sum."""

    matmul: BufferMatmul
    columns: BlockExtent  # of C
    tiles: tuple[int, int]  # of sums: down, across
    a: KGroupSource
    b: KGroupSource
    packed_a: amx_tiles.PackedTiles | None  # None: A is read where it lies
    packed_b: amx_tiles.PackedTiles | amx_tiles.WeightTiles
    fetches: bool  # the next panel of a weight

    @classmethod
    def of(
        cls,
        matmul: BufferMatmul,
        columns: BlockExtent,
        tiles: tuple[int, int],
        packs_a: bool,
        weight: KGroupWeights | None,
        fetches: bool,
    ) -> "ElementProducts":
        """Creates the buffers of packed tiles; returns the products that read them.

        A has a buffer only if ``packs_a``, and B only if ``weight``, B as packed by the caller, is None.
        """
        a = KGroupSource(matmul.a, matmul.layout != "tn")
        b = KGroupSource(matmul.b, matmul.layout == "nt")
        k_steps = -(-matmul.k // a.depth)
        packed_b: amx_tiles.PackedTiles | amx_tiles.WeightTiles
        if weight:
            packed_b = amx_tiles.WeightTiles(weight, a.depth)
        else:
            panels = columns.steps(K_GROUPS * tiles[1])
            packed_b = amx_tiles.PackedTiles.of(b, panels, k_steps, tiles[1])
        packed_a = amx_tiles.PackedTiles.of(a, 1, k_steps, tiles[0]) if packs_a else None
        return cls(matmul, columns, tiles, a, b, packed_a, packed_b, fetches)

    @property
    def steps(self) -> int:
        return self.packed_b.steps

    @property
    def can_be_nan(self) -> bool:
        return False

    def pack_b(self) -> None:
        if isinstance(self.packed_b, amx_tiles.PackedTiles):
            amx_packing.pack_b_to_tiles(
                self.b, self.columns, self.matmul.k, self.tiles[1], self.packed_b.store_b
            )

    def pack_a(self, first: Value, rows: BlockExtent) -> None:
        if self.packed_a is not None:
            amx_packing.pack_a_to_tiles(self.a, first, rows, self.matmul.k, self.packed_a.store_a)

    def multiply(self, at: TilePanel, sums: list[Value], across: int) -> list[Value]:
        of_a = [self._load_a(at.first, i, at.step) for i in range(len(sums) // across)]
        row = self.packed_b.row(at.panel, at.step)
        if self.fetches and isinstance(self.packed_b, amx_tiles.WeightTiles):
            strips = BlockExtent(self.matmul.m).steps(self.tiles[0] * K_GROUPS)
            rows = -(-K_GROUPS // strips)
            self.packed_b.fetch(total(at.panel, index(1)), at.step, at.strip, rows, self.tiles[1])
        return multiplied_by_columns(
            sums,
            of_a,
            lambda column: self.packed_b.load(self._type, row, column),
            AmxProducts.of(self.matmul.element).after,
        )

    @property
    def _type(self) -> Type:
        return ir.Type.parse(f"!x86.amx.tile<{K_GROUPS}x{self.a.depth}x{self.matmul.element}>")

    def _load_a(self, first: Value, tile: int, step: Value) -> Value:
        if self.packed_a is None:
            row = plus(first, K_GROUPS * tile)
            column = times(step, self.a.depth)
            return amx_tiles.tile_load(self._type, self.a.buffer, row, column)
        row = plus(self.packed_a.row(index(0), step), K_GROUPS * tile)
        return amx_tiles.tile_load(self._type, self.packed_a.memory, row, index(0))
