"""The transform op ``tuner.wgmma_pipeline``, and the stores of its sums to C.

The op reads a launch's matmul (``block_matmul``), plans the pipeline (``plan``), and creates a producer and
consumers (``warpgroups``). ``create_stores`` and ``StagedStores`` create the stores, direct or by TMA.
"""

from dataclasses import dataclass
from functools import partial

from tuner.core.errors import Refusal
from tuner.gpu.ir.padded_views import bounds_of
from tuner.gpu.ir.scalar_epilogues import apply_epilogue, find_epilogue
from tuner.gpu.ir.warps import synchronise_warp
from tuner.gpu.wgmma.block_matmul import BlockMatmul, Knobs, read_matmul
from tuner.gpu.wgmma.block_tiles import BlockTiles, Corner
from tuner.gpu.wgmma.integers import as_i32, calculate, compare, i32_as_index, shared_pointer
from tuner.gpu.wgmma.launch import (
    block_id,
    block_rank,
    create_shared_memory,
    create_tensor_map,
    set_cluster,
    set_splits,
    set_threads,
    split_roles,
    synchronise,
    thread_number,
    warp_number,
)
from tuner.gpu.wgmma.plan import BOX_COLUMNS, BOXES, MATRICES_OF_OPERANDS, MMA_ROWS, WARPGROUP, PipelinePlan
from tuner.gpu.wgmma.plane_products import PlaneConsumer
from tuner.gpu.wgmma.register_operand import Lane, RegisterConsumer
from tuner.gpu.wgmma.scaled_consumer import ScaledConsumer
from tuner.gpu.wgmma.split_operands import SplitConsumer
from tuner.gpu.wgmma.transposed_stores import create_transposed_stores
from tuner.gpu.wgmma.warpgroups import Consumer, Ring, RingPosition, SharedConsumer, Source, create_producer
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute, text
from tuner.mlir.ir.building import affine, branch, create, element_of, index, plus, symbol, value
from tuner.mlir.ir.reading import walk

