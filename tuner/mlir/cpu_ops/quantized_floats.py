"""Quantized matmuls of many rows of f32: weights are unpacked and scaled once for each block of a panel."""

from tuner.mlir.bindings import Value, ir
from tuner.mlir.cpu_ops.quantized_product import PanelBlock, QuantizedProduct
from tuner.mlir.cpu_ops.vnni_packing import BlockExtent, allocated, in_steps
from tuner.mlir.ir.building import create, for_each, index, loop, plus, times, total, value, zero


class FloatProduct:
    """Creates the loops of a product by weights that a buffer has as f32.

    An integer of 8 bits times a scale of 11 bits is exact in f32, so that weights are what the payload says.
    Then all of K is one sum: it needs no sums of groups, and so half of the registers.
    """

    def __init__(self, product: QuantizedProduct) -> None:
        self.product, self.operands, self.tile = product, product.operands, product.tile
        self.depth = product.runs_of_block * self.operands.depth  # elements of K of a block
        lines = product.runs_of_block * product.steps * product.scheme.step  # with those that pad a step
        self.weights = allocated((lines, self.tile.columns), ir.F32Type.get())

    def build(self) -> None:
        """Creates all loops."""

        def of_block(block: PanelBlock) -> None:
            vectors = -(-block.columns // self.tile.lanes)
            self._unpack(block, vectors)

            def of_strip(strip: Value, rows: int) -> None:
                first = times(strip, self.tile.rows)
                self._multiply([plus(first, each) for each in range(rows)], block, vectors)

            in_steps(BlockExtent(self.operands.sizes[0]), self.tile.rows, of_strip)

        self.product.over_blocks(of_block)

    def _unpack(self, block: PanelBlock, vectors: int) -> None:
        product, kind = self.product, self.product.floats

        def of_run(number: Value) -> None:
            run = block.run(number)
            group = product.group_of(block.panel, run, vectors)

            def of_step(step: Value) -> None:
                line = total(product.line_of(block, run), step)
                factors = product.factors(line, vectors)
                product.fetch_ahead(line, vectors)
                first = times(total(times(number, product.steps), step), product.scheme.step)
                for vector, (scale, points) in enumerate(group):
                    for part, each in enumerate(factors[vector]):
                        shifted = each if points is None else value("arith.subf", kind, each, points)
                        scaled = value("arith.mulf", kind, shifted, scale)
                        place = (plus(first, part), index(vector * self.tile.lanes))
                        create("vector.store", [], [scaled, self.weights, *place])

            for_each(0, product.steps, of_step)

        for_each(0, product.runs_of_block, of_run)

    def _multiply(self, rows: list[Value], block: PanelBlock, vectors: int) -> None:
        product, kind = self.product, self.product.floats
        first_k = times(block.run(index(0)), self.operands.depth)
        places = [index(vector * self.tile.lanes) for vector in range(vectors)]

        def of_k(k: Value, *sums: Value) -> list[Value]:
            of_b = [value("vector.load", kind, self.weights, k, place) for place in places]
            after: list[Value] = []
            for row in rows:
                of_a = product.scheme.of_a(product.rows.numbers, row, total(first_k, k))
                after += [
                    product.scheme.after(before, of_a, each)
                    for before, each in zip(sums[len(after) :][:vectors], of_b, strict=True)
                ]
            return after

        sums = loop(0, self.depth, of_k, [zero(kind)] * (len(rows) * vectors))
        for number, row in enumerate(rows):
            of_row = sums[number * vectors :][:vectors]
            product.store(row, block.panel, block.columns, of_row, adds=block.adds)
