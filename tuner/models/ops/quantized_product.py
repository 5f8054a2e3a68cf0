"""The loops of a quantized matmul: panels of packed weights times prepared rows of A.

Loops, outermost first:

    panels of B (tile_n) > blocks of K (block_k) > strips of rows (tile_m) > runs of K > steps of K

A run is the ``QuantizedOperands.depth`` elements of K whose sum is scaled at once: a group of K, or without
groups a block of K. A step is one row of packed weights, a load per vector of columns: 8 rows of K of 4 bits,
or 4, 2 or 1 row of 8 bits. The scaled sums of runs are added up in f32, in registers or, of AMX tiles, in a
buffer, over all runs of a block.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tuner.core.quantization import BY_GROUP, BY_ROW
from tuner.mlir.bindings import Value, ir
from tuner.mlir.cpu_ops.register_block import multiplied
from tuner.mlir.cpu_ops.vector_lanes import in_all_lanes, store_lanes
from tuner.mlir.cpu_ops.vnni_packing import (
    LINE_BYTES,
    BlockExtent,
    allocated,
    fetch_share,
    in_steps,
)
from tuner.mlir.ir.building import create, fetch, for_each, index, load, loop, plus, times, total, value, zero
from tuner.models.ops.quantized_rows import QuantizedRows
from tuner.models.ops.quantized_schemes import QuantizedOperands, QuantizedTile, Scheme


@dataclass(frozen=True, eq=False)
class PanelBlock:
    """A block of K, ``block_k`` of its elements, of a panel, which is ``columns`` columns of B."""

    panel: Value
    columns: int
    first: Value | None  # number of its first run, among all runs of K; None: it is the first block

    @property
    def adds(self) -> bool:
        """Returns whether the block's sums are added to C, which holds the sums of earlier blocks of K."""
        return self.first is not None

    def run(self, in_block: Value) -> Value:
        """Creates the index, among all runs of K, of the block's run ``in_block``; returns its index value.

        A run is the elements of K whose sum is scaled at once.
        """
        if self.first is None:
            return in_block
        return total(self.first, in_block)


@dataclass(frozen=True, eq=False)
class Strip:
    """Rows of A whose sums with the columns of ``block`` are in registers at the same time."""

    number: Value  # of the strip, among all strips of A
    first: Value  # row
    rows: int
    block: PanelBlock