GROUP_COLUMNS = 8  # columns of C per matrix of stmatrix
PAIRS_AT_ONCE = 2  # groups of columns whose upper and lower halves are the four matrices of one stmatrix
CHUNK_SHIFT = 4  # matrices have rows of 16 bytes
STMATRIX = {
    "layout": "#nvvm.mma_layout<row>",
    "shape": "#nvvm.ld_st_matrix_shape<m = 8, n = 8>",
    "eltType": "#nvvm.ld_st_matrix_elt_type<b16>",
}

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
    if plan.a.has_paired_rows:
        _create_stores_of_lanes(plan, sums, c, first, consumer, Lane.of(thread))
        return
    if plan.is_swapped:
        create_transposed_stores(
            plan, sums, c, first, calculate("muli", consumer, plan.consumer_rows), thread
        )
        return
    warp = calculate("shrui", thread, 5)
    lane = calculate("andi", thread, 31)
    above = calculate("addi", calculate("muli", consumer, plan.consumer_rows), calculate("muli", warp, 16))
    row = _sum(first[0], calculate("addi", above, calculate("shrui", lane, 2)))
    column = _sum(first[1], calculate("muli", calculate("andi", lane, 3), 2))
    for fragment, structure in enumerate(sums):
        for half in range(2):
            at = plus(row, fragment * MMA_ROWS + 8 * half)
            for group in range(plan.b.rows // 8):
                vector = pair_of(plan, structure, group, half)
                column_of_group = affine(
                    symbol(0) + 8 * group, column
                )  # a form that tuner.finish_stores recognizes
                create("vector.store", [], [vector, c, at, column_of_group])


def _create_stores_of_lanes(
    plan: PipelinePlan, sums: list[Value], c: Value, first: tuple[Value, Value], consumer: Value, lane: Lane
) -> None:
    """Creates the stores where a lane's rows of the left operand are neighbours, see ``Lane``.

    Of swapped operands these are columns of C: two sums of one row of C are 8 rows of the fragment apart.
    """
    own = calculate("addi", calculate("muli", consumer, plan.consumer_rows), lane.first_row())
    across = calculate("muli", lane.column, 2)
    row, column = (
        _sum(*terms) for terms in zip(first, (across, own) if plan.is_swapped else (own, across), strict=True)
    )
    for fragment, structure in enumerate(sums):
        for group in range(plan.b.rows // 8):
            for number in range(2):
                words = [4 * group + 2 * number, 4 * group + 2 * number + 1]
                at = plus(row, fragment * MMA_ROWS + number), plus(column, 8 * group)
                if plan.is_swapped:
                    words = [4 * group + number, 4 * group + 2 + number]
                    at = plus(row, 8 * group + number), plus(column, fragment * MMA_ROWS)
                create("vector.store", [], [_pair(plan, structure, words), c, *at])


def pair_of(plan: PipelinePlan, sums: Value, group: int, half: int) -> Value:
    """Creates the vector of two adjacent sums that a thread has in 64 rows of C.

    ``sums``: the LLVM struct of these rows; ``group``: of 8 columns; ``half``: 1 for the row 8 further down.
    """
    first = 4 * group + 2 * half
    return _pair(plan, sums, [first, first + 1])


def _pair(plan: PipelinePlan, sums: Value, words: list[int]) -> Value:
    type_ = ir.Type.parse(plan.accumulator_kinds[1])
    pair = [_element(sums, type_, word) for word in words]
    return value("vector.from_elements", ir.VectorType.get([2], type_), *pair)


def _sum(index: Value, number: Value) -> Value:
    return value("arith.addi", index.type, index, i32_as_index(number))


def _element(structure: Value, type_: Type, position: int) -> Value:
    element_index = ir.DenseI64ArrayAttr.get([position])
    return value("llvm.extractvalue", type_, structure, position=element_index)


# Stores of 16-bit results by TMA, through shared memory, in boxes of whole lines.
#
# Each warp has two boxes in shared memory, of 16 rows and 64 columns in the 128-byte swizzle. It fills one by
# ``stmatrix`` while the TMA stores the other, so no warp waits for another warp:
#
# wait until the TMA has read the box; results; ``stmatrix``; fence for the TMA; one lane stores and commits
#
# The TMA skips elements outside of C. A wait with ``.read`` frees a box; only a wait without ``.read``, which
# ends the block, ensures that all results are in C. PTX ISA, "cp.async.bulk.wait_group".


@dataclass(frozen=True)
class StagedStores:
    """A generator of the code by which warps store 16-bit results to C through shared memory, by TMA."""

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
        plan = self.plan
        lane = calculate("andi", thread, 31)
        boxes = calculate("addi", self.shared, plan.stored_boxes_offset_bytes)
        first_box = calculate("addi", boxes, calculate("muli", warp, BOXES * plan.stored_box_bytes))
        above = calculate(
            "addi",
            calculate("muli", calculate("shrui", warp, 2), plan.consumer_rows),
            calculate("muli", calculate("andi", warp, 3), plan.stored_box[0]),
        )
        top = calculate("addi", as_i32(corner[0]), above)
        left = as_i32(corner[1])
        row = i32_as_index(calculate("addi", top, calculate("shrui", lane, 2)))
        column = value(
            "arith.addi", row.type, corner[1], i32_as_index(calculate("muli", calculate("andi", lane, 3), 2))
        )
        count = plan.b.rows // BOX_COLUMNS
        for number in range(plan.fragments * count):
            fragment, part = divmod(number, count)
            self._free_box(number, plan.fragments * count)
            at = (plus(row, fragment * MMA_ROWS), plus(column, part * BOX_COLUMNS))
            box = calculate("addi", first_box, number % BOXES * plan.stored_box_bytes)
            self._fill(box, sums[fragment], part, at, lane)
            coordinates = (
                calculate("addi", left, part * BOX_COLUMNS),
                calculate("addi", top, fragment * MMA_ROWS),
            )
            branch(_elected(), partial(self._store, box, coordinates))

    def create_end(self) -> None:
        """Creates a warp's wait until all its TMA stores have written their results to C."""
        branch(_elected(), lambda: _wait(0))

    def _free_box(self, number: int, count: int) -> None:
        if self.plan.tiles == 1 and number < BOXES:
            return
        is_newest = number == 0 and count % BOXES != 0  # the last store of the previous tile used this box
        branch(_elected(), lambda: _wait(0 if is_newest else BOXES - 1, read=ir.UnitAttr.get()))
        synchronise_warp()

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
        synchronise_warp()

    def _results(self, sums: Value, group: int, half: int, at: tuple[Value, Value]) -> Value:
        pair = pair_of(self.plan, sums, group, half)
        indices = [plus(at[0], 8 * half), at[1]]
        bounds = bounds_of(self.c)
        indices = [  # clamped to C for the epilogue's loads; results outside of C are not stored
            value("arith.minui", position.type, position, index(bounds[axis] - 1 - axis))
            if axis in bounds
            else position
            for axis, position in enumerate(indices)
        ]
        results = apply_epilogue(self.epilogue, self.function, pair, indices)
        type_ = ir.IntegerType.get_signless(32)
        packed = value("vector.bitcast", ir.VectorType.get([1], type_), results)
        return element_of(packed, 0)

    def _store(self, box: Value, coordinates: tuple[Value, Value]) -> None:
        create(
            "nvvm.cp.async.bulk.tensor.global.shared.cta",
            [],
            [self.tensor_map, shared_pointer(box), *coordinates],
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 1, 2, 0, 0]),
        )
        create("nvvm.cp.async.bulk.commit.group")


