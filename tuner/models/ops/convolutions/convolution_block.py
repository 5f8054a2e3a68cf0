"""The transform op ``tuner.convolution_block``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, product

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.cpu_ops.buffer_matmul import fill_before
from tuner.mlir.cpu_ops.instructions import Products, SingleProducts, products_of
from tuner.mlir.cpu_ops.vector_lanes import load_lanes, store_lanes, transposed_square
from tuner.mlir.cpu_ops.vnni_packing import K_GROUP_BITS
from tuner.mlir.dialect import InPlaceOp, attribute, text
from tuner.mlir.ir.building import (
    DYNAMIC,
    as_index,
    fetch,
    index,
    loop,
    plus,
    reinterpreted,
    rolled_loop,
    splat,
    stack_buffer,
    times,
    total,
    value,
    zero,
)
from tuner.mlir.ir.dot_products import as_type
from tuner.mlir.ir.reading import op_of, walk
from tuner.models.ops.convolutions.channel_k_groups import PER_K_GROUP
from tuner.models.ops.convolutions.convolution_groups import (
    LoopIndices,
    PanelShare,
    Pixel,
    PixelGroup,
    PixelRun,
    pixels_from,
    runs_of_groups,
)
from tuner.models.ops.convolutions.convolution_operands import (
    FILTERS,
    INPUT,
    LANES_ALONG,
    PLANES,
    SUMS,
    WEIGHTS,
    ConvolutionTile,
    TileElement,
)
from tuner.models.ops.convolutions.reorder_weights import CONTRACTION, panels_of

LANES = 16  # elements of f32 of a register
FETCHES_INPUT = 1  # value of the attribute prefetch
PRODUCTS_LIMIT = 256  # of one step; the time of LLVM grows with their number
Loop = tuple[int, int, int]  # (dimension, iterations, step)
ReadSum = Callable[[int, int | Value], Value]  # (part of the lanes, number of a pixel) -> register of sums


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

    K groups of bf16 are multiplied by vdpbf16ps of AVX512-BF16 with 16 lanes and by bfdot of AArch64 with 4,
    which take subnormal numbers as 0, else as f32; those of i8 by sdot of AArch64
    and, where lanes are filters, by vpdpbusd.
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
    of bf16 count as K groups, in pairs. ``pixels``: of at most how many pixels sums are in registers at once
    (default 0: of all). Such groups of pixels follow each other in a loop, inside of that over blocks of
    channels; in between their sums are in a buffer on the stack. ``dots``: 0 for bf16 as f32 (default: 1
    with 4 and 16 ``lanes``). ``instruction``: that of K groups by its name, as in ``tuner.vnni_block``. The
    handle (a func.func) stays valid. Silenceable failure: a convolution that is not of memrefs of static
    sizes, an unknown ``along``, and an instruction of other elements, lanes or K groups.

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
            products = self._products(tile, lanes)
            if isinstance(products, Refusal):
                return products
            products.declare(function.parent)
            with ir.InsertionPoint(tile.op), tile.op.location:
                _Block.of(
                    tile,
                    function,
                    products,
                    attribute(self, "channels", 0),
                    attribute(self, "unroll", 1),
                    attribute(self, "prefetch", 0),
                    attribute(self, "pixels", 0),
                ).build()
        return None

    def _products(self, tile: ConvolutionTile, lanes: int) -> Products | Refusal:
        """Returns how registers of the input and of the weights are multiplied; else why not."""
        element = tile.k_group_element
        if not element:
            return SingleProducts.of(lanes, str(tile.element))
        products = products_of(self, element, lanes)
        if isinstance(products, Refusal):
            return products
        is_of_filters = tile.along == FILTERS or not products.offset
        if products.k_group_bits != K_GROUP_BITS or not is_of_filters:
            return Refusal(f"found an instruction that does not multiply {element} along {tile.along}")
        return products


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
    products: Products
    channels: int
    unroll: int
    prefetch: int
    most: int  # pixels of a group

    @classmethod
    def of(
        cls,
        tile: ConvolutionTile,
        function: Op,
        products: Products,
        channels: int,
        unroll: int,
        prefetch: int,
        most: int,
    ) -> "_Block":
        weights, panel = panels_of(tile, function)
        pixels = tuple(tile.pixels())
        return cls(tile, pixels, weights, panel, products, channels, unroll, prefetch, most or len(pixels))

    @property
    def _counts(self) -> list[int]:
        """Returns the lanes in use of each register of a pixel's sums; all but the last use all lanes."""
        size = self.tile.sizes[self.tile.lane]
        return [min(self.lanes, size - start) for start in range(0, size, self.lanes)]

    @property
    def lanes(self) -> int:
        return self.products.lanes

    @property
    def _register(self) -> Type:
        return self.products.sums

    def build(self) -> None:
        op = self.tile.op
        fill = fill_before(op)
        view = op_of(self.tile.buffer(WEIGHTS), "memref.subview")
        if self.most < len(self.pixels):
            read = self._sums_in_groups()
        else:
            read = self._sums_at_once()
        adds = fill is None
        for part, count in enumerate(self._counts):
            of_part = partial(read, part)
            first = part * self.lanes
            if not self.tile.is_stored_along_lanes:
                self._store_transposed(of_part, first, count, adds=adds)
                continue
            for pixel_index, pixel in enumerate(self.pixels):
                indices = self._place(pixel | {self.tile.lane: first})
                store_lanes(of_part(pixel_index), self.tile.buffer(SUMS), indices, count, adds=adds)
        for replaced in (op, fill, view if self.panel else None):
            if replaced is not None:
                replaced.erase()

    def _sums_at_once(self) -> ReadSum:
        """Creates all sums of the tile in registers.

        Returns a function (register of a pixel, index of the pixel) -> its sums.
        """
        group = PixelGroup.of_tile(self.tile, self._share(None))
        parts = len(self._counts)
        starts = self._starts() or [zero(self._register)] * parts
        start = starts * len(self.pixels)
        sums = self._over([*self._blocks, *self._loops], {}, start, group)
        return lambda part, number: sums[number * parts + part]

    def _starts(self) -> list[Value]:
        """Creates what the sums of a pixel start from, a register each; [] for zeros.

        If an offset is added to the bytes of inputs, that is minus the sums of the offset times the weights.
        """
        if not self.products.offset:
            return []
        nothing = zero(self._register)
        added = self._over([*self._blocks, *self._loops], {}, [nothing] * len(self._counts), None)
        return [value("arith.subi", self._register, nothing, of_offset) for of_offset in added]

    def _sums_in_groups(self) -> ReadSum:
        """Creates the sums in memory, one group of pixels after the other.

        Returns a function (register of a pixel, index of the pixel) -> its sums. Blocks of channels are the
        loop around the groups, all of which read the weights of a block from the first level of cache. Groups
        are iterations of a loop: as copies of its body they took up to 1.5 times as long.
        """
        parts = len(self._counts)
        width = parts * self.lanes
        sums = stack_buffer(ir.MemRefType.get([len(self.pixels), width], self.tile.element))
        runs = runs_of_groups(len(self.pixels), self.most)
        starts = self._starts()

        def clear(pixel: Value) -> None:
            self._keep(starts or [zero(self._register)] * parts, sums, pixel)

        def of_block(at: LoopIndices) -> None:
            for run in runs:
                rolled_loop(0, run.groups, partial(self._add_group, sums, starts, at, run))

        if self._blocks:
            rolled_loop(0, len(self.pixels), clear)
            ((dimension, blocks, step),) = self._blocks
            rolled_loop(0, blocks, lambda block: of_block({dimension: times(block, step)}))
        else:
            of_block({})
        return lambda part, number: self._kept(sums, as_index(number), part)

    def _add_group(
        self, sums: Value, starts: list[Value], at: LoopIndices, run: PixelRun, number: Value
    ) -> None:
        """Creates the sums of group ``number`` of a run, and their stores to the buffer ``sums``.

        ``at``: the first channel of a block, to whose earlier blocks' sums in ``sums`` they are added; {}:
        all channels are summed at once, and the sums start from ``starts``, []: from zeros.
        """
        start = plus(times(number, run.size), run.first_pixel)
        pixels = tuple(pixels_from(self.tile, start, run.size))
        group = PixelGroup(pixels, self._share(plus(number, run.first_group)))
        parts = len(self._counts)
        before = []
        for pixel, part in product(range(run.size), range(parts)):
            if at:
                before.append(self._kept(sums, plus(start, pixel), part))
            else:
                before.append(starts[part] if starts else zero(self._register))
        after = self._over(self._loops, at, before, group)
        for pixel in range(run.size):
            self._keep(after[pixel * parts :][:parts], sums, plus(start, pixel))

    def _keep(self, registers: Sequence[Value], sums: Value, pixel: Value) -> None:
        for part, register in enumerate(registers):
            store_lanes(register, sums, [pixel, index(part * self.lanes)], self.lanes)

    def _kept(self, sums: Value, pixel: Value, part: int) -> Value:
        return load_lanes(sums, [pixel, index(part * self.lanes)], self._register, self.lanes)

    def _share(self, group: Value | None) -> PanelShare | None:
        """Creates what a group fetches of the next panel of weights; None if nothing is fetched.

        ``group``: the index of the group in the tile; None: the tile is one group.
        """
        if not self.panel or not self.prefetch:
            return None
        (panel,) = self.panel
        return PanelShare.of(self.tile, self.weights, panel, group, -(-len(self.pixels) // self.most))

    @property
    def _blocks(self) -> list[Loop]:
        """Returns the loop over blocks of channels, [] if channels are not in blocks."""
        if not self.tile.reduced:
            return []
        last = self.tile.reduced[-1]
        count = self.tile.sizes[last]
        if last == self._unrolled or not 0 < self.channels < count or count % self.channels:
            return []
        return [(last, count // self.channels, self.channels)]

    @property
    def _loops(self) -> list[Loop]:
        """Returns the loops over summed dimensions, outermost first, within the loop over channel blocks."""
        sizes = self.tile.sizes
        loops = [(number, sizes[number], 1) for number in self.tile.reduced if number != self._unrolled]
        if self._blocks:
            loops[-1] = (loops[-1][0], self.channels, 1)
        return loops

    @cached_property
    def _unrolled(self) -> int | None:
        """Returns the dimension of the window that each step goes through whole; None if there is none.

        With all elements along this dimension at hand, a register of the input is loaded once, not once per
        element. Most of these loads cross a line of the cache, and so take longer than the products.
        """
        shared = self.tile.shared
        most = min(self.most, len(self.pixels))
        if shared is not None and most * self.tile.sizes[shared] <= PRODUCTS_LIMIT:
            return shared
        return None

    def _over(
        self, loops: list[Loop], at: LoopIndices, sums: Sequence[Value], group: PixelGroup | None
    ) -> Sequence[Value]:
        if not loops:
            return self._step(at, sums, group)
        (dimension, count, step), *inner = loops
        bounds = self._planes(dimension) if inner else None  # the innermost may be unrolled
        # only the innermost loop is unrolled, and only without a remainder
        unroll = self.unroll if not inner and count % self.unroll == 0 else 1

        def body(number: Value, *before: Value) -> Sequence[Value]:
            after: Sequence[Value] = before
            for copy_number in range(unroll):
                position = plus(times(number, step * unroll), copy_number * step)
                position = total(at[dimension], position) if dimension in at else position
                after = self._over(inner, at | {dimension: position}, after, group)
            return after

        if bounds is not None:
            return loop(*bounds, body, sums)
        if count == unroll:
            return body(index(0), *sums)
        return loop(0, count // unroll, body, sums)

    def _planes(self, dimension: int) -> tuple[Value, Value] | None:
        """Creates the bounds of a loop over planes of the window, without planes of the input that are 0.

        None for a loop over another dimension, and where not all pixels of the tile read the same planes.
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

    def _step(self, at: LoopIndices, sums: Sequence[Value], group: PixelGroup | None) -> list[Value]:
        """Creates ``sums`` plus the products of a step.

        ``group`` None: plus the weights times the inputs' offset.
        """
        known: dict[tuple[object, ...], Value] = {}
        if group is None:
            return self._add_offset(at, sums, known)
        if self.prefetch == FETCHES_INPUT:
            self._prefetch(at, known, group)
        if group.share is not None:
            group.share.fetch(self._number_of_step(at, known))
        after = [*sums]
        for number, pixel in self._products(group):
            count = self._counts[number % len(self._counts)]
            left, right = (self._operand(operand, at, pixel, count, known) for operand in (INPUT, WEIGHTS))
            if self.products.offset:
                left, right = right, self.products.of_b(as_type(left, self._bytes))
            after[number] = self.products.after(after[number], [left], right)
        return after

    def _add_offset(
        self, at: LoopIndices, sums: Sequence[Value], known: dict[tuple[object, ...], Value]
    ) -> list[Value]:
        offset = splat(self._bytes, -self.products.offset)  # as an unsigned byte the offset itself
        after = []
        for part, count in enumerate(self._counts):
            pixel = Pixel({self.tile.lane: part * self.lanes}, {})
            weights = self._operand(WEIGHTS, at, pixel, count, known)
            after.append(self.products.after(sums[part], [weights], offset))
        return after

    @property
    def _bytes(self) -> Type:
        return ir.VectorType.get([self.lanes * PER_K_GROUP["i8"]], ir.IntegerType.get_signless(8))

    def _products(self, group: PixelGroup) -> list[tuple[int, Pixel]]:
        """Returns the products of a step: (index of the sum, position of its pixel in tile and window)."""
        starts = range(0, self.lanes * len(self._counts), self.lanes)
        sums = [
            Pixel(pixel.element | {self.tile.lane: start}, pixel.place)
            for pixel, start in product(group.pixels, starts)
        ]
        if self._unrolled is None:
            return [*enumerate(sums)]
        window = range(self.tile.sizes[self._unrolled])
        products = [
            (number, Pixel(pixel.element | {self._unrolled: row}, pixel.place))
            for row, (number, pixel) in product(window, enumerate(sums))
        ]
        # those of one register of the input follow each other: it need not be kept for later
        return sorted(products, key=lambda pair: self.tile.constants(INPUT, pair[1].element))

    def _operand(
        self,
        number: int,
        at: LoopIndices,
        pixel: Pixel,
        count: int,
        known: dict[tuple[object, ...], Value],
    ) -> Value:
        """Returns a register of the input or the weights; creates its load where it is not ``known`` yet."""
        constants = self.tile.constants(number, pixel.element)
        place: LoopIndices = {}
        buffer = self.weights
        if number == INPUT:
            place = pixel.place
            buffer = self.tile.buffer(INPUT)
        key = (number, *constants, *place.values())
        if key not in known:
            indices = [
                plus(self._base(number, dimension, at, known), constant)
                for dimension, constant in enumerate(constants)
            ]
            if number == INPUT:
                indices = self._moved(indices, place)
            else:
                indices = [*self.panel, *indices]
            type_ = ir.VectorType.get([self.lanes], buffer.type.element_type)
            known[key] = load_lanes(buffer, indices, type_, count, self.tile.steps(number))
        return known[key]

    def _moved(self, indices: list[Value], place: LoopIndices) -> list[Value]:
        """Creates ``indices`` of the input moved by ``place``, which is in dimensions of the tile."""
        moved = [*indices]
        for side, terms in enumerate(self.tile.maps[INPUT]):
            for dimension in terms.keys() & place.keys():
                moved[side] = total(moved[side], times(place[dimension], terms[dimension]))
        return moved

    def _prefetch(self, at: LoopIndices, known: dict[tuple[object, ...], Value], group: PixelGroup) -> None:
        """Creates prefetches of the first and last element that the next tile of a row reads at this step."""
        last = self.tile.maps[INPUT][-1]
        pixel = next((dimension for dimension in last if dimension not in self.tile.reduced), None)
        if pixel is None or pixel not in set(chain.from_iterable(self.tile.maps[SUMS])):
            return
        width = self.tile.sizes[pixel]
        for end in (group.pixels[0], group.pixels[-1])[: len(group.pixels)]:
            indices = self._moved(self._bases(INPUT, at, known), end.place)
            indices[-1] = plus(indices[-1], (width + end.element[pixel]) * last[pixel])
            fetch(self.tile.buffer(INPUT), *indices, locality=3)

    def _number_of_step(self, at: LoopIndices, known: dict[tuple[object, ...], Value]) -> Value:
        """Creates the index of a step among the tile's steps, in the order in which weights are stored."""
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

    def _store_transposed(
        self, read: Callable[[int | Value], Value], first: int, count: int, *, adds: bool
    ) -> None:
        """Creates the stores of sums whose pixels are adjacent in the buffer, not their lanes.

        ``read`` returns the register of a pixel. The lanes of a single pixel are adjacent, too: stores of one
        element each would be merged by LLVM, in time that grows with the square of their number (509 filters:
        15 s).
        """
        buffer, row = self._rows_of_pixels()
        pixels = len(self.pixels)
        if pixels == 1 and ir.MemRefType(buffer.type).rank == 2:
            line = ir.MemRefType.get([self.tile.sizes[self.tile.lane]], self.tile.element)
            store_lanes(read(0), reinterpreted(buffer, line), [index(first)], count, adds=adds)
            return
        is_flat = row == pixels and ir.MemRefType(buffer.type).rank == 2
        if is_flat and not adds and self.most < pixels >= self.lanes:
            self._store_squares(read, buffer, first, count)
            return
        for line, first_lane in product(range(0, pixels, row), range(0, row, self.lanes)):
            start = line + first_lane
            width = min(self.lanes, row - first_lane)
            square = transposed_square([*map(read, range(start, start + width))])
            for lane, vector in enumerate(square[:count]):
                indices = self._place(self.pixels[start] | {self.tile.lane: first + lane})
                indices = [index(first + lane), index(start)] if is_flat else indices
                store_lanes(vector, buffer, indices, width, adds=adds)

    def _store_squares(
        self, read: Callable[[int | Value], Value], buffer: Value, first: int, count: int
    ) -> None:
        """Creates the stores of squares of sums to ``buffer``, lanes x pixels; the last two may overlap."""

        def store(start: Value) -> None:
            pixels = map(partial(plus, start), range(self.lanes))
            square = transposed_square([*map(read, pixels)])
            for lane, vector in enumerate(square[:count]):
                store_lanes(vector, buffer, [index(first + lane), start], self.lanes)

        squares, rest = divmod(len(self.pixels), self.lanes)
        rolled_loop(0, squares, lambda number: store(times(number, self.lanes)))
        if rest:
            store(index(len(self.pixels) - self.lanes))

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
