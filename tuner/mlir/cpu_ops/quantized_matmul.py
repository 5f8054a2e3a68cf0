"""``tuner.quantized_matmul``: a matmul by quantized weights, which are unpacked in registers.

The weights come packed to panels of columns, as do scales and zero points. Loops, outermost first:

    panels of B (tile_n) > blocks of K (block_k) > strips of rows (tile_m) > groups of K > steps of K

A step is one load of packed weights per vector of columns: 8 rows of K of 4 bits, or 4, 2 or 1 row of 8 bits.
The sums of a group are scaled and added to sums in f32, which stay in registers over all groups.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tuner.core.errors import UsageError
from tuner.core.fusions import FUSION_ENTRY, NIBBLE_ROWS
from tuner.core.quantization import (
    BY_ROW,
    GREATEST,
    LEAST_MAXIMUM,
    QUANTIZATION,
    WeightFormat,
    quantized_text,
)
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.cpu_ops.buffer_matmul import store_lanes
from tuner.mlir.cpu_ops.vnni_packing import BlockExtent, allocated, constant_mask, in_steps, splat
from tuner.mlir.dialect import InPlaceOp, attribute, text
from tuner.mlir.ir.building import create, fetch, index, loop, plus, times, total, value, zero
from tuner.mlir.ir.reading import name_of
from tuner.mlir.ir.table_lookup import FLOATS, WORDS, declare_lookup, looked_up, table_of
from tuner.mlir.ir.vnni import byte_dot, declare_byte_dot, set_packed_as

DOTS, PAIRS, SINGLES = SCHEMES = ("dots", "pairs", "singles")
LINE_BYTES = 64  # of a cache
NIBBLE, BYTE = 8, 128  # what is added to integers of 4 and 8 bits, so that they are unsigned
ROW_PADDING = 64  # elements after a row of A: rows a power of two apart would lie in the same sets of L1
FLOAT_MAGIC = 0x4B000000  # the bits of 2**23 in f32; its last 4 bits count units
BF16_TABLE = tuple(int(np.float32(each - NIBBLE).view(np.uint32)) >> 16 for each in range(2 * NIBBLE))


@dataclass(frozen=True)
class QuantizedTile:
    """The knobs of the op."""

    scheme: str  # how integers are multiplied: one of SCHEMES
    rows: int
    columns: int  # also of a panel
    lanes: int
    block_k: int  # elements of K in a block; 0: all of K
    ahead_bytes: int  # from which weights are prefetched while others are multiplied; 0: none are

    @classmethod
    def of(cls, op: InPlaceOp) -> "QuantizedTile":
        names = (("tile_m", 4), ("tile_n", 64), ("lanes", 16), ("block_k", 0), ("prefetch", 0))
        return cls(text(op, "scheme", SINGLES), *(attribute(op, name, usual) for name, usual in names))

    @property
    def vectors(self) -> int:
        return self.columns // self.lanes


@dataclass(frozen=True, eq=False)
class QuantizedOperands:
    """A quantized matmul as the function's arguments and their sizes."""

    format: WeightFormat
    sizes: tuple[int, int, int]
    dtype: str  # of A
    output: str  # type of C
    arguments: tuple[Value, ...]  # A, B, scales[, zero points], C
    depth: int  # elements of K whose sum is scaled at a time: a group, or a block of K of one group

    @property
    def k(self) -> int:
        return self.sizes[2]

    @property
    def runs(self) -> int:
        """Returns the number of sums that are scaled for an element of C."""
        return -(-self.k // self.depth)

    @property
    def zero_points(self) -> Value | None:
        return self.arguments[3] if self.format.has_zero_points else None

    def group(self, run: Value) -> Value:
        """Creates the number of the group of a run."""
        return run if self.format.group else index(0)


def operands_of(function: Op, block_k: int) -> QuantizedOperands | str:
    """Returns what a function multiplies; or, as text, why it is not a quantized matmul."""
    if QUANTIZATION not in function.attributes:
        return f"found a function without {QUANTIZATION}, allowed a quantized matmul"
    arguments = tuple(function.regions[0].blocks[0].arguments)
    kinds = [ir.MemRefType(each.type) for each in arguments]
    format_ = WeightFormat.of_text(ir.StringAttr(function.attributes[QUANTIZATION]).value)
    (m, k), n = kinds[0].shape, kinds[1].shape[0]
    depth = format_.group or block_k or k
    dtype, output = (str(kinds[each].element_type) for each in (0, -1))
    try:
        expected = quantized_text((m, n, k), dtype, format_, output)
    except UsageError as error:
        return str(error)
    # the op computes what this text says, and nothing else: an edited payload is refused
    module = ir.Module.parse(expected.replace(f"@{FUSION_ENTRY}(", f"@{name_of(function)}("))
    if str(module.body.operations[0]) != str(function):
        return "found other operations than those of a quantized matmul"
    return QuantizedOperands(format_, (m, n, k), dtype, output, arguments, depth)


class Scheme(ABC):
    """How integers are unpacked and multiplied; ``tile`` and ``operands`` of one matmul."""

    element = "f32"  # of a row of A, as multiplied
    sum_element = "f32"

    def __init__(self, tile: QuantizedTile, operands: QuantizedOperands) -> None:
        self.tile, self.operands, self.lanes = tile, operands, tile.lanes

    @property
    def is_nibbles(self) -> bool:
        return self.operands.format.bits < 8

    @property
    def step(self) -> int:
        """Returns the rows of K of a step."""
        return NIBBLE_ROWS if self.is_nibbles else self.rows_of_bytes

    @property
    def sums(self) -> Type:
        return self.vector(self.lanes, self.sum_element)

    @property
    def line_bytes(self) -> int:
        """Returns the bytes of a step's weights of one vector of columns."""
        return self.step * self.lanes * self.operands.format.bits // 8

    def vector(self, lanes: int, element: str) -> Type:
        return ir.VectorType.get([lanes], ir.Type.parse(element))

    rows_of_bytes: int  # rows of K of a step of 8 bits
    nibbles: str  # the order of NIBBLES
    is_unsigned: bool  # the integers of 8 bits come with 128 added

    @abstractmethod
    def prepare(self, function: Op) -> None:
        """Declares the functions that the code calls."""

    def start(self, row_sum: Value | None) -> Value:
        """Creates the first sums of a run; ``row_sum``: the sum of its elements of A where it is wanted."""
        return zero(self.sums)

    wants_row_sums = False

    @abstractmethod
    def factors(self, loaded: Value) -> list[Value]:
        """Creates the factors of a step from its packed weights, each of ``step / len`` rows of K."""

    @abstractmethod
    def of_a(self, buffer: Value, row: Value, k: Value) -> Value:
        """Creates the factor of A for the rows of K from ``k`` on, in all lanes."""

    @abstractmethod
    def after(self, before: Value, of_a: Value, of_b: Value) -> Value:
        """Creates the sums after one factor."""


class Dots(Scheme):
    """Dot products of four bytes of A and four of B, unsigned (vpdpbusd); sums of integers are exact."""

    element, sum_element, rows_of_bytes, nibbles, is_unsigned = "i8", "i32", 4, "fours", True
    wants_row_sums = True

    def prepare(self, function: Op) -> None:
        declare_byte_dot(function.parent, self.lanes)

    def start(self, row_sum: Value | None) -> Value:
        assert row_sum is not None, "wants_row_sums"
        shift = -NIBBLE if self.is_nibbles else -BYTE
        shifted = value("arith.muli", row_sum.type, row_sum, splat(row_sum.type, shift))
        return value("vector.broadcast", self.sums, shifted)

    def factors(self, loaded: Value) -> list[Value]:
        if not self.is_nibbles:
            return [loaded]
        words = self.vector(2 * self.lanes, "i16")
        high = value("arith.shrui", words, value("vector.bitcast", words, loaded), splat(words, 4))
        high = value("vector.bitcast", loaded.type, high)
        return [value("arith.andi", loaded.type, each, splat(loaded.type, 15)) for each in (loaded, high)]

    def of_a(self, buffer: Value, row: Value, k: Value) -> Value:
        return self._spread(value("vector.load", self.vector(4, "i8"), buffer, row, k), "i8", 4)

    def _spread(self, few: Value, element: str, count: int) -> Value:
        one = value("vector.bitcast", self.vector(1, "i32"), few)
        every = value("vector.broadcast", self.vector(self.lanes, "i32"), one)
        return value("vector.bitcast", self.vector(count * self.lanes, element), every)

    def after(self, before: Value, of_a: Value, of_b: Value) -> Value:
        return byte_dot(before, of_b, of_a)


class Pairs(Dots):
    """Products of pairs of bf16 (vdpbf16ps); 4 bits become bf16 by a table in a register, 8 bits by f32."""

    element, sum_element, rows_of_bytes, nibbles, is_unsigned = "bf16", "f32", 2, "pairs", False
    wants_row_sums = False

    def prepare(self, function: Op) -> None:
        if self.is_nibbles:
            declare_lookup(function.parent, WORDS)

    def start(self, row_sum: Value | None) -> Value:
        return zero(self.sums)

    def factors(self, loaded: Value) -> list[Value]:
        pairs = self.vector(2 * self.lanes, "bf16")
        if not self.is_nibbles:
            wide = value("arith.sitofp", self.vector(2 * self.lanes, "f32"), loaded)
            return [value("arith.truncf", pairs, wide)]
        words = self.vector(2 * self.lanes, "i16")
        short = ir.IntegerType.get_signless(16)
        entries = [ir.IntegerAttr.get(short, _as_signed(each)) for each in BF16_TABLE]
        table, found = table_of(WORDS, entries), value("vector.bitcast", words, loaded)
        shifted = [
            value("arith.shrui", words, found, splat(words, 4 * each)) if each else found for each in range(4)
        ]
        return [value("vector.bitcast", pairs, looked_up(WORDS, table, each)) for each in shifted]

    def of_a(self, buffer: Value, row: Value, k: Value) -> Value:
        return self._spread(value("vector.load", self.vector(2, "bf16"), buffer, row, k), "bf16", 2)

    def after(self, before: Value, of_a: Value, of_b: Value) -> Value:
        return value("x86.avx512.dot", before.type, before, of_a, of_b)


class Singles(Scheme):
    """Products of f32 one after the other; 4 bits become f32 by a table (AVX-512) or as bits of 2**23 + u."""

    rows_of_bytes, nibbles, is_unsigned = 1, "rows", False

    @property
    def _has_table(self) -> bool:
        return self.lanes == FLOATS.lanes

    def prepare(self, function: Op) -> None:
        if self.is_nibbles and self._has_table:
            declare_lookup(function.parent, FLOATS)

    def factors(self, loaded: Value) -> list[Value]:
        if not self.is_nibbles:
            return [value("arith.sitofp", self.vector(self.lanes, "f32"), loaded)]
        words = self.vector(self.lanes, "i32")
        found = value("vector.bitcast", words, loaded)
        shifted = [
            value("arith.shrui", words, found, splat(words, 4 * each)) if each else found
            for each in range(NIBBLE_ROWS)
        ]
        return [self._number(each, words) for each in shifted]

    def _number(self, shifted: Value, words: Type) -> Value:
        floats, f32 = self.vector(self.lanes, "f32"), ir.F32Type.get()
        if self._has_table:
            entries = [ir.FloatAttr.get(f32, float(each - NIBBLE)) for each in range(2 * NIBBLE)]
            return looked_up(FLOATS, table_of(FLOATS, entries), shifted)
        # 2**23 + u is exact, and so is the difference
        units = value("arith.andi", words, shifted, splat(words, 15))
        large = value("vector.bitcast", floats, value("arith.ori", words, units, splat(words, FLOAT_MAGIC)))
        return value("arith.subf", floats, large, floats_of(floats, float(2**23 + NIBBLE)))

    def of_a(self, buffer: Value, row: Value, k: Value) -> Value:
        number = value("memref.load", ir.F32Type.get(), buffer, row, k)
        return value("vector.broadcast", self.sums, number)

    def after(self, before: Value, of_a: Value, of_b: Value) -> Value:
        return value("vector.fma", before.type, of_a, of_b, before)


BY_NAME: dict[str, type[Scheme]] = {DOTS: Dots, PAIRS: Pairs, SINGLES: Singles}


def floats_of(kind: Type, number: float) -> Value:
    """Creates a constant f32, or a vector whose elements are all that number."""
    f32 = ir.F32Type.get()
    if not isinstance(kind, ir.VectorType):
        return value("arith.constant", kind, value=ir.FloatAttr.get(f32, number))
    splatted = ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(f32, number))
    return value("arith.constant", kind, value=splatted)


