"""The transform op ``tuner.depthwise_block``."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, product

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.cpu_ops.buffer_matmul import fill_before
from tuner.mlir.cpu_ops.vector_lanes import load_lanes, multiply_add, store_lanes
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import (
    DYNAMIC,
    as_index,
    branch_values,
    deinterleaved,
    index,
    is_less,
    plus,
    total,
    value,
    zero,
)
from tuner.mlir.ir.reading import constant_of, op_of, walk
from tuner.models.ops.convolutions.convolution_operands import (
    INPUT,
    LAST,
    PLANES,
    SUMS,
    WEIGHTS,
    ConvolutionTile,
)
from tuner.models.ops.convolutions.reorder_weights import CONTRACTION

LANES = 16  # elements of f32 of a register
ROWS, COLUMNS = 2, 3  # dimensions of the input and of the sums
PAIR = 2  # pixels of the input between pixels of the output, of which both halves are kept
Sums = dict[tuple[int, int], Value]  # (row, register of the row) -> register


class DepthwiseBlockOp(InPlaceOp, name="depthwise_block"):
    """``tuner.depthwise_block``: rows of a depthwise convolution on buffers become sums in vector registers.

    Takes a function whose ``linalg.generic`` ops with the attribute ``contraction`` are convolutions of one
    channel of one image, whole rows of it, as ``tuner.reorder_weights`` makes them of
    ``linalg.depthwise_conv_2d_nchw_chw``. The lanes of a register are pixels of a row. The sums of some
    columns of all rows of the tile are in registers at a time: each row of the input is then read once for
    all rows of sums that need it. A ``linalg.fill`` of the sums with zero before the convolution is replaced
    too.

    What ``planes`` of the op says is padding is not in memory. Rows of padding add nothing to the sums; its
    columns are lanes of zeros, put together from a load of the row's own elements.

        linalg.fill ins(%zero : f32) outs(%sums : memref<1x1x2x7xf32, ...>)
        linalg.generic {...} ins(%input, %weights : ...) outs(%sums : ...) attrs = {contraction, ...} {
      becomes, with 8 lanes, for each of 4 rows of the input and 3 columns of the window
        %in = scf.if %is_in_image -> (vector<8xf32>) {
          %weight = memref.load %window[%c0, %c0, %c0] : ...
          %every = vector.broadcast %weight : f32 to vector<8xf32>
          %row = vector.maskedload %image[%c0, %channel, %at, %c0], %mask, %zeros : memref<1x3x4x7xf32>, ...
          %left = vector.shuffle %row, %zeros [8, 0, 1, 2, 3, 4, 5, 6] : vector<8xf32>, vector<8xf32>
          %next = vector.fma %left, %every, %before : vector<8xf32>

    Attributes, i64: ``lanes``, elements of a register (default 16); ``columns``, pixels of a row that are
    summed up at a time (default 0: all). The handle (a func.func) stays valid. Silenceable failure: a
    convolution that is not as above, or not of memrefs of static sizes, and, with columns of padding, a tile
    that does not begin at the start of the image's rows.
    """

    def change(self, function: Op) -> Refusal | None:
        ops = [op for op in walk(function, "linalg.generic") if CONTRACTION in op.attributes]
        for op in ops:
            tile = ConvolutionTile.of(op, LAST)
            if isinstance(tile, Refusal):
                return Refusal(f"found {tile}, allowed memrefs of static sizes")
            with ir.InsertionPoint(op), op.location:
                block = _Block.of(tile, attribute(self, "lanes", LANES), attribute(self, "columns", 0))
                if isinstance(block, Refusal):
                    return block
                block.build()
        return None


@dataclass(frozen=True, eq=False)
class _Image:
    """The image that a tile reads, in memory, and the padding around it, which is not in memory.

    Rows are counted from the first row that the tile reads, columns from the first column of the image.
    """

    buffer: Value
    lead: tuple[Value, Value]  # indices in ``buffer`` of the tile's image and channel
    row: Value  # index of the tile's first row among the rows of the image with its padding
    first: tuple[int, int]  # rows and columns of padding before the image
    size: tuple[int, int]  # rows and columns of the image
    last_row: int  # the greatest number that ``row`` can be

    @classmethod
    def of(cls, tile: ConvolutionTile) -> "_Image | Refusal":
        buffer = tile.buffer(INPUT)
        rows, columns = buffer.type.shape[ROWS:]
        if PLANES not in tile.op.attributes:
            return cls(buffer, (index(0), index(0)), index(0), (0, 0), (rows, columns), 0)
        numbers = list(ir.DenseI64ArrayAttr(tile.op.attributes[PLANES]))
        first = dict(zip(numbers[::3], numbers[1::3], strict=True))
        offsets: list[int | Value] = [0] * (COLUMNS + 1)
        while (view := op_of(buffer, "memref.subview")) is not None:
            buffer = view.operands[0]
            offsets = list(map(_added, offsets, _offsets(view)))
        padded = op_of(buffer, "memref.reinterpret_cast")
        if padded is None or offsets[COLUMNS] != 0:
            return Refusal("found columns of padding at an unknown place, allowed whole rows of an image")
        image = padded.operands[0]
        images, channels, row = map(as_index, offsets[:COLUMNS])
        return cls(
            image,
            (images, channels),
            row,
            (first[ROWS], first[COLUMNS]),
            (image.type.shape[ROWS], image.type.shape[COLUMNS]),
            buffer.type.shape[ROWS] - rows,
        )

    def at(self, row: int, column: int) -> list[Value]:
        """Creates the indices in ``buffer`` of the image's element at a row and column."""
        return [*self.lead, plus(self.row, row - self.first[0]), index(column)]

    def conditions(self, row: int) -> list[Value]:
        """Creates the i1 conditions for a row of the tile's input to be in the image; () if it always is."""
        conditions = []
        before = self.first[0]
        end = before + self.size[0]
        if row < before:
            conditions.append(is_less(index(before - row - 1), self.row))
        if row + self.last_row >= end:
            conditions.append(is_less(self.row, index(end - row)))
        return conditions


def _offsets(view: Op) -> list[int | Value]:
    """Returns the offsets of a ``memref.subview``: integers where they are known."""
    operands = iter(list(view.operands)[1:])
    offsets: list[int | Value] = []
    for offset in view.attributes["static_offsets"]:
        operand = next(operands) if offset == DYNAMIC else None
        number = offset if operand is None else constant_of(operand)
        offsets.append(operand if number is None else number)
    return offsets


def _added(left: int | Value, right: int | Value) -> int | Value:
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return total(as_index(left), as_index(right))


@dataclass(frozen=True, eq=False)
class _Block:
    """Creates the code of a tile: rows of one channel, some columns of all rows at a time."""

    tile: ConvolutionTile
    image: _Image
    window: tuple[int, int]  # rows and columns
    strides: tuple[int, int]  # of the input, between pixels of the output
    dilations: tuple[int, int]  # of the input, between elements of the window
    size: tuple[int, int]  # rows and columns of the tile's sums
    lanes: int
    at_a_time: int  # registers of a row

    @classmethod
    def of(cls, tile: ConvolutionTile, lanes: int, columns: int) -> "_Block | Refusal":
        read, taken, stored = tile.maps
        if (len(read), len(taken), len(stored)) != (4, 3, 4):
            return Refusal("found another convolution, allowed a depthwise one of channels first")
        images, channels, *pixels = chain(*stored)
        window = list(chain(*taken))[1:]
        steps = read[ROWS:]
        is_known = list(map(set, steps)) == list(map(set, zip(pixels, window, strict=True)))
        if not is_known or tile.sizes[images] > 1 or tile.sizes[channels] > 1:
            return Refusal("found a tile of several channels, allowed rows of one channel")
        image = _Image.of(tile)
        if isinstance(image, Refusal):
            return image
        rows, width = map(tile.sizes.__getitem__, pixels)
        registers = -(-width // lanes)
        return cls(
            tile,
            image,
            (tile.sizes[window[0]], tile.sizes[window[1]]),
            (steps[0][pixels[0]], steps[1][pixels[1]]),
            (steps[0][window[0]], steps[1][window[1]]),
            (rows, width),
            lanes,
            columns // lanes or registers,
        )

    @property
    def register(self) -> ir.VectorType:
        return ir.VectorType.get([self.lanes], self.tile.element)

    def build(self) -> None:
        op = self.tile.op
        fill = fill_before(op)
        registers = range(-(-self.size[1] // self.lanes))
        for first in registers[:: self.at_a_time]:
            group = registers[first : first + self.at_a_time]
            sums: Sums = dict.fromkeys(product(range(self.size[0]), group), zero(self.register))
            for row, products in self._products().items():
                sums = self._with_row(row, products, group, sums)
            for (row, register), vector in sums.items():
                start = register * self.lanes
                count = min(self.lanes, self.size[1] - start)
                indices = list(map(index, (0, 0, row, start)))
                store_lanes(vector, self.tile.buffer(SUMS), indices, count, adds=fill is None)
        for replaced in (op, fill):
            if replaced is not None:
                replaced.erase()

    def _products(self) -> dict[int, list[tuple[int, int]]]:
        """Returns {row of the input: [(row of sums, row of the window) that it is multiplied for]}."""
        products: dict[int, list[tuple[int, int]]] = {}
        for row in range(self.size[0]):
            for tap in range(self.window[0]):
                products.setdefault(row * self.strides[0] + tap * self.dilations[0], []).append((row, tap))
        return dict(sorted(products.items()))

    def _with_row(self, row: int, products: Sequence[tuple[int, int]], group: range, sums: Sums) -> Sums:
        """Creates the products of a row of the input, if it is one of the image; returns all sums."""
        lines = [line for line, _ in products]
        changed = list(product(lines, group))
        before = [sums[key] for key in changed]

        def added() -> list[Value]:
            after = dict(zip(changed, before, strict=True))
            reads = _Row(self, row)
            for column in range(self.window[1]):
                weights = [self._weight(tap, column) for _, tap in products]
                for register in group:
                    elements = reads.elements(register, column)
                    for line, weight in zip(lines, weights, strict=True):
                        key = (line, register)
                        after[key] = multiply_add(elements, weight, after[key])
            return [after[key] for key in changed]

        conditions = self.image.conditions(row)
        if not conditions:
            return sums | dict(zip(changed, added(), strict=True))
        condition, *others = conditions
        for other in others:
            condition = value("arith.andi", condition.type, condition, other)
        return sums | dict(zip(changed, branch_values(condition, added, before), strict=True))

    def _weight(self, tap: int, column: int) -> Value:
        indices = list(map(index, (0, tap, column)))
        return load_lanes(self.tile.buffer(WEIGHTS), indices, self.register, self.lanes, step=0)


@dataclass(frozen=True, eq=False)
class _Row:
    """The loads of one row of the input."""

    block: _Block
    row: int
    known: dict[int, list[Value]] = field(
        default_factory=dict
    )  # of a column: pixels, or both halves of pairs

    def elements(self, register: int, column: int) -> Value:
        """Creates the elements of the row that a register of sums needs at a column of the window.

        Columns of padding are zeros.
        """
        block = self.block
        step = block.strides[1]
        first = register * block.lanes * step + column * block.dilations[1] - block.image.first[1]
        if step not in (1, PAIR):
            return self._shuffled(first)
        start = first - first % step
        if start < 0 or start + step * block.lanes > block.image.size[1]:
            return self._shuffled(first)
        if start not in self.known:
            loaded = self._loaded(start, step * block.lanes)
            self.known[start] = [loaded] if step == 1 else deinterleaved(loaded, block.lanes)
        return self.known[start][first - start]

    def _loaded(self, column: int, count: int) -> Value:
        """Creates the load of ``count`` elements from ``column`` on; zeros after the end of the row."""
        image = self.block.image
        type_ = ir.VectorType.get([count], self.block.tile.element)
        return load_lanes(image.buffer, image.at(self.row, column), type_, min(count, image.size[1]))

    def _shuffled(self, first: int) -> Value:
        """Creates a register of elements from column ``first`` on, of which some are padding.

        They come from a load of columns without padding.
        """
        block = self.block
        width = block.image.size[1]
        count = block.lanes * block.strides[1]
        start = min(max(first, 0), max(width - count, 0))
        loaded = self._loaded(start, count)
        lanes = []
        for column in range(first, first + count, block.strides[1]):
            is_padding = column < 0 or column >= width
            lanes.append(count if is_padding else column - start)  # element ``count`` is a zero
        return value(
            "vector.shuffle", block.register, loaded, zero(loaded.type), mask=ir.DenseI64ArrayAttr.get(lanes)
        )
