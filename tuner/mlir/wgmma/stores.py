"""The end of a consumer: its sums are stored to C, in adjacent pairs, or by TMA through shared memory."""

from dataclasses import dataclass
from functools import partial

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ir.building import affine, branch, create, index, plus, symbol, value
from tuner.mlir.ir.linalg import apply_epilogue
from tuner.mlir.ir.memrefs import bounds_of
from tuner.mlir.wgmma.integers import as_i32, as_index, calculate, shared_pointer, word
from tuner.mlir.wgmma.plan import BOX_COLUMNS, BOXES, MMA_ROWS, PipelinePlan

# Stores of adjacent pairs, which ``tuner.finish_stores`` completes.
#
# Thread t of a warpgroup holds, in words 4 j + 2 h + i of a fragment, row 16 (t / 32) + t % 32 / 4 + 8 h and
# column 8 j + 2 (t % 4) + i. PTX ISA, "Register Fragments for wgmma.mma_async".


def create_stores(
    plan: PipelinePlan,
    sums: list[Value],
    c: Value,
    first: tuple[Value, Value],
    consumer: Value,
    thread: Value,
) -> None:
    """Creates one thread's stores of its sums to C, each a ``vector.store`` of two adjacent elements.

    ``sums``: one LLVM struct per 64 rows of C; ``first``: row and column of the block's tile; ``consumer``
    and ``thread``, i32 values: numbers of the warpgroup and of the thread in it.
    """
    warp, lane = calculate("shrui", thread, 5), calculate("andi", thread, 31)
    above = calculate("addi", calculate("muli", consumer, plan.consumer_rows), calculate("muli", warp, 16))
    row = _sum(first[0], calculate("addi", above, calculate("shrui", lane, 2)))
    column = _sum(first[1], calculate("muli", calculate("andi", lane, 3), 2))
    for fragment, structure in enumerate(sums):
        for half in range(2):
            at = plus(row, fragment * MMA_ROWS + 8 * half)
            for group in range(plan.b.rows // 8):
                vector = pair_of(plan, structure, group, half)
                place = affine(symbol(0) + 8 * group, column)  # a form that tuner.finish_stores recognizes
                create("vector.store", [], [vector, c, at, place])


def pair_of(plan: PipelinePlan, sums: Value, group: int, half: int) -> Value:
    """Creates a thread's two adjacent sums of a fragment, in ``group`` of 8 columns, 8 ``half`` rows on."""
    kind = ir.Type.parse(plan.accumulator_kinds[1])
    pair = [_element(sums, kind, 4 * group + 2 * half + each) for each in range(2)]
    return value("vector.from_elements", ir.VectorType.get([2], kind), *pair)


def _sum(index: Value, number: Value) -> Value:
    return value("arith.addi", index.type, index, as_index(number))


def _element(structure: Value, kind: Type, position: int) -> Value:
    place = ir.DenseI64ArrayAttr.get([position])
    return value("llvm.extractvalue", kind, structure, position=place)


# Stores of 16-bit results by TMA, through shared memory, in boxes of whole lines.
#
# Each warp has two boxes in shared memory, of 16 rows and 64 columns in the 128-byte swizzle. It fills one by
# ``stmatrix`` while the TMA stores the other, so no warp waits for another warp:
#
# wait until the TMA has read the box; results; ``stmatrix``; fence for the TMA; one lane stores and commits
#
# The TMA skips elements outside of C. A wait with ``.read`` frees a box; only a wait without ``.read``, which
# ends the block, ensures that all results are in C. PTX ISA, "cp.async.bulk.wait_group".

ALL_LANES = -1
GROUP_COLUMNS = 8  # columns of C per matrix of stmatrix
PAIRS_AT_ONCE = 2  # groups of columns whose upper and lower halves are the four matrices of one stmatrix
CHUNK_SHIFT = 4  # matrices have rows of 16 bytes
STMATRIX = {
    "layout": "#nvvm.mma_layout<row>",
    "shape": "#nvvm.ld_st_matrix_shape<m = 8, n = 8>",
    "eltType": "#nvvm.ld_st_matrix_elt_type<b16>",
}


@dataclass(frozen=True)
class StagedStores:
    """A generator of the code by which warps store 16-bit results to C: through shared memory, by TMA."""

    plan: PipelinePlan
    function: Op  # has C as an argument
    epilogue: Op  # scalar function from sums to results of 16 bits
    c: Value
    tensor_map: Value  # of C
    shared: Value  # address of the block's shared memory, an i32

    def create(self, sums: list[Value], corner: tuple[Value, Value], warp: Value, thread: Value) -> None:
        """Creates a warp's stores of its sums of one tile: epilogue, copy to shared memory, TMA store.

        ``sums``: one LLVM struct per 64 rows of C; ``corner``: row and column of the block's tile; ``warp``
        and ``thread``, i32 values: numbers in the block and in the warpgroup.
        """
        plan, lane = self.plan, calculate("andi", thread, 31)
        boxes = calculate("addi", self.shared, plan.boxes_offset_bytes)
        first_box = calculate("addi", boxes, calculate("muli", warp, BOXES * plan.box_bytes))
        above = calculate(
            "addi",
            calculate("muli", calculate("shrui", warp, 2), plan.consumer_rows),
            calculate("muli", calculate("andi", warp, 3), plan.box[0]),
        )
        top, left = calculate("addi", as_i32(corner[0]), above), as_i32(corner[1])
        row = as_index(calculate("addi", top, calculate("shrui", lane, 2)))
        column = value(
            "arith.addi", row.type, corner[1], as_index(calculate("muli", calculate("andi", lane, 3), 2))
        )
        count = plan.b.rows // BOX_COLUMNS
        for number in range(plan.fragments * count):
            fragment, part = divmod(number, count)
            self._free_box(number, plan.fragments * count)
            at = (plus(row, fragment * MMA_ROWS), plus(column, part * BOX_COLUMNS))
            box = calculate("addi", first_box, number % BOXES * plan.box_bytes)
            self._fill(box, sums[fragment], part, at, lane)
            place = calculate("addi", left, part * BOX_COLUMNS), calculate("addi", top, fragment * MMA_ROWS)
            branch(_elected(), partial(self._store, box, place))

    def create_end(self) -> None:
        """Creates a warp's wait until all its TMA stores have written their results to C."""
        branch(_elected(), lambda: _wait(0))

    def _free_box(self, number: int, count: int) -> None:
        if self.plan.tiles == 1 and number < BOXES:
            return
        is_newest = number == 0 and count % BOXES != 0  # the last store of the previous tile used this box
        branch(_elected(), lambda: _wait(0 if is_newest else BOXES - 1, read=ir.UnitAttr.get()))
        _synchronise_warp()

    def _fill(self, box: Value, sums: Value, part: int, at: tuple[Value, Value], lane: Value) -> None:
        groups = BOX_COLUMNS // GROUP_COLUMNS
        words = [
            self._results(sums, part * groups + group, half, (at[0], plus(at[1], group * GROUP_COLUMNS)))
            for group in range(groups)
            for half in range(2)
        ]
        # lanes 0 to 15 give the rows of the first group of columns, lanes 16 to 31 those of the second; the
        # 128-byte swizzle of the TMA store puts chunk c (16 bytes) of row r at c ^ (r & 7)
        line = calculate("muli", calculate("andi", lane, 15), BOX_COLUMNS * 2)
        chunk = calculate("xori", calculate("shrui", lane, 4), calculate("andi", lane, 7))
        own = calculate("addi", calculate("addi", box, line), calculate("shli", chunk, CHUNK_SHIFT))
        attributes = {name: ir.Attribute.parse(text) for name, text in STMATRIX.items()}
        for group in range(0, groups, PAIRS_AT_ONCE):
            address = calculate("xori", own, group << CHUNK_SHIFT)
            four = words[2 * group : 2 * (group + PAIRS_AT_ONCE)]
            create("nvvm.stmatrix", [], [shared_pointer(address), *four], **attributes)
        create(
            "nvvm.fence.proxy",
            kind=ir.Attribute.parse("#nvvm.proxy_kind<async.shared>"),
            space=ir.Attribute.parse("#nvvm.shared_space<cta>"),
        )
        _synchronise_warp()

    def _results(self, sums: Value, group: int, half: int, at: tuple[Value, Value]) -> Value:
        pair = pair_of(self.plan, sums, group, half)
        indices = [plus(at[0], 8 * half), at[1]]
        bounds = bounds_of(self.c)
        indices = [  # clamped to C for the epilogue's loads; results outside of C are not stored
            value("arith.minui", each.type, each, index(bounds[number] - 1 - number))
            if number in bounds
            else each
            for number, each in enumerate(indices)
        ]
        results = apply_epilogue(self.epilogue, self.function, pair, indices)
        kind = ir.IntegerType.get_signless(32)
        packed = value("vector.bitcast", ir.VectorType.get([1], kind), results)
        return value("vector.extract", kind, packed, static_position=ir.DenseI64ArrayAttr.get([0]))

    def _store(self, box: Value, place: tuple[Value, Value]) -> None:
        create(
            "nvvm.cp.async.bulk.tensor.global.shared.cta",
            [],
            [self.tensor_map, shared_pointer(box), *place],
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 1, 2, 0, 0]),
        )
        create("nvvm.cp.async.bulk.commit.group")


def _elected() -> Value:
    return value("nvvm.elect.sync", ir.IntegerType.get_signless(1))


def _synchronise_warp() -> None:
    create("nvvm.bar.warp.sync", [], [word(ALL_LANES)])


def _wait(newest: int, **attributes: ir.Attribute) -> None:
    kind = ir.IntegerType.get_signless(32)
    create("nvvm.cp.async.bulk.wait_group", group=ir.IntegerAttr.get(kind, newest), **attributes)