def _as_signed(word: int) -> int:
    return word - 2**16 if word >= 2**15 else word


@dataclass(frozen=True, eq=False)
class QuantizedRows:
    """Rows of A as a scheme multiplies them, with zeros after the last of K where a step reads past it."""

    numbers: Value  # memref<m x k and padding>; A itself where it is read in place
    scales: Value | None  # memref<m x runs, or 1, x f32> of quantized A
    sums: Value | None  # memref<m x runs> of the elements of A of each run


class RowPreparation:
    """Creates the code that quantizes, converts or copies A before the product, and adds up its runs."""

    def __init__(self, operands: QuantizedOperands, scheme: Scheme) -> None:
        self.operands, self.scheme, self.lanes = operands, scheme, scheme.lanes
        self.floats = scheme.vector(self.lanes, "f32")

    def build(self) -> QuantizedRows:
        operands, scheme = self.operands, self.scheme
        m, _, k = operands.sizes
        wants_sums = scheme.wants_row_sums or operands.format.has_zero_points
        is_in_place = (
            not operands.format.activations
            and operands.dtype == scheme.element
            and k % scheme.step == 0
            and (m == 1 or scheme.element == "f32")
        )
        if is_in_place and not wants_sums:
            return QuantizedRows(operands.arguments[0], None, None)
        element = ir.Type.parse(scheme.element)
        stride = -(-k // ROW_PADDING) * ROW_PADDING + ROW_PADDING
        numbers = operands.arguments[0] if is_in_place else allocated((m, stride), element)
        of_runs = 1 if operands.format.activations == BY_ROW else operands.runs
        scales = allocated((m, of_runs), ir.F32Type.get()) if operands.format.activations else None
        sums = allocated((m, operands.runs), ir.Type.parse(scheme.sum_element)) if wants_sums else None
        rows = QuantizedRows(numbers, scales, sums)

        def of_row(row: Value) -> tuple[()]:
            inverse = None
            if operands.format.activations == BY_ROW:
                inverse = self._scale(rows, row, index(0), index(0), k)

            def of_run(run: Value) -> tuple[()]:
                begin = times(run, operands.depth)
                by_run = inverse
                if operands.format.activations and inverse is None:
                    by_run = self._scale(rows, row, run, begin, operands.depth)
                self._convert(rows, row, run, begin, by_run, is_copied=not is_in_place)
                return ()

            loop(0, operands.runs, of_run)
            return ()

        loop(0, m, of_row)
        return rows

    def _read(self, row: Value, k: Value, count: int) -> Value:
        """Creates the load of ``count`` elements of A as a vector of f32, zeros after these."""
        source = self.operands.arguments[0]
        kind = self.scheme.vector(self.lanes, self.operands.dtype)
        if count == self.lanes:
            loaded = value("vector.load", kind, source, row, k)
        else:
            mask = constant_mask(count, self.lanes)
            loaded = value("vector.maskedload", kind, source, row, k, mask, zero(kind))
        return loaded if self.operands.dtype == "f32" else value("arith.extf", self.floats, loaded)

    def _over(
        self, begin: Value, depth: int, body: Callable[..., Sequence[Value]], carried: Sequence[Value]
    ) -> list[Value]:
        """Creates a loop over ``depth`` elements from ``begin`` on, a vector at a time, the rest masked."""
        whole, rest = divmod(depth, self.lanes)

        def of_step(step: Value, *values: Value) -> Sequence[Value]:
            return body(total(begin, times(step, self.lanes)), self.lanes, *values)

        values = loop(0, whole, of_step, carried) if whole else list(carried)
        return list(body(plus(begin, whole * self.lanes), rest, *values)) if rest else values

    def _scale(self, rows: QuantizedRows, row: Value, run: Value, begin: Value, depth: int) -> Value:
        """Creates the scale of a part of a row and stores it; returns its inverse."""

        def larger(k: Value, count: int, before: Value) -> list[Value]:
            size = value("math.absf", self.floats, self._read(row, k, count))
            return [value("arith.maximumf", self.floats, before, size)]

        (lanes,) = self._over(begin, depth, larger, [zero(self.floats)])
        f32 = ir.F32Type.get()
        largest = value("vector.reduction", f32, lanes, kind=ir.Attribute.parse("#vector.kind<maximumf>"))
        greatest, least = (floats_of(f32, float(each)) for each in (GREATEST, LEAST_MAXIMUM))
        create("memref.store", [], [value("arith.divf", f32, largest, greatest), rows.scales, row, run])
        olt = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 4)
        is_small = value("arith.cmpf", ir.IntegerType.get_signless(1), largest, least, predicate=olt)
        return value("arith.select", f32, is_small, zero(f32), value("arith.divf", f32, greatest, largest))

    def _convert(
        self,
        rows: QuantizedRows,
        row: Value,
        run: Value,
        begin: Value,
        inverse: Value | None,
        *,
        is_copied: bool,
    ) -> None:
        """Creates a run of a row of A as the scheme multiplies it, and its sum."""
        integers = self.scheme.vector(self.lanes, "i32")
        is_integer = self.scheme.sum_element == "i32"

        def of_part(k: Value, count: int, *sums: Value) -> list[Value]:
            numbers = self._read(row, k, count)
            if inverse is not None:
                scaled = value("arith.mulf", self.floats, numbers, _in_all(inverse, self.floats))
                numbers = value("math.roundeven", self.floats, scaled)
            whole = value("arith.fptosi", integers, numbers) if is_integer else numbers
            if is_copied:
                self._store(rows.numbers, row, k, whole)
            add = "arith.addi" if is_integer else "arith.addf"
            return [value(add, each.type, each, whole) for each in sums]

        start = [zero(integers if is_integer else self.floats)] if rows.sums is not None else []
        sums = self._over(begin, self.operands.depth, of_part, start)
        for each in sums:
            element = ir.VectorType(each.type).element_type
            added = value("vector.reduction", element, each, kind=ir.Attribute.parse("#vector.kind<add>"))
            create("memref.store", [], [added, rows.sums, row, run])

    def _store(self, buffer: Value, row: Value, k: Value, numbers: Value) -> None:
        element = self.scheme.element
        if element != "f32":
            name = "arith.trunci" if element == "i8" else "arith.truncf"
            numbers = value(name, self.scheme.vector(self.lanes, element), numbers)
        create("vector.store", [], [numbers, buffer, row, k])  # a whole vector: the row is padded


