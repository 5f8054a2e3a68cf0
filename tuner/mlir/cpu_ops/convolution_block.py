"""The transform op ``tuner.convolution_block``."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.cpu_ops.buffer_matmul import fill_before
from tuner.mlir.cpu_ops.channel_pairs import dot_product
from tuner.mlir.cpu_ops.convolution_operands import (
    FILTERS,
    INPUT,
    LANES_ALONG,
    PLANES,
    SUMS,
    WEIGHTS,
    ConvolutionTile,
    TileElement,
)
from tuner.mlir.cpu_ops.reorder_weights import CONTRACTION, panels_of
from tuner.mlir.cpu_ops.vector_lanes import load_lanes, multiply_add, store_lanes, transposed_square
from tuner.mlir.dialect import InPlaceOp, attribute, text
from tuner.mlir.ir.building import DYNAMIC, fetch, index, loop, plus, reinterpreted, times, total, value, zero
from tuner.mlir.ir.memrefs import element_bytes
from tuner.mlir.ir.reading import constant_of, op_of, walk

LANES = 16  # elements of f32 of a register
LINE_BYTES = 64  # of a line of the cache
FETCHES_INPUT = 1  # value of the attribute prefetch
PRODUCTS_LIMIT = 256  # of one step; the time of LLVM grows with their number
LoopIndices = dict[int, Value]  # dimension that is summed up -> its index in the loops


class ConvolutionBlockOp(InPlaceOp, name="convolution_block"):
    """``tuner.convolution_block``: a tile of a convolution on buffers becomes sums in vector registers.

    Takes a function whose ``linalg.generic`` ops with the attribute ``contraction`` are convolutions on
    memrefs, as ``tuner.reorder_weights`` makes them, each one tile of the schedule. The lanes of a register
    are filters: each step of the window and the channels multiplies the weights of the tile's filters by one
    element of the input for each pixel. All sums stay in registers over the whole window. Where filters are
    not the last dimension of the output, squares of sums are transposed. With ``along = "last"``, which
    depthwise convolutions need, the lanes are the last dimension of the output. A ``linalg.fill`` of the tile
    with zero before the convolution is replaced too.

    A pixel is a position in the tile's output, without the dimension of the lanes; a plane is all of the
    input at one index of the dimension that the op's attribute ``planes`` names. Planes that are zeros, as
    ``planes`` says, are not multiplied: a loop over planes of the window begins after them or ends before
    them, if all pixels of the tile are of one plane.

    Where lanes are pixels of a row, and the tile has several rows, one iteration goes through all rows of the
    window, and loads each register of the input once.

    K groups, pairs of bf16, are multiplied by vdpbf16ps of AVX512-BF16, which takes subnormal numbers as 0.
    Weights that are an argument ``tuner.weight``, and are read by tiles of filters, become panels, one for
    each tile of filters; ``tuner.packing`` has their width.

        func.func @f(%x: memref<1x3x6x6xf32>, %w: memref<3x3x3x32xf32> {tuner.weight}, ...) {
          %weights = memref.subview %w[0, 0, 0, %i] [3, 3, 3, 16] [1, 1, 1, 1] : ...
          linalg.fill ins(%zero : f32) outs(%sums : memref<1x16x1x4xf32>)
          linalg.generic {...} ins(%input, %weights : ...) outs(%sums : ...) attrs = {contraction} {
      becomes, with the sums of 4 pixels in 4 registers of 16 filters
        func.func @f(%x: ..., %w: memref<2x3x3x3x16xf32> {..., tuner.packing = 16 : i64, tuner.weight}, ...) {
          %in_channel:4 = scf.for %c = ... -> (vector<16xf32>, ..., vector<16xf32>) {
            %weights = vector.load %w[%panel, %row, %column, %c, %c0] : memref<2x3x3x3x16xf32>, vector<16xf32>
            %element = memref.load %input[%c0, %c, %row, %column] : ...
            %every = vector.broadcast %element : f32 to vector<16xf32>
            %sum = vector.fma %every, %weights, %before : vector<16xf32>

    Attributes: ``along``, the dimension of a register's lanes: "filters" (default), or "last" for the last
    dimension of the output; i64: ``lanes``, elements of a register (default 16); ``channels``, how many
    channels are summed over the whole window before the next ones (default 0: all); ``unroll``, channels in
    one iteration of the innermost loop (default 1); ``prefetch`` (default 0: nothing is fetched ahead). With
    2 each tile fetches its share of the next panel of weights, an even portion in each step; else the first
    tile of a panel waits for all of it. With 1 also what the next tile of a row reads, where pixels are the
    last dimension of the input. ``channels`` and ``unroll`` have no effect where they do not divide. Channels
    of bf16 count as K groups, in pairs. The handle (a func.func) stays valid. Silenceable failure: a
    convolution that is not of memrefs of static sizes, an unknown ``along``, and K groups with other than 16
    ``lanes``.

    Source: E. Georganas et al., https://arxiv.org/abs/1808.05567, without its blocked layouts.
    """

    def change(self, function: Op) -> Refusal | None:
        along = text(self, "along", FILTERS)
        if along not in LANES_ALONG:
            return Refusal(f"along: found {along}, allowed {' or '.join(LANES_ALONG)}")
        ops = [op for op in walk(function, "linalg.generic") if CONTRACTION in op.attributes]
        tiles = [ConvolutionTile.of(op, along) for op in ops]
        lanes = attribute(self, "lanes", LANES)
        for tile in tiles:
            if isinstance(tile, Refusal):
                return Refusal(f"found {tile}, allowed memrefs of static sizes")
            if tile.has_k_groups and lanes != LANES:
                return Refusal(f"found K groups with {lanes} lanes, allowed {LANES}")
            with ir.InsertionPoint(tile.op), tile.op.location:
                _Block.of(
                    tile,
                    function,
                    lanes,
                    attribute(self, "channels", 0),
                    attribute(self, "unroll", 1),
                    attribute(self, "prefetch", 0),
                ).build()
        return None


@dataclass(frozen=True, eq=False)
class _Share:
    """What a tile fetches of the panel of weights after its own: ``stride`` elements in each step."""

    weights: Value  # all panels, as one dimension
    start: Value  # index of the tile's first element
    stride: int

    @classmethod
    def of(cls, tile: ConvolutionTile, weights: Value, panel: Value) -> "_Share":
        """Returns the share of a tile that reads ``weights[panel]``; creates its start."""
        type_ = ir.MemRefType(weights.type)
        shape = type_.shape
        elements = math.prod(shape[1:])
        number, tiles = _tile_of_panel(tile)
        line = ir.MemRefType.get([math.prod(shape)], type_.element_type)
        start = total(times(plus(panel, 1), elements), times(number, -(-elements // tiles)))
        return cls(reinterpreted(weights, line), start, -(-shape[-1] // tiles))

    def fetch(self, step: Value) -> None:
        """Creates the prefetches of a step, whose index among those of the tile is ``step``."""
        first = total(self.start, times(step, self.stride))
        line = LINE_BYTES // element_bytes(ir.MemRefType(self.weights.type).element_type)
        for further in range(0, self.stride, line):
            fetch(self.weights, plus(first, further), locality=2)


def _tile_of_panel(tile: ConvolutionTile) -> tuple[Value, int]:
    """Creates the index of a tile among the tiles that read its panel of weights; returns their number, too.

    These are the iterations of the loops inside of the loop over panels. The number is 1 where bounds are not
    known.
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
    """Yields (index, [first, end, step]) of the loops in that over panels, the innermost first."""
    view = op_of(tile.buffer(WEIGHTS), "memref.subview")
    around = tile.op.parent
    while view is not None and around.name == "scf.for":
        variable = around.regions[0].blocks[0].arguments[0]
        if variable == view.operands[1]:
            return
        yield variable, list(around.operands)[:3]
        around = around.parent


@dataclass(frozen=True, eq=False)
class _Block:
    """Creates the code of a tile: per pixel, registers of sums, whose lanes are the tile's lane dimension.

    ``tile.maps[operand][dimension]``, {loop: factor}, is the index along a dimension of the input, the
    weights or the sums: the sum of each loop's index times its factor.
    """

    tile: ConvolutionTile
    pixels: tuple[TileElement, ...]  # of the tile
    weights: Value
    panel: tuple[Value, ...]  # the index of the weights' panel, if they are panels
    lanes: int
    channels: int
    unroll: int
    share: _Share | None  # of the next panel of weights, None: is not fetched
    fetches_input: bool

    @classmethod
    def of(
        cls, tile: ConvolutionTile, function: Op, lanes: int, channels: int, unroll: int, prefetch: int
    ) -> "_Block":
        weights, panel = panels_of(tile, function)
        share = None
        if panel and prefetch:
            share = _Share.of(tile, weights, *panel)
        pixels = tuple(tile.pixels())
        return cls(tile, pixels, weights, panel, lanes, channels, unroll, share, prefetch == FETCHES_INPUT)

    @property
    def _counts(self) -> list[int]:
        """Returns the lanes in use, per register of a pixel."""
        size = self.tile.sizes[self.tile.lane]
        return [min(self.lanes, size - start) for start in range(0, size, self.lanes)]

    def build(self) -> None:
        op = self.tile.op
        fill = fill_before(op)
        view = op_of(self.tile.buffer(WEIGHTS), "memref.subview")
        start = [zero(ir.VectorType.get([self.lanes], self.tile.element))] * (
            len(self.pixels) * len(self._counts)
        )
        sums = self._over(self._loops(), {}, start)
        adds = fill is None
        parts = len(self._counts)
        for part, count in enumerate(self._counts):
            # sums are ordered by pixel, then by part of the lanes
            of_part = sums[part::parts]
            first = part * self.lanes
            if not self.tile.is_stored_along_lanes:
                self._store_transposed(of_part, first, count, adds=adds)
                continue
            for vector, pixel in zip(of_part, self.pixels, strict=True):
                indices = self._place(pixel | {self.tile.lane: first})
                store_lanes(vector, self.tile.buffer(SUMS), indices, count, adds=adds)
        for replaced in (op, fill, view if self.panel else None):
            if replaced is not None:
                replaced.erase()

    def _loops(self) -> list[tuple[int, int, int]]:
        """Returns (dimension, count, step) of the loops over what is summed up, the outermost first."""
        sizes = self.tile.sizes
        loops = [(number, sizes[number], 1) for number in self.tile.reduced if number != self._unrolled]
        if not loops:
            return []
        *outer, (last, count, step) = loops
        is_blocked = 0 < self.channels < count and count % self.channels == 0
        if is_blocked:
            return [(last, count // self.channels, self.channels), *outer, (last, self.channels, step)]
        return loops

    @cached_property
    def _unrolled(self) -> int | None:
        """Returns the dimension of the window that one step goes through, None if a step has one element.

        With all of its elements at hand a register of the input is loaded once, not once for each. Most of
        these loads cross a line of the cache, and so take longer than the products.
        """
        shared = self.tile.shared
        if shared is not None and len(self.pixels) * self.tile.sizes[shared] <= PRODUCTS_LIMIT:
            return shared
        return None

    def _over(
        self, loops: list[tuple[int, int, int]], at: LoopIndices, sums: Sequence[Value]
    ) -> Sequence[Value]:
        if not loops:
            return self._step(at, sums)
        (dimension, count, step), *inner = loops
        bounds = self._planes(dimension) if inner else None  # the innermost may be unrolled
        # only the innermost loop is unrolled, and only without a remainder
        unroll = self.unroll if not inner and count % self.unroll == 0 else 1

        def body(number: Value, *before: Value) -> Sequence[Value]:
            after: Sequence[Value] = before
            for copy_number in range(unroll):
                position = plus(times(number, step * unroll), copy_number * step)
                position = total(at[dimension], position) if dimension in at else position
                after = self._over(inner, at | {dimension: position}, after)
            return after

        if bounds is not None:
            return loop(*bounds, body, sums)
        if count == unroll:
            return body(index(0), *sums)
        return loop(0, count // unroll, body, sums)

    def _planes(self, dimension: int) -> tuple[Value, Value] | None:
        """Creates the bounds of a loop over planes of the window, without those that read planes of zeros.

        None where it is another loop, or where not all pixels of the tile read the same planes.
        """
        tile = self.tile
        if PLANES not in tile.op.attributes:
            return None
        side, first, end = ir.DenseI64ArrayAttr(tile.op.attributes[PLANES])
        terms = tile.maps[INPUT][side]
        view = op_of(tile.buffer(INPUT), "memref.subview")
        if terms.get(dimension) != 1 or dimension not in tile.reduced or view is None:
            return None
        if any(tile.sizes[term] > 1 for term in terms if term not in tile.reduced):
            return None
        if op_of(view.operands[0], "memref.subview") is not None:
            return None  # the place in the whole input is not known
        operands = iter(list(view.operands)[1:])
        offsets = [
            next(operands) if offset == DYNAMIC else index(offset)
            for offset in view.attributes["static_offsets"]
        ]
        type_ = ir.IndexType.get()
        low, high = (value("arith.subi", type_, index(plane), offsets[side]) for plane in (first, end))
        low = value("arith.maxsi", type_, low, index(0))
        return low, value("arith.minsi", type_, high, index(tile.sizes[dimension]))

    def _step(self, at: LoopIndices, sums: Sequence[Value]) -> list[Value]:
        known: dict[tuple[object, ...], Value] = {}
        if self.fetches_input:
            self._prefetch(at, known)
        if self.share is not None:
            self.share.fetch(self._number_of_step(at, known))
        multiply = dot_product if self.tile.has_k_groups else multiply_add
        after = [*sums]
        for number, element in self._products:
            count = self._counts[number % len(self._counts)]
            left, right = (self._operand(operand, at, element, count, known) for operand in (INPUT, WEIGHTS))
            after[number] = multiply(left, right, after[number])
        return after

    @cached_property
    def _products(self) -> list[tuple[int, TileElement]]:
        """Returns what a step multiplies: the number of a sum, and its element with that of the window."""
        starts = range(0, self.lanes * len(self._counts), self.lanes)
        sums = [pixel | {self.tile.lane: start} for pixel, start in product(self.pixels, starts)]
        if self._unrolled is None:
            return [*enumerate(sums)]
        window = range(self.tile.sizes[self._unrolled])
        elements = product(window, enumerate(sums))
        products = [(number, element | {self._unrolled: row}) for row, (number, element) in elements]
        # those of one register of the input follow each other: it need not be kept for later
        return sorted(products, key=lambda pair: self.tile.constants(INPUT, pair[1]))

    def _operand(
        self,
        number: int,
        at: LoopIndices,
        element: TileElement,
        count: int,
        known: dict[tuple[object, ...], Value],
    ) -> Value:
        """Returns a register of the input or the weights; creates its load where it is not ``known`` yet."""
        constants = self.tile.constants(number, element)
        key = (number, *constants)
        if key not in known:
            indices = [
                plus(self._base(number, dimension, at, known), constant)
                for dimension, constant in enumerate(constants)
            ]
            is_input = number == INPUT
            buffer = self.tile.buffer(INPUT) if is_input else self.weights
            indices = indices if is_input else [*self.panel, *indices]
            type_ = ir.VectorType.get([self.lanes], buffer.type.element_type)
            known[key] = load_lanes(buffer, indices, type_, count, self.tile.steps(number))
        return known[key]

    def _prefetch(self, at: LoopIndices, known: dict[tuple[object, ...], Value]) -> None:
        """Creates prefetches of the first and last element that the next tile of a row reads at this step."""
        last = self.tile.maps[INPUT][-1]
        pixel = next((dimension for dimension in last if dimension not in self.tile.reduced), None)
        if pixel is None or pixel not in set(chain.from_iterable(self.tile.maps[SUMS])):
            return
        width = self.tile.sizes[pixel]
        for distance in dict.fromkeys((width, 2 * width - 1)):
            indices = self._bases(INPUT, at, known)
            indices[-1] = plus(indices[-1], distance * last[pixel])
            fetch(self.tile.buffer(INPUT), *indices, locality=3)

    def _number_of_step(self, at: LoopIndices, known: dict[tuple[object, ...], Value]) -> Value:
        """Creates the index of a step among those of the tile, in the order of the weights."""
        *sizes, _ = ir.MemRefType(self.tile.buffer(WEIGHTS).type).shape
        number = index(0)
        for base, size in zip(self._bases(WEIGHTS, at, known), sizes, strict=False):
            number = total(times(number, size), base)
        return number

    def _bases(self, number: int, at: LoopIndices, known: dict[tuple[object, ...], Value]) -> list[Value]:
        return [self._base(number, side, at, known) for side in range(len(self.tile.maps[number]))]

    def _base(self, number: int, side: int, at: LoopIndices, known: dict[tuple[object, ...], Value]) -> Value:
        key = ("base", number, side)
        if key not in known:
            terms = self.tile.maps[number][side].items()
            parts = [times(at[dimension], factor) for dimension, factor in terms if dimension in at]
            base = parts[0] if parts else index(0)
            for part in parts[1:]:
                base = total(base, part)
            known[key] = base
        return known[key]

    def _place(self, element: TileElement) -> list[Value]:
        return [index(element[dimension]) for dimension in chain(*self.tile.maps[SUMS])]

    def _store_transposed(self, sums: Sequence[Value], first: int, count: int, *, adds: bool) -> None:
        """Creates the stores of sums whose pixels are adjacent in the buffer, not their lanes.

        The lanes of a single pixel are adjacent, too: stores of one element each would be merged by LLVM, in
        time that grows with the square of their number (509 filters: 15 s).
        """
        buffer, row = self._rows_of_pixels()
        if len(self.pixels) == 1 and ir.MemRefType(buffer.type).rank == 2:
            line = ir.MemRefType.get([self.tile.sizes[self.tile.lane]], self.tile.element)
            store_lanes(sums[0], reinterpreted(buffer, line), [index(first)], count, adds=adds)
            return
        is_flat = row == len(self.pixels) and ir.MemRefType(buffer.type).rank == 2
        for line, first_lane in product(range(0, len(sums), row), range(0, row, self.lanes)):
            start = line + first_lane
            width = min(self.lanes, row - first_lane)
            for lane, vector in enumerate(transposed_square(sums[start : start + width])[:count]):
                indices = self._place(self.pixels[start] | {self.tile.lane: first + lane})
                indices = [index(first + lane), index(start)] if is_flat else indices
                store_lanes(vector, buffer, indices, width, adds=adds)

    def _rows_of_pixels(self) -> tuple[Value, int]:
        """Returns the buffer of sums, as lanes x pixels if without gaps, and how many pixels are adjacent."""
        sums = self.tile.buffer(SUMS)
        type_ = ir.MemRefType(sums.type)
        dimensions = list(chain.from_iterable(self.tile.maps[SUMS]))
        lead = type_.shape[: dimensions.index(self.tile.lane)]
        if type_ != ir.MemRefType.get(type_.shape, type_.element_type) or any(size != 1 for size in lead):
            return sums, type_.shape[-1]
        flat = ir.MemRefType.get([self.tile.sizes[self.tile.lane], len(self.pixels)], type_.element_type)
        return reinterpreted(sums, flat), len(self.pixels)