class QuantizedProduct:
    """Generator of a quantized matmul's loops over panels, blocks of K, strips of rows, runs and steps."""

    def __init__(
        self, operands: QuantizedOperands, tile: QuantizedTile, scheme: Scheme, rows: QuantizedRows
    ) -> None:
        self.operands = operands
        self.tile = tile
        self.scheme = scheme
        self.rows = rows
        self.floats = scheme.vector(tile.lanes, "f32")

    @cached_property
    def runs_of_block(self) -> int:
        block_k = self.tile.block_k
        if block_k:
            return block_k // self.operands.depth
        return self.operands.runs

    @cached_property
    def steps(self) -> int:
        """Returns how many steps a run has; a step is one row of packed weights.

        A run is the elements of K whose sum is scaled at once.
        """
        return -(-self.operands.depth // self.scheme.step)

    def build(self) -> None:
        """Creates all loops of a product whose sums are in vector registers."""
        unpacked = UnpackedBlock(self) if self.scheme.is_unpacked_ahead else None
        fill = unpacked.fill if unpacked is not None else None
        self.over_strips(fill, lambda strip: self._tile(strip, unpacked))

    def over_strips(
        self, fill: Callable[["PanelBlock"], None] | None, body: Callable[["Strip"], None]
    ) -> None:
        """Creates the loops over panels, in each over blocks of K, and in each over strips of rows.

        ``body`` creates the code of a strip, ``fill`` what comes before the strips of a block; None: nothing.
        """

        def of_block(block: PanelBlock) -> None:
            if fill is not None:
                fill(block)

            def of_strip(number: Value, rows: int) -> None:
                body(Strip(number, times(number, self.tile.rows), rows, block))

            in_steps(BlockExtent(self.operands.sizes[0]), self.tile.rows, of_strip)

        self._over_blocks(of_block)

    def _over_blocks(self, body: Callable[["PanelBlock"], None]) -> None:
        """Creates the loops over panels and, in each, over blocks of K.

        ``body`` creates the code of a block.
        """
        blocks = -(-self.operands.runs // self.runs_of_block)

        def of_panel(panel: Value, columns: int) -> None:
            body(PanelBlock(panel, columns, None))
            if blocks > 1:

                def of_other(block: Value) -> tuple[()]:
                    body(PanelBlock(panel, columns, times(block, self.runs_of_block)))
                    return ()

                loop(1, blocks, of_other)

        in_steps(BlockExtent(self.operands.sizes[1]), self.tile.columns, of_panel)

    def _tile(self, strip: Strip, unpacked: "UnpackedBlock | None") -> None:
        """Creates the sums of a strip; ``unpacked``: the block's weights, None: the strip unpacks them."""
        block = strip.block
        panel = block.panel
        columns = block.columns
        vectors = -(-columns // self.tile.lanes)
        row_numbers = [plus(strip.first, distance) for distance in range(strip.rows)]

        def of_run(in_block: Value, *before: Value) -> list[Value]:
            run = block.run(in_block)
            sums = self._sums(strip, unpacked, row_numbers, vectors, in_block)
            return self.scaled(row_numbers, run, self.group_of(panel, run, vectors), sums, before)

        start = [zero(self.floats)] * (strip.rows * vectors)
        if self.runs_of_block > 1:
            finished = loop(0, self.runs_of_block, of_run, start)
        else:
            finished = of_run(index(0), *start)
        for row_index, row in enumerate(row_numbers):
            self.store(row, panel, columns, finished[row_index * vectors :][:vectors], adds=block.adds)

    def _sums(
        self,
        strip: Strip,
        unpacked: "UnpackedBlock | None",
        rows: list[Value],
        vectors: int,
        in_block: Value,
    ) -> list[Value]:
        """Creates the sums of a block's run ``in_block``: a vector for each row and vector of columns."""
        scheme = self.scheme
        run = strip.block.run(in_block)
        first_row = self.weight_row_of(strip.block, run)
        first_k = times(run, self.operands.depth)

        def of_step(step: Value, *sums: Value) -> list[Value]:
            weight_row = total(first_row, step)
            if unpacked is None:
                factors = self.factors(weight_row, vectors)
            else:
                factors = unpacked.factors(total(times(in_block, self.steps), step), vectors)
            if self.operands.sizes[0] > self.tile.rows:
                self._fetch_next_block(strip, weight_row)
            else:
                self.fetch_ahead(weight_row, vectors)
            k = total(first_k, times(step, scheme.step))
            after = list(sums)
            width = scheme.step // len(factors[0])
            for part in range(len(factors[0])):

                def of_row(row: int, part_k: int = part * width) -> list[Value]:
                    return scheme.of_a(self.rows.numbers, rows[row], plus(k, part_k))

                of_b = [of_vector[part] for of_vector in factors]
                after = multiplied(after, of_row, of_b, scheme.products.after)
            return after

        start = [self._start(row, run) for row in rows]
        before = [row_start for row_start in start for _ in range(vectors)]
        if scheme.span == 1:
            return loop(0, self.steps, of_step, before)
        return self._sums_of_spans(of_step, before)

    def _sums_of_spans(self, of_step: Callable[..., list[Value]], before: list[Value]) -> list[Value]:
        """Creates ``before`` plus the products of a run's steps, which are first summed span by span.

        ``of_step(step, *partial)`` creates the sums of a span after one more step.
        """
        scheme = self.scheme

        def of_steps(first: Value, count: int, sums: Sequence[Value]) -> list[Value]:
            def of_one(number: Value, *partial: Value) -> list[Value]:
                return of_step(total(first, number), *partial)

            empty = [scheme.partial(vector) for vector in sums]
            partial = loop(0, count, of_one, empty)
            return [scheme.joined(vector, part) for vector, part in zip(sums, partial, strict=True)]

        def of_span(number: Value, *sums: Value) -> list[Value]:
            return of_steps(times(number, scheme.span), scheme.span, sums)

        whole, rest = divmod(self.steps, scheme.span)
        sums = before
        if whole:
            sums = loop(0, whole, of_span, before)
        if rest:
            return of_steps(index(whole * scheme.span), rest, sums)
        return sums

    def factors(self, weight_row: Value, vectors: int) -> list[list[Value]]:
        """Creates, for each of ``vectors`` vectors of columns, the unpacked weights of a step.

        A step is one row of packed weights, number ``weight_row``. Returns per vector what ``Scheme.factors``
        returns.
        """
        return [self.scheme.factors(self._loaded(weight_row, vector)) for vector in range(vectors)]

    def weight_row_of(self, block: PanelBlock, run: Value) -> Value:
        """Creates the index of the row of packed weights at which run ``run`` begins in the block's panel.

        A run is the elements of K whose sum is scaled at once. ``run``: its number among all runs of K.
        """
        return total(times(block.panel, self.operands.runs * self.steps), times(run, self.steps))

    def _start(self, row: Value, run: Value) -> Value:
        return self.scheme.start(self._row_sum(row, run) if self.scheme.offset else None)

    def _row_sum(self, row: Value, run: Value) -> Value:
        return load(self.rows.sums, [row, run])

    def _loaded(self, weight_row: Value, vector: int) -> Value:
        width = self.scheme.vector_bytes
        type_ = self.scheme.vector(width, "i8")
        return value("vector.load", type_, self.operands.arguments[1], weight_row, index(vector * width))

    @property
    def _row_bytes(self) -> int:
        """Returns the bytes of a row of packed weights."""
        return self.scheme.vector_bytes * self.tile.vectors

    def fetch_ahead(self, weight_row: Value, vectors: int) -> None:
        """Creates prefetches of the packed weights ``tile.ahead_bytes``, in whole rows, after ``weight_row``.

        At least one row ahead; no prefetch if ``tile.ahead_bytes`` is 0. Hardware's own prefetches stop at
        the end of a 4 KB page.
        """
        if not self.tile.ahead_bytes:
            return
        ahead = plus(weight_row, max(1, self.tile.ahead_bytes // self._row_bytes))
        for at in range(0, self.scheme.vector_bytes * vectors, LINE_BYTES):
            fetch(self.operands.arguments[1], ahead, index(at), locality=3)

    def _fetch_next_block(self, strip: Strip, weight_row: Value) -> None:
        """Creates prefetches of a strip's share of the block that follows in memory."""
        if not self.tile.ahead_bytes:
            return
        strips = -(-self.operands.sizes[0] // self.tile.rows)
        rows = self.runs_of_block * self.steps
        begin = self.weight_row_of(strip.block, strip.block.run(index(0)))
        step = total(times(strip.number, rows), value("arith.subi", begin.type, weight_row, begin))
        later = (self.operands.arguments[1], plus(begin, rows))
        fetch_share(later, step, strips, self._row_bytes, LINE_BYTES)

    def group_of(self, panel: Value, run: Value, vectors: int) -> list[tuple[Value, Value | None]]:
        """Creates, per vector of columns of a panel, (scales, zero points) of a run.

        Zero points are None for a format without them. ``run``: number of the run, the elements of K whose
        sum is scaled at once.
        """
        groups = self.operands.format.groups(self.operands.k)
        scale_row = total(times(panel, groups), self.operands.group(run))
        return [
            (self._scale_of(scale_row, vector), self._points_of(scale_row, vector))
            for vector in range(vectors)
        ]

    def scaled(
        self,
        rows: list[Value],
        run: Value,
        group: list[tuple[Value, Value | None]],
        sums: list[Value],
        before: Sequence[Value],
    ) -> list[Value]:
        """Creates ``before`` plus the sums of a run, less its zero points' part, times its scales.

        A run is the elements of K whose sum is scaled at once. Returns the sums, in the order of ``before``.

        Args:
            rows: numbers of the rows of A.
            run: number of the run among all runs of K.
            group: (scales, zero points) of each vector of columns, by ``group_of``.
            sums: the run's sums, for each row one vector per vector of columns.
            before: f32 sums of earlier runs, in the same order.
        """
        after: list[Value] = []
        for row_index, row in enumerate(rows):
            shift = None if self.operands.zero_points is None else self._row_sum(row, run)
            by_row = self._row_scale(row, run) if self._is_scaled_by_run else None
            for vector, (scale, points) in enumerate(group):
                register = row_index * len(group) + vector
                made = self._shifted(sums[register], shift, points)
                factor = scale
                if by_row is not None:  # in the payload's order: the other one overflows before
                    made = value("arith.mulf", self.floats, made, scale)
                    factor = by_row
                after.append(value("vector.fma", self.floats, made, factor, before[register]))
        return after

    def store(self, row: Value, panel: Value, columns: int, sums: Sequence[Value], *, adds: bool) -> None:
        """Creates the store of ``sums``, a row of a panel of C; ``columns``: how many columns the panel has.

        With ``adds``, the sums are added to those that an earlier block of K stored.
        """
        lanes = self.tile.lanes
        column = times(panel, self.tile.columns)
        is_by_row = self.rows.scales is not None and not self._is_scaled_by_run
        scale = self._row_scale(row, index(0)) if is_by_row else None
        for vector, made_sums in enumerate(sums):
            made = made_sums if scale is None else value("arith.mulf", self.floats, made_sums, scale)
            if self.operands.output != "f32":
                made = value("arith.truncf", self.scheme.vector(lanes, self.operands.output), made)
            indices = (row, plus(column, vector * lanes))
            width = min(columns - vector * lanes, lanes)
            store_lanes(made, self.operands.arguments[-1], indices, width, adds=adds)

    @property
    def _is_scaled_by_run(self) -> bool:
        """Returns whether the sums of a run are multiplied by a scale of A before they are added.

        True for scales by group, False without scales of A. Scales by row are applied once, to the sum of all
        runs, if the weights' scales are f16: these are at most 65504, so that the sum does not overflow. With
        weights' scales of f32 or bf16 it might, so that scales by row are applied to each run.
        """
        format_ = self.operands.format
        return format_.activations == BY_GROUP or (
            format_.activations == BY_ROW and format_.scale_dtype != "f16"
        )

    def _row_scale(self, row: Value, run: Value) -> Value:
        number = index(0)
        if self.operands.format.activations == BY_GROUP:
            number = run
        scale = load(self.rows.scales, [row, number])
        return in_all_lanes(scale, self.floats)

    def _scale_of(self, scale_row: Value, vector: int) -> Value:
        dtype = self.operands.format.scale_dtype
        type_ = self.scheme.vector(self.tile.lanes, dtype)
        column = index(vector * self.tile.lanes)
        loaded = value("vector.load", type_, self.operands.arguments[2], scale_row, column)
        if dtype == "f32":
            return loaded
        return value("arith.extf", self.floats, loaded)

    def _points_of(self, scale_row: Value, vector: int) -> Value | None:
        """Creates the zero points of a vector of columns in the type of the sums, i32 or f32.

        None for a format without zero points.
        """
        if self.operands.zero_points is None:
            return None
        type_ = self.scheme.vector(self.tile.lanes, "i8")
        column = index(vector * self.tile.lanes)
        loaded = value("vector.load", type_, self.operands.zero_points, scale_row, column)
        name = "arith.extsi" if self.scheme.sum_element == "i32" else "arith.sitofp"
        return value(name, self.scheme.sums, loaded)

    def _shifted(self, sums: Value, row_sum: Value | None, points: Value | None) -> Value:
        """Creates the sums less the zero point times the sum of A, in f32."""
        is_integer = self.scheme.sum_element == "i32"
        if row_sum is not None and points is not None:
            every = in_all_lanes(row_sum, self.scheme.sums)
            if is_integer:
                less = value("arith.muli", sums.type, every, points)
                sums = value("arith.subi", sums.type, sums, less)
            else:
                sums = value("vector.fma", sums.type, value("arith.negf", sums.type, every), points, sums)
        if is_integer:
            return value("arith.sitofp", self.floats, sums)
        return sums


class UnpackedBlock:
    """The unpacked weights of a block of K of a panel, in a buffer that all strips of rows read.

    ``buffer``: memref<rows x columns and their elements of K>. A step has ``parts`` rows of the buffer, each
    with a factor for each vector of columns, of ``per_row`` elements of K.
    """

    def __init__(self, product: QuantizedProduct) -> None:
        """Creates the allocation of the buffer."""
        element = product.scheme.element
        self.product = product
        self.per_row = product.scheme.per_factor
        self.parts = product.scheme.step // self.per_row
        buffer_rows = product.runs_of_block * product.steps * self.parts
        self._lanes = product.tile.lanes * self.per_row  # of a factor
        self._factor = product.scheme.vector(self._lanes, element)
        self.buffer = allocated((buffer_rows, product.tile.vectors * self._lanes), ir.Type.parse(element))

    def fill(self, block: PanelBlock) -> None:
        """Creates the loop that unpacks the weights of ``block`` to the buffer."""
        product = self.product
        vectors = -(-block.columns // product.tile.lanes)
        begin = product.weight_row_of(block, block.run(index(0)))

        def of_step(step: Value) -> None:
            factors = product.factors(total(begin, step), vectors)
            product.fetch_ahead(total(begin, step), vectors)
            for part in range(self.parts):
                for vector in range(vectors):
                    place = self._place(step, part, vector)
                    create("vector.store", [], [factors[vector][part], self.buffer, *place])

        for_each(0, product.runs_of_block * product.steps, of_step)

    def factors(self, step: Value, vectors: int) -> list[list[Value]]:
        """Creates the loads of a step's unpacked weights; returns a list of factors per vector of columns.

        ``step``: its index among those of the block; ``vectors``: the number of vectors of columns.
        """
        return [
            [
                value("vector.load", self._factor, self.buffer, *self._place(step, part, vector))
                for part in range(self.parts)
            ]
            for vector in range(vectors)
        ]

    def _place(self, step: Value, part: int, vector: int) -> tuple[Value, Value]:
        return plus(times(step, self.parts), part), index(vector * self._lanes)