def _in_all(number: Value, kind: Type) -> Value:
    return value("vector.broadcast", kind, number)


class QuantizedProduct:
    """Creates the loops of the product over panels, blocks of K, strips of rows, groups and steps."""

    def __init__(
        self, operands: QuantizedOperands, tile: QuantizedTile, scheme: Scheme, rows: QuantizedRows
    ) -> None:
        self.operands, self.tile, self.scheme, self.rows = operands, tile, scheme, rows
        self.floats = scheme.vector(tile.lanes, "f32")

    @cached_property
    def runs_of_block(self) -> int:
        block_k = self.tile.block_k
        return block_k // self.operands.depth if block_k else self.operands.runs

    @cached_property
    def steps(self) -> int:
        """Returns the steps of K of a run."""
        return -(-self.operands.depth // self.scheme.step)

    def build(self) -> None:
        m, n, _ = self.operands.sizes
        blocks = -(-self.operands.runs // self.runs_of_block)

        def of_panel(panel: Value, columns: int) -> None:
            def of_block(first: Value | int, *, adds: bool) -> None:
                def of_strip(strip: Value, rows: int) -> None:
                    self._tile(times(strip, self.tile.rows), rows, panel, columns, first, adds=adds)

                in_steps(BlockExtent(m), self.tile.rows, of_strip)

            of_block(0, adds=False)
            if blocks > 1:

                def of_other(block: Value) -> tuple[()]:
                    of_block(times(block, self.runs_of_block), adds=True)
                    return ()

                loop(1, blocks, of_other)

        in_steps(BlockExtent(n), self.tile.columns, of_panel)

    def _tile(
        self, first: Value, rows: int, panel: Value, columns: int, run: Value | int, *, adds: bool
    ) -> None:
        lanes, vectors = self.tile.lanes, -(-columns // self.tile.lanes)
        row_numbers = [plus(first, each) for each in range(rows)]

        def of_run(number: Value, *before: Value) -> list[Value]:
            at = total(index(run) if isinstance(run, int) else run, number) if run else number
            sums = self._sums(row_numbers, panel, vectors, at)
            return self._scaled(row_numbers, panel, at, sums, before)

        start = [zero(self.floats)] * (rows * vectors)
        finished = loop(0, self.runs_of_block, of_run, start) if self.runs_of_block > 1 else None
        finished = of_run(index(0), *start) if finished is None else finished
        column = times(panel, self.tile.columns)
        for number, each in enumerate(self._of_rows(row_numbers, finished, vectors)):
            row, vector = divmod(number, vectors)
            place = (row_numbers[row], plus(column, vector * lanes))
            width = min(columns - vector * lanes, lanes)
            if self.operands.output != "f32":
                each = value("arith.truncf", self.scheme.vector(lanes, self.operands.output), each)
            store_lanes(each, self.operands.arguments[-1], place, width, adds=adds)

    def _sums(self, rows: list[Value], panel: Value, vectors: int, run: Value) -> list[Value]:
        """Creates the sums of a run: a vector for each row and vector of columns."""
        scheme = self.scheme
        first_step = total(times(panel, self.operands.runs * self.steps), times(run, self.steps))
        first_k = times(run, self.operands.depth)

        def of_step(step: Value, *sums: Value) -> list[Value]:
            line = total(first_step, step)
            factors = [scheme.factors(self._loaded(line, vector)) for vector in range(vectors)]
            self._fetch(line, vectors)
            k, after = total(first_k, times(step, scheme.step)), list(sums)
            width = scheme.step // len(factors[0])
            for part in range(len(factors[0])):
                for number, row in enumerate(rows):
                    of_a = scheme.of_a(self.rows.numbers, row, plus(k, part * width))
                    for vector in range(vectors):
                        place = number * vectors + vector
                        after[place] = scheme.after(after[place], of_a, factors[vector][part])
            return after

        start = [self._start(row, run) for row in rows]
        return loop(0, self.steps, of_step, [each for each in start for _ in range(vectors)])

    def _start(self, row: Value, run: Value) -> Value:
        wants = self.scheme.wants_row_sums
        return self.scheme.start(self._row_sum(row, run) if wants else None)

    def _row_sum(self, row: Value, run: Value) -> Value:
        element = ir.Type.parse(self.scheme.sum_element)
        return value("memref.load", element, self.rows.sums, row, run)

    def _loaded(self, line: Value, vector: int) -> Value:
        width = self.scheme.line_bytes
        kind = self.scheme.vector(width, "i8")
        return value("vector.load", kind, self.operands.arguments[1], line, index(vector * width))

    def _fetch(self, line: Value, vectors: int) -> None:
        """Creates prefetches of the weights some bytes ahead: hardware stops at the end of each 4 KB page."""
        row_bytes = self.scheme.line_bytes * self.tile.vectors
        if not self.tile.ahead_bytes:
            return
        ahead = plus(line, max(1, self.tile.ahead_bytes // row_bytes))
        for at in range(0, self.scheme.line_bytes * vectors, LINE_BYTES):
            fetch(self.operands.arguments[1], ahead, index(at), locality=3)

    def _scaled(
        self, rows: list[Value], panel: Value, run: Value, sums: list[Value], before: Sequence[Value]
    ) -> list[Value]:
        """Creates ``before`` plus the sums of a run, times the scales of its group."""
        vectors = len(sums) // len(rows)
        line = total(times(panel, self.operands.format.groups(self.operands.k)), self.operands.group(run))
        scales = [self._scale_of(line, vector) for vector in range(vectors)]
        points = [self._points_of(line, vector) for vector in range(vectors)]
        after: list[Value] = []
        for number, row in enumerate(rows):
            shift = None if self.operands.zero_points is None else self._row_sum(row, run)
            by_row = self._row_scale(row, run) if self._is_scaled_by_group else None
            for vector in range(vectors):
                place = number * vectors + vector
                made = self._shifted(sums[place], shift, points[vector])
                if by_row is not None:
                    made = value("arith.mulf", self.floats, made, by_row)
                after.append(value("vector.fma", self.floats, made, scales[vector], before[place]))
        return after

    @property
    def _is_scaled_by_group(self) -> bool:
        return self.rows.scales is not None and self.operands.format.activations != BY_ROW

    def _row_scale(self, row: Value, run: Value) -> Value:
        scale = value("memref.load", ir.F32Type.get(), self.rows.scales, row, run)
        return _in_all(scale, self.floats)

    def _scale_of(self, line: Value, vector: int) -> Value:
        dtype = self.operands.format.scale_dtype
        kind = self.scheme.vector(self.tile.lanes, dtype)
        place = index(vector * self.tile.lanes)
        loaded = value("vector.load", kind, self.operands.arguments[2], line, place)
        return loaded if dtype == "f32" else value("arith.extf", self.floats, loaded)

    def _points_of(self, line: Value, vector: int) -> Value | None:
        """Creates the zero points of a vector of columns as the sums are: i32 or f32."""
        if self.operands.zero_points is None:
            return None
        kind, place = self.scheme.vector(self.tile.lanes, "i8"), index(vector * self.tile.lanes)
        loaded = value("vector.load", kind, self.operands.zero_points, line, place)
        name = "arith.extsi" if self.scheme.sum_element == "i32" else "arith.sitofp"
        return value(name, self.scheme.sums, loaded)

    def _shifted(self, sums: Value, row_sum: Value | None, points: Value | None) -> Value:
        """Creates the sums less the zero point times the sum of A, in f32."""
        is_integer = self.scheme.sum_element == "i32"
        if row_sum is not None and points is not None:
            every = _in_all(row_sum, self.scheme.sums)
            if is_integer:
                less = value("arith.muli", sums.type, every, points)
                sums = value("arith.subi", sums.type, sums, less)
            else:
                sums = value("vector.fma", sums.type, value("arith.negf", sums.type, every), points, sums)
        return value("arith.sitofp", self.floats, sums) if is_integer else sums

    def _of_rows(self, rows: list[Value], sums: Sequence[Value], vectors: int) -> list[Value]:
        """Creates the sums times the scales of rows of A that were quantized by row."""
        if self.rows.scales is None or self._is_scaled_by_group:
            return list(sums)
        scales = [self._row_scale(row, index(0)) for row in rows]
        return [
            value("arith.mulf", self.floats, each, scales[number // vectors])
            for number, each in enumerate(sums)
        ]


class QuantizedMatmulOp(InPlaceOp, name="quantized_matmul"):
    """``tuner.quantized_matmul``: replaces the body of a quantized matmul by its loops on packed weights.

    Takes a function that ``tuner.core.quantization.quantized_text`` wrote, on tensors. Its integers, scales
    and zero points become arguments that the caller packs once: panels of ``tile_n`` columns.

        func.func @f(..., %b: memref<16x64xi8> {tuner.bits = 4 : i64, ...}, %s: memref<16x2xf16> ...) ... {
      becomes, with tile_n = 16 and scheme = "dots": a panel of 8 steps of 8 rows of K
        func.func @f(..., %b: memref<8x64xi8> {... tuner.nibbles = "fours", ...}, %s: memref<2x16xf16> ... {
      and in the innermost loop, of each row of the tile and each vector of 16 columns
        %packed = vector.load %b[%line, %c0] : memref<8x64xi8>, vector<64xi8>
        %low = arith.andi %packed, %c15 : vector<64xi8>
        %few = vector.load %rows[%row, %k] : memref<2x128xi8>, vector<4xi8>
        %next = func.call @vpdpbusd_512(%sums, %low, %bytes_of_a) : ...

    Attributes: ``scheme``, "dots" (products of bytes by vpdpbusd, of quantized A), "pairs" (of bf16 by
    vdpbf16ps) or "singles" (of f32; default); i64 ``tile_m`` and ``tile_n``, rows and columns of the sums in
    registers (default 4 and 64), ``lanes``, sums of a register (default 16), ``block_k``, elements of K
    after which the next strip of rows is multiplied (default 0: all), ``prefetch``, bytes from the weights
    that are multiplied to those that are prefetched (default 0: none). The handle stays valid. Silenceable
    failure: another function, a scheme that does not fit the types, a tile that is no whole registers, a
    block_k that groups or K do not divide.

    Source: docs/decisions/quantized-matmuls.md
    """

    def change(self, function: Op) -> str | None:
        tile = QuantizedTile.of(self)
        found = operands_of(function, tile.block_k)
        if isinstance(found, str):
            return found
        reason = _refusal(tile, found)
        if reason:
            return reason
        scheme = BY_NAME[tile.scheme](tile, found)
        scheme.prepare(function)
        for op in reversed(list(function.regions[0].blocks[0].operations)[:-1]):
            op.operation.erase()
        _take_packed(function, found, tile, scheme)
        end = next(iter(function.regions[0].blocks[0].operations))
        with ir.InsertionPoint(end), end.location:
            rows = RowPreparation(found, scheme).build()
            QuantizedProduct(found, tile, scheme, rows).build()
        return None


def _refusal(tile: QuantizedTile, operands: QuantizedOperands) -> str:
    """Returns why a tile does not fit a matmul; "" if it does."""
    is_integer = bool(operands.format.activations)
    if tile.scheme not in SCHEMES:
        return f"scheme: found {tile.scheme!r}, allowed {', '.join(SCHEMES)}"
    if tile.scheme == DOTS and not is_integer:
        return "found dots of activations that are not quantized, allowed pairs or singles"
    if tile.scheme == PAIRS and (is_integer or operands.dtype != "bf16" or tile.lanes != WORDS.lanes // 2):
        return f"found pairs of {operands.dtype} with {tile.lanes} lanes, allowed bf16 with 16"
    if min(tile.rows, tile.lanes, tile.columns) < 1 or tile.columns % tile.lanes:
        return (
            f"found {tile.rows} x {tile.columns} sums in registers of {tile.lanes}, allowed whole registers"
        )
    depth = operands.format.group or ROW_PADDING // 2
    if tile.block_k and (tile.block_k % depth or operands.k % tile.block_k):
        return f"block_k: found {tile.block_k}, allowed divisors of {operands.k} and multiples of {depth}"
    if tile.block_k and operands.output != "f32":
        return "block_k: found blocks of K with sums in bf16, allowed f32"
    return ""


def _take_packed(function: Op, operands: QuantizedOperands, tile: QuantizedTile, scheme: Scheme) -> None:
    """Gives the weights, scales and zero points the types of their panels."""
    _, n, k = operands.sizes
    panels, groups = -(-n // tile.columns), operands.format.groups(k)
    steps = operands.runs * -(-operands.depth // scheme.step)
    byte = ir.IntegerType.get_signless(8)
    kind = ir.MemRefType.get([panels * steps, tile.vectors * scheme.line_bytes], byte)
    set_packed_as(
        function,
        1,
        kind,
        tile.columns,
        (1, 0),
        interleave=scheme.step,
        depth=scheme.step,
        unsigned=scheme.is_unsigned and not scheme.is_nibbles,
        nibbles=scheme.nibbles if scheme.is_nibbles else "",
    )
    for number in range(2, len(operands.arguments) - 1):
        element = ir.MemRefType(operands.arguments[number].type).element_type
        kind = ir.MemRefType.get([panels * groups, tile.columns], element)
        set_packed_as(function, number, kind, tile.columns, (1, 0))