def _elected() -> Value:
    return value("nvvm.elect.sync", ir.IntegerType.get_signless(1))


def _wait(newest: int, **attributes: ir.Attribute) -> None:
    type_ = ir.IntegerType.get_signless(32)
    create("nvvm.cp.async.bulk.wait_group", group=ir.IntegerAttr.get(type_, newest), **attributes)


class WgmmaPipelineOp(InPlaceOp, name="wgmma_pipeline"):
    """``tuner.wgmma_pipeline``: a block's matmul becomes a warp-specialized pipeline of TMA and wgmma.

    Takes a function on buffers with ``gpu.launch`` ops that hold a ``linalg.fill`` and a ``linalg.matmul``
    of subviews of arguments, a tile of C per block. Gives tensor maps on the host, and in the kernel a ring
    of stages in shared memory: one elected thread of the last warpgroup copies tiles of A and B in advance
    by TMA, which reads zeros outside of the true sizes; the other warpgroups multiply by wgmma, one group in
    flight, and store pairs of sums by ``vector.store`` for ``tuner.finish_stores``, or final results by TMA.
    Of f32 (products in tf32) one operand may have k not innermost: lanes read it into registers, 32 of k per
    stage; if it is B, the operands change places, and the warpgroups divide the columns of C. They do so as
    well where the tile of C has fewer than 64 rows, a multiple of 8, and A has k innermost. An argument whose
    ``tuner.buffer`` is "transposed_a" or "transposed_b" takes the place of A or B: it has k innermost.
    Needs sm_90a.

        gpu.launch blocks(...) in (...) threads(...) in (...) {
          %y = memref.subview %b[0, %j] [192, 64] [1, 1] : memref<192x128xf16> to ...
          linalg.fill ins(%zero : f32) outs(%z : ...)
          linalg.matmul ins(%a, %y : ...) outs(%z : ...)
      becomes
        %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xf16> -> ...
        gpu.launch blocks(...) in (...) threads(...) in (...) {
          nvvm.mbarrier.init %full, %c1 : !llvm.ptr<3>, i32
          scf.if %consumes {
            %sums = scf.for %tile = %c1 to %c3 step %c1 iter_args(...) -> (...) : i32 {
              nvvm.mbarrier.try_wait.parity %full, %parity, %ns : !llvm.ptr<3>, i32, i32
              %more = nvvm.wgmma.mma_async %a_tile, %b_tile, %so_far, <m = 64, n = 64, k = 16>, ...
              nvvm.wgmma.wait.group.sync.aligned 1
                %state = nvvm.mbarrier.arrive %empty : !llvm.ptr<3> -> i64
            vector.store %pair, %c[%row, %column] : memref<64x128xf32>, vector<2xf32>
          } else {
            %elected = nvvm.elect.sync -> i1
                nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32
                nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %map, %full, box[%column, %k] : ...

    Attributes, all i64 but ``stores``: ``block_k`` (default 64), ``stages`` (4), ``consumers`` (2): tile
    size along k, stages of the ring, warpgroups that multiply. ``cluster_m``, ``cluster_n`` (1), one of which
    may be 2: blocks along m share tiles of B, along n of A; the grid must be a multiple of the cluster.
    ``tiles`` (1): above 1, each block computes that many tiles of C one after another, in the order of the
    blocks otherwise (``tuner.swizzle_blocks``, before this op); the producer fetches the next tile while the
    consumers store one. ``stores`` (string, "direct"): with "tma" the epilogue that was set aside is applied
    here, and 16-bit results are stored through shared memory; no ``tuner.finish_stores`` follows then.
    ``splits`` (1): above 1, each of that many blocks along z sums a part of k, a multiple of ``block_k``,
    for ``tuner.finish_stores`` in a mode that adds the parts. ``products`` (1): 3 multiplies f32 by three
    products of tf32, where lanes read one operand; the low bits of the other, each number less itself with
    its last 13 bits cleared, are an argument whose ``tuner.buffer`` is "low_a" or "low_b". 6 multiplies f32
    by six products of bf16: arguments "high_a", "middle_a", "low_a", and so of B, are three matrices of bf16
    whose sum is A or B, and take their places. Scales that
    ``tuner.set_aside_scales`` marked multiply the sums of each stage, of 128 k. The handle (a
    func.func) stays valid; handles to the launch's linalg ops do not. Silenceable failure, with launches
    before it rewritten: no such launch; types, attributes or tiles that are not supported, k not innermost in
    an operand of 1 byte or in both of 4 bytes, rows whose size is not a multiple of 16 bytes; too many sums
    for the registers of a thread; several tiles per block where the grid is not constant or the tile's origin
    depends on more than block ids; three or six products without the arguments of low bits or planes; scales
    with stages of other than 128 k.
    """

    def change(self, function: Op) -> Refusal | None:
        knobs = Knobs(
            block_k=attribute(self, "block_k", 64),
            stages=attribute(self, "stages", 4),
            consumers=attribute(self, "consumers", 2),
            cluster=(attribute(self, "cluster_m", 1), attribute(self, "cluster_n", 1)),
            tiles=attribute(self, "tiles", 1),
            stores=text(self, "stores", "direct"),
            splits=attribute(self, "splits", 1),
            products=attribute(self, "products", 1),
        )
        matmuls = [read_matmul(function, launch) for launch in walk(function, "gpu.launch")]
        if not matmuls:
            return Refusal("no gpu.launch with a linalg.matmul")
        epilogue = find_epilogue(function) if knobs.stores == "tma" else None
        for matmul in matmuls:
            if isinstance(matmul, Refusal):
                return matmul
            plan = matmul.plan(knobs)
            if isinstance(plan, Refusal):
                return plan
            tiles = BlockTiles.of(matmul.launch, matmul.origin, plan)
            if isinstance(tiles, Refusal):
                return tiles
            _rewrite(matmul, plan, tiles)
        if epilogue is not None:
            epilogue.erase()
        return None


