"""The transform op ``tuner.quantized_matmul``, and its loops where weights are unpacked to a buffer first.

Panels, blocks, strips, runs and steps are those of ``tuner.models.ops.quantized_product``.
"""

from tuner.core.dtypes import number_type
from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.cpu_ops.amx_tiles import tile_load, tile_store
from tuner.mlir.cpu_ops.register_block import multiplied, multiplied_by_columns
from tuner.mlir.cpu_ops.vnni_packing import LINE_BYTES, allocated
from tuner.mlir.dialect import InPlaceOp
from tuner.mlir.ir.building import create, for_each, index, loop, plus, rolled_loop, times, total, value, zero
from tuner.mlir.ir.packed_weights import set_packed_as
from tuner.mlir.ir.table_lookup import WORDS
from tuner.models.ops.quantized_product import PanelBlock, QuantizedProduct, Strip, UnpackedBlock
from tuner.models.ops.quantized_rows import RowPreparation
from tuner.models.ops.quantized_schemes import (
    BYTES,
    DOTS,
    MOST_TILED,
    PAIRS,
    ROW_PADDING,
    SCALED,
    SCHEMES,
    TILE_ROWS,
    TILES,
    QuantizedOperands,
    QuantizedTile,
    Scheme,
    operands_of,
    scheme_of,
)


