"""The transform op ``tuner.convolution_tiles``."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, product

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.cpu_ops.amx_tiles import tile_load, tile_store
from tuner.mlir.cpu_ops.buffer_matmul import fill_before
from tuner.mlir.cpu_ops.vnni_packing import K_GROUPS
from tuner.mlir.dialect import InPlaceOp
from tuner.mlir.ir.building import DYNAMIC, index, loop, times, total, value
from tuner.mlir.ir.reading import walk
from tuner.models.ops.convolutions.channel_k_groups import PAIR
from tuner.models.ops.convolutions.convolution_operands import (
    FILTERS,
    INPUT,
    SUMS,
    WEIGHTS,
    ConvolutionTile,
    Terms,
)
from tuner.models.ops.convolutions.reorder_weights import CONTRACTION

REGISTERS = 8  # tile registers of a processor with AMX
At = dict[int, Value]  # dimension -> index


class ConvolutionTilesOp(InPlaceOp, name="convolution_tiles"):
    """``tuner.convolution_tiles``: a tile of a convolution on buffers becomes sums in AMX tiles.

    Takes a function on memrefs. Each ``linalg.generic`` with the attribute ``contraction`` is a convolution
    of the size of one tile of the schedule, on operands that ``tuner.reorder_weights {tiles = 1}`` has made:
    their elements are K groups, i32 of two adjacent bf16 channels, in equal steps of at most 16. A tile of A
    is up to 16 filters x 16 K groups, one of B up to 16 K groups x 16 adjacent pixels of a row, loaded from
    where they lie; all sums stay in tile registers over the whole window. A ``linalg.fill`` of the sums with
    zero before the convolution is replaced too. With 12 K groups in a step:

        linalg.fill ins(%zero : f32) outs(%sums : memref<1x16x1x14xf32>)
        linalg.generic {...} ins(%input, %weights : ...) outs(%sums : ...) attrs = {contraction} {
      becomes, inside of the loops over the window and over steps
        %a = memref.subview %weights[%h, %w, %filter, %first] [1, 1, 16, 12] [1, 1, 1, 1] : ...
        %ta = x86.amx.tile_load %a[%c0, %c0] : ... into !x86.amx.tile<16x24xbf16>
        %b = memref.subview %input[%image, %first, %row, %column] [1, 12, 1, 14] [1, 1, 1, 1] : ...
        %tb = x86.amx.tile_load %b[%c0, %c0] : ... into !x86.amx.tile<12x28xbf16>
        %next = x86.amx.tile_mulf %ta, %tb, %before : ...

    The handle (a func.func) stays valid. Silenceable failure: a convolution that is not of memrefs of K
    groups of static sizes with adjacent pixels, or whose sums and operands need more than 8 tile registers.
    """

    def change(self, function: Op) -> Refusal | None:
        ops = [op for op in walk(function, "linalg.generic") if CONTRACTION in op.attributes]
        for op in ops:
            tile = ConvolutionTile.of(op, FILTERS)
            if isinstance(tile, Refusal):
                return Refusal(f"found {tile}, allowed memrefs of static sizes")
            block = _Block.of(tile)
            if isinstance(block, Refusal):
                return block
            with ir.InsertionPoint(op), op.location:
                block.build()
        return None


@dataclass(frozen=True)
class _Part:
    """The sums of one tile register: some filters x adjacent pixels of a row."""

    filter: int
    filters: int
    position: tuple[tuple[int, int], ...]  # (dimension, first element) of the pixels
    pixels: int


@dataclass(frozen=True, eq=False)
class _Block:
    """A tile of a convolution; its methods create its code at the current insertion point."""

    tile: ConvolutionTile
    filters: int  # the dimension of the filters
    pixels: int  # the dimension of the pixels of a row
    channels: int  # the dimension of the K groups of channels
    parts: tuple[_Part, ...]

    @classmethod
    def of(cls, tile: ConvolutionTile) -> "_Block | Refusal":
        maps = tile.maps
        filters, channels = (next(iter(maps[WEIGHTS][dimension])) for dimension in (-2, -1))
        pixels = next(iter(maps[SUMS][-1]))
        if tile.k_group_element != "bf16" or pixels == filters or maps[INPUT][-1].get(pixels) != 1:
            return Refusal(
                "found a convolution of other operands, allowed K groups of channels and adjacent pixels"
            )
        others = [number for number in chain(*tile.maps[SUMS]) if number not in (filters, pixels)]
        starts = product(
            range(0, tile.sizes[filters], K_GROUPS),
            product(*(range(tile.sizes[dimension]) for dimension in others)),
            range(0, tile.sizes[pixels], K_GROUPS),
        )
        parts = []
        for first, indices, pixel in starts:
            position = (*zip(others, indices, strict=True), (pixels, pixel))
            count = min(K_GROUPS, tile.sizes[filters] - first)
            parts.append(_Part(first, count, position, min(K_GROUPS, tile.sizes[pixels] - pixel)))
        # a tile register per sum, per group of filters, and per width of pixels
        of_a = {(part.filter, part.filters) for part in parts}
        needed = len(parts) + len(of_a) + len({part.pixels for part in parts})
        if needed > REGISTERS:
            return Refusal(
                f"found {len(parts)} sums, which need {needed} tile registers, allowed {REGISTERS}"
            )
        return cls(tile, filters, pixels, channels, tuple(parts))

    @property
    def _depth(self) -> int:
        k_groups = self.tile.sizes[self.channels]
        return k_groups // -(-k_groups // K_GROUPS)

    def build(self) -> None:
        op = self.tile.op
        fill = fill_before(op)
        sizes = self.tile.sizes
        window = [dimension for dimension in self.tile.reduced if dimension != self.channels]
        steps = sizes[self.channels] // self._depth
        sums = self._over(
            [
                *((dimension, sizes[dimension], 1) for dimension in window),
                (self.channels, steps, self._depth),
            ],
            {},
            [self._start(tile_part, adds=fill is None) for tile_part in self.parts],
        )
        for part, tile in zip(self.parts, sums, strict=True):
            tile_store(tile, self._sums(part), index(0), index(0))
        for replaced in (op, fill):
            if replaced is not None:
                replaced.erase()

    def _over(self, loops: Sequence[tuple[int, int, int]], at: At, sums: Sequence[Value]) -> Sequence[Value]:
        if not loops:
            return self._products(at, sums)
        (dimension, count, step), *inner = loops

        def body(number: Value, *before: Value) -> Sequence[Value]:
            return self._over(inner, at | {dimension: times(number, step)}, before)

        if count == 1:
            return body(index(0), *sums)
        return loop(0, count, body, sums)

    def _products(self, at: At, sums: Sequence[Value]) -> list[Value]:
        of_a: dict[int, Value] = {}
        of_b: dict[tuple[tuple[int, int], ...], Value] = {}
        after = list(sums)
        order = sorted(range(len(self.parts)), key=lambda number: self.parts[number].position)
        for number in order:  # a tile of B is used up before the next is loaded
            part = self.parts[number]
            if part.filter not in of_a:
                indices = at | {self.filters: index(part.filter)}
                sizes = {self.filters: part.filters, self.channels: self._depth}
                buffer = self._view(WEIGHTS, indices, sizes)
                of_a[part.filter] = tile_load(
                    _kind(part.filters, self._depth * PAIR, "bf16"), buffer, index(0), index(0)
                )
            if part.position not in of_b:
                of_b[part.position] = self._load_b(part, at)
            operands = (of_a[part.filter], of_b[part.position], after[number])
            after[number] = value("x86.amx.tile_mulf", _accumulator_kind(part), *operands)
        return after

    def _load_b(self, part: _Part, at: At) -> Value:
        indices = at | {dimension: index(first) for dimension, first in part.position}
        buffer = self._view(INPUT, indices, {self.channels: self._depth, self.pixels: part.pixels})
        return tile_load(_kind(self._depth, part.pixels * PAIR, "bf16"), buffer, index(0), index(0))

    def _sums(self, part: _Part) -> Value:
        indices = {dimension: index(first) for dimension, first in part.position}
        indices |= {self.filters: index(part.filter)}
        return self._view(SUMS, indices, {self.filters: part.filters, self.pixels: part.pixels})

    def _start(self, part: _Part, *, adds: bool) -> Value:
        type_ = _accumulator_kind(part)
        if not adds:
            return value("x86.amx.tile_zero", type_)
        return tile_load(type_, self._sums(part), index(0), index(0))

    def _view(self, number: int, indices: At, sizes: dict[int, int]) -> Value:
        buffer = self.tile.buffer(number)
        maps = self.tile.maps[number]
        type_ = ir.MemRefType(buffer.type)
        strides = type_.get_strides_and_offset()[0]
        lines = [next((term for term in terms if term in sizes), None) for terms in maps]
        # the view has the dimensions in `sizes`; along the others it is one element, and drops them
        every = [1 if line is None else sizes[line] for line in lines]
        kept = [side for side, line in enumerate(lines) if line is not None]
        layout = ir.StridedLayoutAttr.get(DYNAMIC, [strides[side] for side in kept])
        result = ir.MemRefType.get([every[side] for side in kept], type_.element_type, layout)
        offsets = [_at(terms, indices) for terms in maps]
        return value(
            "memref.subview",
            result,
            buffer,
            *offsets,
            static_offsets=ir.DenseI64ArrayAttr.get([DYNAMIC] * len(maps)),
            static_sizes=ir.DenseI64ArrayAttr.get(every),
            static_strides=ir.DenseI64ArrayAttr.get([1] * len(maps)),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, len(maps), 0, 0]),
        )


def _at(terms: Terms, indices: At) -> Value:
    """Creates the index that ``terms`` give: the sum over dimensions of (index * factor).

    Dimensions that are not in ``indices`` have index 0.
    """
    sum_ = index(0)
    for dimension, factor in terms.items():
        if dimension in indices:
            sum_ = total(sum_, times(indices[dimension], factor))
    return sum_


def _kind(rows: int, columns: int, element: str) -> Type:
    return ir.Type.parse(f"!x86.amx.tile<{rows}x{columns}x{element}>")


def _accumulator_kind(part: _Part) -> Type:
    return _kind(part.filters, part.pixels, "f32")