def _rewrite(matmul: BlockMatmul, plan: PipelinePlan, tiles: BlockTiles) -> None:
    launch = matmul.launch
    product = matmul.product
    with launch.location, ir.InsertionPoint(launch):
        maps = [
            create_tensor_map(matrix.memory, tile.box, is_tf32=matrix.is_rounded)
            for matrices, tile in zip(matmul.operands(plan), (plan.a, plan.b), strict=True)
            for matrix in matrices
        ]
        if plan.stores == "tma" and matmul.epilogue is not None:
            matmul.retype_output(matmul.epilogue)
            maps.append(create_tensor_map(matmul.matrices[2], plan.stored_box, is_tf32=False))
    set_threads(launch, plan.threads)
    set_cluster(launch, plan)
    set_splits(launch, plan)
    tiles.set_grid()
    with product.location, ir.InsertionPoint(product):
        _create_block(matmul, plan, tiles, maps)
    views = list(product.operands)
    product.erase()
    matmul.fill.erase()
    for view in views:
        while not isinstance(view.owner, ir.Block) and not list(view.uses):
            op = view.owner.operation
            view = op.operands[0]
            op.erase()


def _create_block(matmul: BlockMatmul, plan: PipelinePlan, tiles: BlockTiles, maps: list[Value]) -> None:
    thread = thread_number()
    warp = warp_number(thread)
    ring = Ring(plan, create_shared_memory(plan.shared_bytes))
    staged = _staged_stores(matmul, plan, maps, ring)

    def begin() -> None:
        ring.create_mbarriers()
        for tensor_map in maps:
            create("nvvm.prefetch", [], [tensor_map], tensormap=ir.UnitAttr.get())

    def produce() -> None:
        rank = block_rank() if plan.cluster_blocks > 1 else None
        part = as_i32(block_id("z")) if plan.splits > 1 else None
        first_k = part if part is None else calculate("muli", part, plan.k_tiles * plan.a.depth)

        def fetch(corner: Corner, position: RingPosition) -> RingPosition:
            row, column = map(as_i32, corner())
            firsts = (column, row) if plan.is_swapped else (row, column)
            return create_producer(ring, _sources(plan, maps, firsts, rank), position, first_k)

        tiles.create_loop(ring.first_position(1), fetch)

    def consume() -> None:
        number = calculate("shrui", warp, 2)
        within = calculate("andi", thread, WARPGROUP - 1)

        def multiply(corner: Corner, position: RingPosition) -> RingPosition:
            sums, after = _consumer(matmul, ring, number, within, corner).create(position)
            if staged is None:
                create_stores(plan, sums, matmul.matrices[2], corner(), number, within)
            else:
                staged.create(sums, corner(), warp, within)
            return after

        tiles.create_loop(ring.first_position(0), multiply)
        if staged is not None:
            staged.create_end()

    branch(compare("eq", thread, 0), begin)
    synchronise(plan)
    split_roles(plan, warp, produce, consume)
    if plan.cluster_blocks > 1:
        synchronise(plan)  # other blocks arrive at this block's mbarriers: it must not exit before


