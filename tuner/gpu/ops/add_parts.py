"""The transform op ``tuner.add_parts``: split-K in one kernel."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.core.gpu import WARP_THREADS
from tuner.gpu.ir.launches import constant_grid, index_along
from tuner.gpu.ir.warps import assembly, i32, shuffled, synchronise_warp, word
from tuner.gpu.ops.balance_tiles import part_of
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import affine, branch, create, index, is_equal, is_less, symbol, total, value
from tuner.mlir.ir.memrefs import BUFFER, is_argument, named_arguments
from tuner.mlir.ir.reading import constant_of, walk

PARTS = "parts"  # buffers, by name
COUNTERS = "zeroed"
THREADS = slice(3, 6)  # operands of gpu.launch: threads of a block along x, y and z
# A release of the warp's stores and an acquire of those of the warps that arrived before. Only an atomic of
# this form is one instruction: ``memref.atomic_rmw`` becomes fences among all devices and the host.
ARRIVE = "atom.acq_rel.gpu.global.add.u32 $0, [$1], 1;"
RESET = "st.relaxed.gpu.global.u32 [$0], 0;"
COUNTER_BYTES = 4
SUMS_AT_ONCE = 32  # of a thread, of which a slice is loaded together


class AddPartsOp(InPlaceOp, name="add_parts"):
    """``tuner.add_parts``: the block that is last at a tile adds the parts of K, in the kernel itself.

    Takes a function with one ``gpu.launch`` whose blocks along z each sum a part of K and store it by
    ``vector.store`` to one argument, C. Gives stores of each part to a slice of the argument whose
    ``tuner.buffer`` is "parts". A warp counts its arrival in a word of the argument "zeroed", one for each
    tile and warp; the last of the warps at it reads all slices, adds them in the order of z, stores the sums
    to C and sets the word back to 0. Each lane reads what the same lane of other blocks stored, so warps
    do not wait for one another, and results have equal bits in each run.

        vector.store %sums, %c[%i, %j] : memref<8x64xf32>, vector<2xf32>
      becomes, with slices = 3
        vector.store %sums, %parts[%z, %i, %j] : memref<3x8x64xf32>, vector<2xf32>
        nvvm.bar.warp.sync ... : i32
        %before = llvm.inline_asm ... "atom.acq_rel.gpu.global.add.u32 ... %counter : (i64) -> i32
        %count, %valid = gpu.shuffle idx %before, %lane0, %width : i32
        nvvm.bar.warp.sync ... : i32
        scf.if %is_last {
          %part0 = vector.load %parts[%c0, %i, %j] : memref<3x8x64xf32>, vector<2xf32>
          %part1 = vector.load %parts[%c1, %i, %j] : memref<3x8x64xf32>, vector<2xf32>
          %two = arith.addf %part0, %part1 : vector<2xf32>
          %part2 = vector.load %parts[%c2, %i, %j] : memref<3x8x64xf32>, vector<2xf32>
          %total = arith.addf %two, %part2 : vector<2xf32>
          vector.store %total, %c[%i, %j] : memref<8x64xf32>, vector<2xf32>
          scf.if %is_lane0 {
            llvm.inline_asm ... "st.relaxed.gpu.global.u32 [$0], 0;"... %counter : (i64) -> ()

    Attributes (i64): ``slices``, the number of parts of K, and ``whole`` (default -1). With ``whole`` = -1
    the blocks along z are the parts. With 0 or more, the grid is that of ``tuner.balance_tiles``: the first
    ``whole`` blocks store their tiles to C, and of the others each ``slices`` in a row add up one tile. Their
    parts are stored as threads hold them, (slices) x (tiles, stores, threads) x (elements of a store).
    ``tuner.finish_stores`` follows, with mode "store". The words must be zero before the first run, and are
    so after each. The handle (a func.func) stays valid.
    Silenceable failure, with nothing changed: not one launch of constant size, no stores to an argument in
    one block of code that whole warps run, arguments that are missing or too small.
    """

    def change(self, function: Op) -> Refusal | None:
        reduction = _Reduction.of(function, attribute(self, "slices", 1), attribute(self, "whole", -1))
        if isinstance(reduction, Refusal):
            return reduction
        last = reduction.stores[-1]
        with last.location, ir.InsertionPoint.after(last):
            if reduction.whole < 0:
                reduction.pass_on()
            else:
                branch(reduction.is_whole(), reduction.store_whole, reduction.pass_on)
        for store in reduction.stores:
            store.erase()
        return None


@dataclass(frozen=True)
class _Reduction:
    """The stores of parts of sums to C by the blocks of a launch, and the buffers that pass parts on."""

    launch: Op
    stores: list[Op]  # vector.store to C, in one block of code
    parts: Value  # memref<slices x rows x columns>
    counters: Value  # memref of i32
    grid: tuple[int, int]  # blocks along x and y
    threads: tuple[int, int, int]
    slices: int
    whole: int  # blocks that compute whole tiles, of a grid of one row; -1: parts of K are blocks along z

    @classmethod
    def of(cls, function: Op, slices: int, whole: int) -> "_Reduction | Refusal":
        launches = walk(function, "gpu.launch")
        if len(launches) != 1:
            return Refusal(f"found {len(launches)} launches, allowed one")
        grid = constant_grid(launches[0])
        x, y, z = map(constant_of, list(launches[0].operands)[THREADS])
        if grid is None or x is None or y is None or z is None:
            return Refusal("found a launch of sizes that are not constant")
        stores = [op for op in walk(function, "vector.store") if is_argument(op.operands[1])]
        targets = {op.operands[1] for op in stores}
        blocks = {op.block for op in stores}
        if len(targets) != 1 or len(blocks) != 1:
            return Refusal(
                f"found stores to {len(targets)} arguments in {len(blocks)} blocks of code,"
                " allowed one of each"
            )
        buffers = named_arguments(function, BUFFER)
        parts = buffers.get(PARTS)
        counters = buffers.get(COUNTERS)
        if parts is None or counters is None:
            return Refusal(f"found no arguments with {BUFFER} = {PARTS!r} and {COUNTERS!r}")
        c = ir.MemRefType(stores[0].operands[1].type)
        if slices < 2:
            return Refusal(f"slices: found {slices}, allowed 2 or more")
        tiles = grid[0] * grid[1]
        expected = [slices, *c.shape]
        if whole >= 0:
            tiles = (tiles - whole) // slices
            width = ir.VectorType(stores[0].operands[0].type).shape[0]
            expected = [slices, tiles * len(stores) * x * y * z, width]
        if ir.MemRefType(parts.type).shape != expected:
            return Refusal(f"parts: found {parts.type}, allowed sizes of {expected}")
        words = tiles * (x * y * z // WARP_THREADS)
        if ir.MemRefType(counters.type).shape[0] < words:
            return Refusal(f"zeroed: found {counters.type}, allowed {words} words or more: one for each warp")
        return cls(launches[0], stores, parts, counters, grid, (x, y, z), slices, whole)

    def is_whole(self) -> Value:
        """Creates an i1 value: whether the block computes a whole tile."""
        return is_less(index_along("gpu.block_id", "x"), index(self.whole))

    def store_whole(self) -> None:
        for store in self.stores:
            create("vector.store", [], list(store.operands))

    def pass_on(self) -> None:
        """Creates the stores of the block's part, and the sums by the warp that is last at the tile."""
        for store_index, store in enumerate(self.stores):
            indices = self._indices(store_index, self._part_number())
            create("vector.store", [], [store.operands[0], self.parts, *indices])
        self.create_arrival()

    def _part_number(self) -> Value:
        """Creates the index of the block's part of K, from 0 to ``slices`` - 1, as an index value."""
        if self.whole < 0:
            return index_along("gpu.block_id", "z")
        return affine(part_of(self.whole, self.slices), index_along("gpu.block_id", "x"))

    def _indices(self, number: int, part: Value) -> list[Value]:
        """Creates the indices in ``parts`` at which store ``number`` of a thread puts part ``part`` of K."""
        if self.whole < 0:
            return [part, *list(self.stores[number].operands)[2:]]
        ids = [index_along("gpu.thread_id", axis) for axis in "xyz"]
        block_x = symbol(3)
        tile = self._shared_tile(block_x)
        position = (tile * len(self.stores) + number) * math.prod(self.threads) + self._thread
        return [part, affine(position, *ids, index_along("gpu.block_id", "x")), index(0)]

    @property
    def _thread(self) -> ir.AffineExpr:
        """Returns the index of a thread in its block, by its ids along x, y and z as symbols 0 to 2."""
        x, y, _ = self.threads
        return symbol(0) + symbol(1) * x + symbol(2) * (x * y)

    def _shared_tile(self, block: ir.AffineExpr) -> ir.AffineExpr:
        """Returns the index of a tile that several blocks compute, from 0 on: (block - whole) / slices."""
        return ir.AffineExpr.get_floor_div(block - self.whole, self.slices)

    def create_arrival(self) -> None:
        """Creates the count of a warp's arrival, and the sums of all slices by the warp that is last."""
        lane = value("gpu.lane_id", ir.IndexType.get())
        is_first_lane = is_equal(lane, index(0))
        counter = self._counter_address()
        synchronise_warp()
        before = branch(is_first_lane, lambda: _arrive(counter), lambda: word(0), i32())
        count = shuffled("idx", before, word(0))
        synchronise_warp()

        def finish() -> None:
            width = ir.VectorType(self.stores[0].operands[0].type).shape[0]
            at_once = max(SUMS_AT_ONCE // width, 1)
            for first in range(0, len(self.stores), at_once):
                self._store_totals(first, self.stores[first : first + at_once])
            branch(is_first_lane, lambda: _reset(counter))

        branch(is_equal(count, word(self.slices - 1)), finish)

    def _store_totals(self, first: int, stores: Sequence[Op]) -> None:
        element = ir.MemRefType(self.parts.type).element_type
        add = "arith.addf"
        if isinstance(element, ir.IntegerType):
            add = "arith.addi"
        totals = self._loads(first, stores, 0)
        # a slice after the other: many loads are in flight, in few registers
        for number in range(1, self.slices):
            pairs = zip(totals, self._loads(first, stores, number), strict=True)
            totals = [value(add, sum_.type, sum_, part) for sum_, part in pairs]
        for store, sum_ in zip(stores, totals, strict=True):
            _, c, *indices = store.operands
            create("vector.store", [], [sum_, c, *indices])

    def _loads(self, first: int, stores: Sequence[Op], part: int) -> list[Value]:
        loads = []
        for number, store in enumerate(stores, first):
            indices = self._indices(number, index(part))
            loads.append(value("vector.load", store.operands[0].type, self.parts, *indices))
        return loads

    def _counter_address(self) -> Value:
        """Creates the address, i64, of the warp's counter of its tile, which all blocks of the tile share."""
        warps = math.prod(self.threads) // WARP_THREADS
        warp = ir.AffineExpr.get_floor_div(self._thread, WARP_THREADS)
        block_x = symbol(3)
        tile = block_x + symbol(4) * self.grid[0]
        if self.whole >= 0:
            tile = self._shared_tile(block_x)
        ids = [index_along("gpu.thread_id", axis) for axis in "xyz"]
        blocks = [index_along("gpu.block_id", axis) for axis in "xy"]
        number = affine((tile * warps + warp) * COUNTER_BYTES, *ids, *blocks)
        start = value("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), self.counters)
        return value("arith.index_cast", ir.IntegerType.get_signless(64), total(start, number))


def _arrive(counter: Value) -> Value:
    return value("llvm.inline_asm", i32(), counter, **assembly(ARRIVE, "=r,l,~{memory}"))


def _reset(counter: Value) -> None:
    create("llvm.inline_asm", [], [counter], **assembly(RESET, "l,~{memory}"))
