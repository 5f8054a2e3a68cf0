"""Groups of pixels of a convolution's tile: what is in registers at the same time, and what it fetches ahead.

A pixel is a position in the tile's output, without the dimension of the lanes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tuner.mlir.bindings import Value, ir
from tuner.mlir.cpu_ops.vnni_packing import LINE_BYTES
from tuner.mlir.ir.building import fetch, index, plus, reinterpreted, times, total, value
from tuner.mlir.ir.memrefs import element_bytes
from tuner.mlir.ir.reading import constant_of, op_of
from tuner.models.ops.convolutions.convolution_operands import WEIGHTS, ConvolutionTile, TileElement

LoopIndices = dict[int, Value]  # dimension -> its index in the loops


@dataclass(frozen=True)
class PixelRun:
    """Adjacent groups of pixels of one size in a tile; sums of a group are in registers at the same time."""

    first_group: int
    first_pixel: int
    groups: int
    size: int  # pixels of a group


def runs_of_groups(pixels: int, most: int) -> list[PixelRun]:
    """Returns runs that divide ``pixels`` pixels into the fewest groups of at most ``most``.

    Sizes of groups differ by at most 1; a run has the groups of one size.
    """
    groups = -(-pixels // most)
    size, larger = divmod(pixels, groups)
    runs = [PixelRun(0, 0, larger, size + 1), PixelRun(larger, larger * (size + 1), groups - larger, size)]
    return [run for run in runs if run.groups]


@dataclass(frozen=True, eq=False)
class PanelShare:
    """What a tile, or a group of its pixels, fetches of the next panel of weights, a portion in each step."""

    weights: Value  # all panels, as one dimension
    start: Value  # index of the tile's first element
    stride: int  # elements that a step fetches

    @classmethod
    def of(
        cls, tile: ConvolutionTile, weights: Value, panel: Value, group: Value | None, groups: int
    ) -> "PanelShare":
        """Returns what a group of pixels fetches while its tile reads panel ``panel`` of ``weights``.

        ``group``: the index of the group among the ``groups`` of the tile; None: the tile is one group.
        Creates the index at which the share begins.
        """
        type_ = ir.MemRefType(weights.type)
        shape = type_.shape
        elements = math.prod(shape[1:])
        number, tiles = _tile_of_panel(tile)
        if group is not None:
            number = total(times(number, groups), group)
            tiles *= groups
        line = ir.MemRefType.get([math.prod(shape)], type_.element_type)
        start = total(times(plus(panel, 1), elements), times(number, -(-elements // tiles)))
        return cls(reinterpreted(weights, line), start, -(-shape[-1] // tiles))

    def fetch(self, step: Value) -> None:
        """Creates the prefetches of one step; ``step``: its index among the steps of the tile."""
        first = total(self.start, times(step, self.stride))
        line = LINE_BYTES // element_bytes(ir.MemRefType(self.weights.type).element_type)
        for further in range(0, self.stride, line):
            fetch(self.weights, plus(first, further), locality=2)


def _tile_of_panel(tile: ConvolutionTile) -> tuple[Value, int]:
    """Creates the index of a tile among the tiles that read its panel of weights.

    Returns (index, number of these tiles). They are the iterations of the loops inside of the loop over
    panels; (0, 1) if bounds of these loops are not known.
    """
    number = index(0)
    tiles = 1
    for variable, bounds in reversed([*_loops_of_panel(tile)]):
        low, end, step = map(constant_of, bounds)
        if low is None or end is None or step is None:
            return index(0), 1
        count = -(-(end - low) // step)
        iteration = value("arith.divui", ir.IndexType.get(), plus(variable, -low), index(step))
        number = total(times(number, count), iteration)
        tiles *= count
    return number, tiles


def _loops_of_panel(tile: ConvolutionTile) -> Iterator[tuple[Value, list[Value]]]:
    """Yields (index, [first, end, step]) of the loops inside of the loop over panels, the innermost first."""
    view = op_of(tile.buffer(WEIGHTS), "memref.subview")
    around = tile.op.parent
    while view is not None and around.name == "scf.for":
        variable = around.regions[0].blocks[0].arguments[0]
        if variable == view.operands[1]:
            return
        yield variable, list(around.operands)[:3]
        around = around.parent


@dataclass(frozen=True, eq=False)
class Pixel:
    """A pixel of a tile: its index along dimension d is ``element[d] + place[d]``, 0 for a missing entry."""

    element: TileElement
    place: LoopIndices


@dataclass(frozen=True, eq=False)
class PixelGroup:
    """Pixels whose sums are in registers at the same time, and what they fetch of the next panel."""

    pixels: tuple[Pixel, ...]
    share: PanelShare | None  # None: nothing

    @classmethod
    def of_tile(cls, tile: ConvolutionTile, share: PanelShare | None) -> "PixelGroup":
        """Returns one group of all pixels of a tile.

        ``share``: what the tile fetches of the next panel; None: nothing.
        """
        return cls(tuple(Pixel(pixel, {}) for pixel in tile.pixels()), share)


def pixels_from(tile: ConvolutionTile, start: Value, count: int) -> Iterator[Pixel]:
    """Yields ``count`` pixels of a tile from the pixel with index ``start`` on; creates their indices."""
    first = next(tile.pixels())
    several = [dimension for dimension in first if dimension != tile.lane and tile.sizes[dimension] > 1]
    for number in range(count):
        if len(several) == 1:  # adjacent: one register has the address of all
            yield Pixel(first | {several[0]: number}, {several[0]: start})
            continue
        left = plus(start, number)
        place: LoopIndices = {}
        for dimension in reversed(several):
            size = index(tile.sizes[dimension])
            place[dimension] = value("arith.remui", ir.IndexType.get(), left, size)
            left = value("arith.divui", ir.IndexType.get(), left, size)
        yield Pixel(first, place)