class TileProduct:
    """Generator of a quantized product's loops where AMX tiles multiply.

    The weights of a block of K of a panel, ``tile_n`` columns of B, are first unpacked to a buffer. The sums
    of a run, the elements of K whose sum is scaled at once, leave the tiles by a buffer, are scaled, and are
    added to f32 sums in another buffer; both buffers stay in the first level of cache.
    """

    def __init__(self, product: QuantizedProduct) -> None:
        self.product = product
        self.scheme = product.scheme
        self.tile = product.tile
        self.operands = product.operands
        element = self.scheme.element
        depth = LINE_BYTES // number_type(element).bytes
        self.depth = depth if self.operands.depth % depth == 0 else depth // 2  # elements of K of a tile
        self.unpacked = UnpackedBlock(product)
        self.per_row = self.unpacked.per_row
        of_sums = (self.tile.rows, self.tile.columns)
        self.run_sums = allocated(of_sums, ir.Type.parse(self.scheme.sum_element))
        self.sums = allocated(of_sums, ir.F32Type.get())

    def build(self) -> None:
        """Creates all loops of the product at the current insertion point."""
        self.product.over_strips(self.unpacked.fill, self._strip)

    def _strip(self, strip: Strip) -> None:
        block = strip.block
        vectors = -(-block.columns // self.tile.lanes)
        floats = self.product.floats
        lanes = self.tile.lanes
        columns = [index(vector * lanes) for vector in range(vectors)]

        def clear(row: Value) -> None:
            for column in columns:
                create("vector.store", [], [zero(floats), self.sums, row, column])

        def of_run(in_block: Value) -> None:
            run = block.run(in_block)
            self._multiply(strip.first, -(-strip.rows // TILE_ROWS), in_block, run, vectors)
            group = self.product.group_of(block.panel, run, vectors)

            def of_row(row: Value) -> None:
                made = [
                    value("vector.load", self.scheme.sums, self.run_sums, row, column) for column in columns
                ]
                before = [value("vector.load", floats, self.sums, row, column) for column in columns]
                after = self.product.scaled([total(strip.first, row)], run, group, made, before)
                for column, sums in zip(columns, after, strict=True):
                    create("vector.store", [], [sums, self.sums, row, column])

            rolled_loop(0, strip.rows, of_row)

        def finish(row: Value) -> None:
            sums = [value("vector.load", floats, self.sums, row, column) for column in columns]
            self.product.store(total(strip.first, row), block.panel, block.columns, sums, adds=block.adds)

        rolled_loop(0, strip.rows, clear)
        for_each(0, self.product.runs_of_block, of_run)
        rolled_loop(0, strip.rows, finish)

    def _multiply(self, first: Value, tiles: int, in_block: Value, run: Value, vectors: int) -> None:
        """Creates the sums of a run in tiles, and their stores to ``run_sums``."""
        element = self.scheme.element
        of_a = ir.Type.parse(f"!x86.amx.tile<{TILE_ROWS}x{self.depth}x{element}>")
        line_elements = LINE_BYTES // number_type(element).bytes
        of_b = ir.Type.parse(f"!x86.amx.tile<{self.depth // self.per_row}x{line_elements}x{element}>")
        steps = self.operands.depth // self.depth
        first_row = times(in_block, self.operands.depth // self.per_row)
        first_k = times(run, self.operands.depth)

        def of_step(step: Value, *before: Value) -> list[Value]:
            k = total(first_k, times(step, self.depth))
            buffer_row = total(first_row, times(step, self.depth // self.per_row))
            rows = [
                tile_load(of_a, self.product.rows.numbers, plus(first, TILE_ROWS * row_tile), k)
                for row_tile in range(tiles)
            ]

            def of_vector(vector: int) -> Value:
                column = index(vector * self.tile.lanes * self.per_row)
                return tile_load(of_b, self.unpacked.buffer, buffer_row, column)

            return multiplied_by_columns(before, rows, of_vector, self.scheme.products.after)

        start = [value("x86.amx.tile_zero", self.scheme.products.sums) for _ in range(tiles * vectors)]
        for number_of_tile, tile_sums in enumerate(loop(0, steps, of_step, start)):
            tile, vector = divmod(number_of_tile, vectors)
            tile_store(tile_sums, self.run_sums, index(tile * TILE_ROWS), index(vector * self.tile.lanes))


class FloatProduct:
    """Generator of a quantized product's loops where weights are first scaled to f32, in a buffer.

    An integer of 8 bits times an f16 scale is exact in f32, so that weights are what the payload says.
    Then all of K is one sum: it needs no sums of groups, and so half of the registers.
    """

    def __init__(self, product: QuantizedProduct) -> None:
        self.product = product
        self.operands = product.operands
        self.tile = product.tile
        self.depth = product.runs_of_block * self.operands.depth  # elements of K of a block
        rows = product.runs_of_block * product.steps * product.scheme.step  # with those that pad a step
        self.weights = allocated((rows, self.tile.columns), ir.F32Type.get())

    def build(self) -> None:
        """Creates all loops of the product at the current insertion point."""
        self.product.over_strips(self._unpack, self._multiply)

    def _unpack(self, block: PanelBlock) -> None:
        vectors = -(-block.columns // self.tile.lanes)
        product = self.product
        type_ = self.product.floats

        def of_run(in_block: Value) -> None:
            run = block.run(in_block)
            group = product.group_of(block.panel, run, vectors)

            def of_step(step: Value) -> None:
                weight_row = total(product.weight_row_of(block, run), step)
                factors = product.factors(weight_row, vectors)
                product.fetch_ahead(weight_row, vectors)
                first = times(total(times(in_block, product.steps), step), product.scheme.step)
                for vector, (scale, points) in enumerate(group):
                    for part, factor in enumerate(factors[vector]):
                        shifted = factor if points is None else value("arith.subf", type_, factor, points)
                        scaled = value("arith.mulf", type_, shifted, scale)
                        indices = (plus(first, part), index(vector * self.tile.lanes))
                        create("vector.store", [], [scaled, self.weights, *indices])

            for_each(0, product.steps, of_step)

        for_each(0, product.runs_of_block, of_run)

    def _multiply(self, strip: Strip) -> None:
        product = self.product
        block = strip.block
        vectors = -(-block.columns // self.tile.lanes)
        rows = [plus(strip.first, row) for row in range(strip.rows)]
        type_ = self.product.floats
        first_k = times(block.run(index(0)), self.operands.depth)
        columns = [index(vector * self.tile.lanes) for vector in range(vectors)]

        def of_k(k: Value, *sums: Value) -> list[Value]:
            of_b = [value("vector.load", type_, self.weights, k, column) for column in columns]
            return multiplied(
                sums,
                lambda row: product.scheme.of_a(product.rows.numbers, rows[row], total(first_k, k)),
                of_b,
                product.scheme.products.after,
            )

        sums = loop(0, self.depth, of_k, [zero(type_)] * (len(rows) * vectors))
        for row_index, row in enumerate(rows):
            of_row = sums[row_index * vectors :][:vectors]
            product.store(row, block.panel, block.columns, of_row, adds=block.adds)


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

    Attributes: ``scheme``, "dots" (products of bytes by vpdpbusd, of quantized A), "bytes" (likewise, each
    panel unpacked once, to a buffer), "pairs" (of bf16 by vdpbf16ps), "tiles" (AMX, of quantized A or bf16),
    "singles" (of f32; default) or "scaled" (of f32, unpacked and scaled once); i64 ``tile_m`` and ``tile_n``,
    rows and columns of the sums in registers (default 4 and 64), ``lanes``, sums of a register (default 16),
    4 for sdot of AArch64, ``words``, 1 for "dots" and "bytes" without VNNI: by vpmaddubsw, of weights of 8
    bits by vpmaddwd (default 0), ``block_k``, elements of K after which the next strip of rows is multiplied
    (default 0: all), ``prefetch``, bytes from the weights that are multiplied to those that are prefetched
    (default 0: none; where A has more rows than ``tile_m``, any other number prefetches the next block,
    except with "tiles" and "scaled"). The string ``instruction`` names that of "dots", "bytes" and "pairs",
    as in ``tuner.vnni_block``. The handle stays valid.
    Silenceable failure: a function that is not such a matmul, a scheme that does not fit the types, ``words``
    with a scheme other than "dots" and "bytes", a tile that is not whole registers, a ``block_k`` that does
    not divide K or is not a multiple of a group (without groups, of 32), and a ``block_k`` with a result
    other than f32.

    Source: docs/decisions/quantized-matmuls.md
    """

    def change(self, function: Op) -> Refusal | None:
        tile = QuantizedTile.of(self)
        operands = operands_of(function, tile.block_k)
        if isinstance(operands, Refusal):
            return operands
        refusal = _refusal(tile, operands)
        if refusal is not None:
            return refusal
        scheme = scheme_of(self, tile, operands)
        if isinstance(scheme, Refusal):
            return scheme
        scheme.prepare(function)
        for op in reversed(list(function.regions[0].blocks[0].operations)[:-1]):
            op.operation.erase()
        _take_packed(function, operands, tile, scheme)
        end = next(iter(function.regions[0].blocks[0].operations))
        with ir.InsertionPoint(end), end.location:
            rows = RowPreparation(operands, scheme).build()
            product = QuantizedProduct(operands, tile, scheme, rows)
            if scheme.is_in_tiles:
                TileProduct(product).build()
            elif scheme.is_scaled_ahead:
                FloatProduct(product).build()
            else:
                product.build()
        return None


def _refusal(tile: QuantizedTile, operands: QuantizedOperands) -> Refusal | None:
    """Returns why a tile does not fit a matmul; None if it does."""
    is_integer = bool(operands.format.activations)
    if tile.scheme not in SCHEMES:
        return Refusal(f"scheme: found {tile.scheme!r}, allowed {', '.join(SCHEMES)}")
    if tile.scheme == TILES and (reason := _tiles_refusal(tile, operands)):
        return reason
    if tile.scheme == SCALED and is_integer:
        return Refusal("found scaled with activations that are quantized, allowed dots, singles or tiles")
    if tile.scheme in (DOTS, BYTES) and not is_integer:
        return Refusal(f"found {tile.scheme} of activations that are not quantized, allowed pairs or singles")
    if tile.scheme not in (DOTS, BYTES) and tile.words:
        return Refusal(f"found words of {tile.scheme}, allowed words of dots or bytes")
    if tile.scheme == PAIRS and (is_integer or operands.dtype != "bf16" or tile.lanes != WORDS.lanes // 2):
        return Refusal(f"found pairs of {operands.dtype} with {tile.lanes} lanes, allowed bf16 with 16")
    if min(tile.rows, tile.lanes, tile.columns) < 1 or tile.columns % tile.lanes:
        return Refusal(
            f"found {tile.rows} x {tile.columns} sums in registers of {tile.lanes}, allowed whole registers"
        )
    depth = operands.format.group or ROW_PADDING // 2
    if tile.block_k and (tile.block_k % depth or operands.k % tile.block_k):
        return Refusal(
            f"block_k: found {tile.block_k}, allowed divisors of {operands.k} and multiples of {depth}"
        )
    if tile.block_k and operands.output != "f32":
        return Refusal("block_k: found blocks of K with sums in bf16, allowed f32")
    return None


def _tiles_refusal(tile: QuantizedTile, operands: QuantizedOperands) -> Refusal | None:
    if not operands.format.activations and operands.dtype != "bf16":
        return Refusal(f"found tiles of {operands.dtype}, allowed bf16, or activations that are quantized")
    if (
        tile.rows % TILE_ROWS
        or tile.lanes != TILE_ROWS
        or tile.rows > 2 * TILE_ROWS
        or tile.rows * tile.columns > MOST_TILED
    ):
        found = f"{tile.rows} x {tile.columns} sums with {tile.lanes} lanes"
        return Refusal(f"found {found} in tiles, allowed multiples of {TILE_ROWS} up to {MOST_TILED} sums")
    if operands.depth % (ROW_PADDING // 2):
        return Refusal(
            f"found tiles of {operands.depth} elements of K, allowed multiples of {ROW_PADDING // 2}"
        )
    return None


def _take_packed(function: Op, operands: QuantizedOperands, tile: QuantizedTile, scheme: Scheme) -> None:
    """Gives the weights, scales and zero points the types of their panels."""
    _, n, k = operands.sizes
    panels = -(-n // tile.columns)
    groups = operands.format.groups(k)
    steps = operands.runs * -(-operands.depth // scheme.step)
    byte = ir.IntegerType.get_signless(8)
    type_ = ir.MemRefType.get([panels * steps, tile.vectors * scheme.vector_bytes], byte)
    set_packed_as(
        function,
        1,
        type_,
        tile.columns,
        (1, 0),
        interleave=scheme.step,
        depth=scheme.step,
        unsigned=bool(scheme.offset) and not scheme.is_nibbles,
        nibbles=scheme.nibbles if scheme.is_nibbles else "",
    )
    for number in range(2, len(operands.arguments) - 1):
        element = ir.MemRefType(operands.arguments[number].type).element_type
        type_ = ir.MemRefType.get([panels * groups, tile.columns], element)
        set_packed_as(function, number, type_, tile.columns, (1, 0))
