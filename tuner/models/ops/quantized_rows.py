"""A of a quantized matmul before the product: quantized, converted or copied, and its runs summed.

A sum of a run of A as it comes, before it is scaled, may be too large for f32 though the scaled sum is not.
Rows with numbers so large are divided by a power of two before they are multiplied, their sums multiplied.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuner.core.quantization import BY_GROUP, BY_ROW, GREATEST, LEAST_MAXIMUM
from tuner.mlir.bindings import Value, ir
from tuner.mlir.cpu_ops.vector_lanes import in_all_lanes
from tuner.mlir.cpu_ops.vnni_packing import (
    allocated,
    constant_mask,
)
from tuner.mlir.ir.building import create, index, loop, plus, splat, times, total, value, zero
from tuner.models.ops.quantized_schemes import ROW_PADDING, TILE_ROWS, QuantizedOperands, Scheme

ORDERED = {"ogt": 2, "olt": 4}  # of arith.cmpf
EXPONENT_LIMIT = 127  # numbers up to 2**127 are in the range of f32


@dataclass(frozen=True, eq=False)
class QuantizedRows:
    """A as a scheme multiplies it: a buffer of rows, with zeros where packed weights go on beyond K.

    A run, below, is the elements of K whose sum is scaled at once.
    """

    numbers: Value  # memref<m x k and padding>; A itself where it is read in place
    scales: Value | None  # memref<m x runs, or 1, x f32>: what sums are multiplied by
    sums: Value | None  # memref<m x runs> of the elements of A of each run


class RowPreparation:
    """Generator of the code that quantizes, converts or copies A before a quantized matmul.

    It also sums each run of A, the elements of K whose sum is scaled at once.
    """

    def __init__(self, operands: QuantizedOperands, scheme: Scheme) -> None:
        self.operands = operands
        self.scheme = scheme
        self.lanes = scheme.lanes
        self.floats = scheme.vector(self.lanes, "f32")

    def build(self) -> QuantizedRows:
        operands = self.operands
        scheme = self.scheme
        m, _, k = operands.sizes
        wants_sums = bool(scheme.offset) or operands.format.has_zero_points
        is_in_place = scheme.is_scaled_ahead and operands.dtype == scheme.element and k % scheme.step == 0
        if is_in_place and not wants_sums:
            return QuantizedRows(operands.arguments[0], None, None)
        element = ir.Type.parse(scheme.element)
        stride = -(-k // ROW_PADDING) * ROW_PADDING + ROW_PADDING
        height = -(-m // TILE_ROWS) * TILE_ROWS if scheme.is_in_tiles else m
        numbers = operands.arguments[0] if is_in_place else allocated((height, stride), element)
        row_scales = operands.runs if operands.format.activations == BY_GROUP else 1
        scales = None if scheme.is_scaled_ahead else allocated((m, row_scales), ir.F32Type.get())
        if wants_sums:
            sums = allocated((m, operands.runs), ir.Type.parse(scheme.sum_element))
        else:
            sums = None
        rows = QuantizedRows(numbers, scales, sums)

        def of_row(row: Value) -> tuple[()]:
            factor = None
            if operands.format.activations == BY_ROW:
                factor = self._scale(rows, row, index(0), index(0), k)
            elif scales is not None and not operands.format.activations:
                factor = self._division(rows, row)

            def of_run(run: Value) -> tuple[()]:
                begin = times(run, operands.depth)
                by_run = factor
                if operands.format.activations == BY_GROUP:
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
        type_ = self.scheme.vector(self.lanes, self.operands.dtype)
        if count == self.lanes:
            loaded = value("vector.load", type_, source, row, k)
        else:
            mask = constant_mask(count, self.lanes)
            loaded = value("vector.maskedload", type_, source, row, k, mask, zero(type_))
        if self.operands.dtype == "f32":
            return loaded
        return value("arith.extf", self.floats, loaded)

    def _over(
        self, begin: Value, depth: int, body: Callable[..., Sequence[Value]], carried: Sequence[Value]
    ) -> list[Value]:
        """Creates a loop over ``depth`` elements of a row from ``begin`` on, a vector per iteration.

        The last vector is masked.
        """
        whole, rest = divmod(depth, self.lanes)

        def of_step(step: Value, *values: Value) -> Sequence[Value]:
            return body(total(begin, times(step, self.lanes)), self.lanes, *values)

        values = loop(0, whole, of_step, carried) if whole else list(carried)
        if rest:
            return list(body(plus(begin, whole * self.lanes), rest, *values))
        return values

    def _largest(self, row: Value, begin: Value, depth: int) -> Value:
        """Creates the greatest magnitude of a part of a row; NaN where it has a NaN."""

        def larger(k: Value, count: int, before: Value) -> list[Value]:
            size = value("math.absf", self.floats, self._read(row, k, count))
            return [value("arith.maximumf", self.floats, before, size)]

        (lanes,) = self._over(begin, depth, larger, [zero(self.floats)])
        kind = ir.Attribute.parse("#vector.kind<maximumf>")
        return value("vector.reduction", ir.F32Type.get(), lanes, kind=kind)

    def _scale(self, rows: QuantizedRows, row: Value, run: Value, begin: Value, depth: int) -> Value:
        """Creates the scale of a part of a row and stores it; returns its inverse."""
        f32 = ir.F32Type.get()
        largest = self._largest(row, begin, depth)
        greatest, least = (splat(f32, float(limit)) for limit in (GREATEST, LEAST_MAXIMUM))
        create("memref.store", [], [value("arith.divf", f32, largest, greatest), rows.scales, row, run])
        is_small = _compared("olt", largest, least)
        return value("arith.select", f32, is_small, zero(f32), value("arith.divf", f32, greatest, largest))

    def _division(self, rows: QuantizedRows, row: Value) -> Value:
        """Creates the factor, a power of two, that a row's numbers are multiplied by, and stores its inverse.

        1 for a row whose sums of runs are in the range of f32 as they are.
        """
        f32 = ir.F32Type.get()
        operands = self.operands
        # a run's sum has at most so many bits more than its largest element of A
        growth = operands.format.bits + (operands.depth - 1).bit_length()
        numbers = (2.0 ** (EXPONENT_LIMIT - growth), 2.0 ** (-growth - 1), 2.0 ** (growth + 1), 1.0)
        limit, smaller, larger, one = (splat(f32, number) for number in numbers)
        is_large = _compared("ogt", self._largest(row, index(0), operands.k), limit)
        inverse = value("arith.select", f32, is_large, larger, one)
        create("memref.store", [], [inverse, rows.scales, row, index(0)])
        return value("arith.select", f32, is_large, smaller, one)

    def _convert(
        self,
        rows: QuantizedRows,
        row: Value,
        run: Value,
        begin: Value,
        factor: Value | None,
        *,
        is_copied: bool,
    ) -> None:
        """Creates the code that converts a run of a row of A and stores it and its sum in ``rows``.

        The numbers are multiplied by ``factor`` (None: 1), and rounded if activations are quantized; the sum
        is of these, and is left out where ``rows`` has no sums. ``begin``: the run's first element of K.
        Without ``is_copied`` only the sum is stored: A is read where it is.
        """
        integers = self.scheme.vector(self.lanes, "i32")
        is_integer = self.scheme.sum_element == "i32"

        def of_part(k: Value, count: int, *sums: Value) -> list[Value]:
            numbers = self._read(row, k, count)
            if factor is not None:
                numbers = value("arith.mulf", self.floats, numbers, in_all_lanes(factor, self.floats))
            if self.operands.format.activations:
                numbers = value("math.roundeven", self.floats, numbers)
            whole = value("arith.fptosi", integers, numbers) if is_integer else numbers
            if is_copied:
                self._store(rows.numbers, row, k, whole)
            add = "arith.addi" if is_integer else "arith.addf"
            return [value(add, before.type, before, whole) for before in sums]

        start = [zero(integers if is_integer else self.floats)] if rows.sums is not None else []
        sums = self._over(begin, self.operands.depth, of_part, start)
        for lanes in sums:
            element = ir.VectorType(lanes.type).element_type
            added = value("vector.reduction", element, lanes, kind=ir.Attribute.parse("#vector.kind<add>"))
            create("memref.store", [], [added, rows.sums, row, run])

    def _store(self, buffer: Value, row: Value, k: Value, numbers: Value) -> None:
        element = self.scheme.element
        if element != "f32":
            name = "arith.truncf" if element == "bf16" else "arith.trunci"
            numbers = value(name, self.scheme.vector(self.lanes, element), numbers)
        create("vector.store", [], [numbers, buffer, row, k])  # a whole vector: the row is padded


def _compared(predicate: str, left: Value, right: Value) -> Value:
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ORDERED[predicate])
    return value("arith.cmpf", ir.IntegerType.get_signless(1), left, right, predicate=number)