def _sources(
    plan: PipelinePlan, maps: list[Value], first_rows: tuple[Value, Value], rank: Value | None
) -> tuple[Source, ...]:
    """Returns what the producer copies: the matrices of the left operand, then those of the right one."""
    sources: list[Source] = []
    offset_bytes = 0
    for tile, first_row, matrices in zip(
        (plan.a, plan.b), first_rows, MATRICES_OF_OPERANDS[plan.products], strict=True
    ):
        for _ in range(matrices):
            tensor_map = maps[len(sources)]
            own_rank = rank if tile.sharing_blocks > 1 else None
            sources.append(Source(tile, offset_bytes, tensor_map, first_row, own_rank))
            offset_bytes += tile.bytes
    return tuple(sources)


def _consumer(matmul: BlockMatmul, ring: Ring, number: Value, thread: Value, corner: Corner) -> Consumer:
    """Returns the generator of the code of the consumers, for one tile of C."""
    scales = matmul.scales
    if scales is not None:
        first_step = None
        if ring.plan.splits > 1:
            first_step = calculate("muli", as_i32(block_id("z")), ring.plan.k_tiles)
        return ScaledConsumer(ring, number, thread, scales, corner(), first_step)
    if ring.plan.products == 3:
        return SplitConsumer(ring, number, thread)
    if ring.plan.products == 6:
        return PlaneConsumer(ring, number, thread)
    if ring.plan.a.is_read_by_lanes:
        return RegisterConsumer(ring, number, thread)
    return SharedConsumer(ring, number, thread)


def _staged_stores(
    matmul: BlockMatmul, plan: PipelinePlan, maps: list[Value], ring: Ring
) -> StagedStores | None:
    """Returns the stores of results through shared memory; None where sums are stored to C directly."""
    if plan.stores != "tma" or matmul.epilogue is None:
        return None
    return StagedStores(plan, matmul.function, matmul.epilogue, matmul.matrices[2], maps[-1], ring.start)
