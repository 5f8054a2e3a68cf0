"""The transform op ``tuner.wgmma_pipeline``."""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute, text
from tuner.mlir.ir.building import branch, create
from tuner.mlir.ir.linalg import find_epilogue
from tuner.mlir.ir.reading import walk
from tuner.mlir.wgmma.integers import as_i32, calculate, compare
from tuner.mlir.wgmma.launch import (
    BlockTiles,
    Corner,
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
from tuner.mlir.wgmma.plan import WARPGROUP, BlockMatmul, Knobs, PipelinePlan, read_matmul
from tuner.mlir.wgmma.stores import StagedStores, create_stores
from tuner.mlir.wgmma.warpgroups import Consumer, Ring, RingPosition, Source, create_producer


class WgmmaPipelineOp(InPlaceOp, name="wgmma_pipeline"):
    """``tuner.wgmma_pipeline``: a block's matmul becomes a warp-specialized pipeline of TMA and wgmma.

    Takes a function on buffers with ``gpu.launch`` ops that hold a ``linalg.fill`` and a ``linalg.matmul``
    of subviews of arguments, a tile of C per block. Gives tensor maps on the host, and in the kernel a ring
    of stages in shared memory: one elected thread of the last warpgroup copies tiles of A and B in advance
    by TMA, which reads zeros outside of the true sizes; the other warpgroups multiply by wgmma, one group in
    flight, and store pairs of sums by ``vector.store`` for ``tuner.finish_stores``, or final results by TMA.
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
    for ``tuner.finish_stores`` in a mode that adds the parts. The handle (a func.func) stays valid; handles
    to the launch's linalg ops do not. Silenceable failure, with launches before it rewritten: no such
    launch; tiles that TMA or wgmma do not support, operands of 1 or 4 bytes in which k is not innermost, and
    rows whose size is not a multiple of 16 bytes; too many sums for the registers of a thread; several tiles
    per block where the grid is not constant or the tile's origin depends on more than block ids.
    """

    def change(self, function: Op) -> str | None:
        knobs = Knobs(
            block_k=attribute(self, "block_k", 64),
            stages=attribute(self, "stages", 4),
            consumers=attribute(self, "consumers", 2),
            cluster=(attribute(self, "cluster_m", 1), attribute(self, "cluster_n", 1)),
            tiles=attribute(self, "tiles", 1),
            stores=text(self, "stores", "direct"),
            splits=attribute(self, "splits", 1),
        )
        found = [read_matmul(function, launch) for launch in walk(function, "gpu.launch")]
        if not found:
            return "no gpu.launch with a linalg.matmul"
        epilogue = find_epilogue(function) if knobs.stores == "tma" else None
        for each in found:
            if isinstance(each, str):
                return each
            plan = each.plan(knobs)
            if isinstance(plan, str):
                return plan
            tiles = BlockTiles.of(each.launch, each.origin, plan)
            if isinstance(tiles, str):
                return tiles
            _rewrite(each, plan, tiles)
        if epilogue is not None:
            epilogue.erase()
        return None


def _rewrite(found: BlockMatmul, plan: PipelinePlan, tiles: BlockTiles) -> None:
    launch, product = found.launch, found.product
    with launch.location, ir.InsertionPoint(launch):
        is_tf32 = plan.kind == "tf32"
        maps = [
            create_tensor_map(matrix, tile.box, is_tf32=is_tf32)
            for matrix, tile in zip(found.matrices, (plan.a, plan.b), strict=False)
        ]
        if plan.stores == "tma" and found.epilogue is not None:
            found.retype_output(found.epilogue)
            maps.append(create_tensor_map(found.matrices[2], plan.box, is_tf32=False))
    set_threads(launch, plan.threads)
    set_cluster(launch, plan)
    set_splits(launch, plan)
    tiles.set_grid()
    with product.location, ir.InsertionPoint(product):
        _create_block(found, plan, tiles, maps)
    views = list(product.operands)
    product.erase()
    found.fill.erase()
    for view in views:
        while not isinstance(view.owner, ir.Block) and not list(view.uses):
            op = view.owner.operation
            view = op.operands[0]
            op.erase()


def _create_block(found: BlockMatmul, plan: PipelinePlan, tiles: BlockTiles, maps: list[Value]) -> None:
    thread = thread_number()
    warp = warp_number(thread)
    ring = Ring(plan, create_shared_memory(plan.shared_bytes))
    staged = _staged_stores(found, plan, maps, ring)

    def begin() -> None:
        ring.create_mbarriers()
        for each in maps:
            create("nvvm.prefetch", [], [each], tensormap=ir.UnitAttr.get())

    def produce() -> None:
        rank = block_rank() if plan.cluster_blocks > 1 else None
        part = as_i32(block_id("z")) if plan.splits > 1 else None
        first_k = part if part is None else calculate("muli", part, plan.k_tiles * plan.a.depth)

        def fetch(corner: Corner, position: RingPosition) -> RingPosition:
            row, column = map(as_i32, corner())
            a = Source(plan.a, 0, maps[0], row, rank if plan.a.parts > 1 else None)
            b = Source(plan.b, plan.a.bytes, maps[1], column, rank if plan.b.parts > 1 else None)
            return create_producer(ring, (a, b), position, first_k)

        tiles.create_loop(ring.first_position(1), fetch)

    def consume() -> None:
        number = calculate("shrui", warp, 2)
        within = calculate("andi", thread, WARPGROUP - 1)

        def multiply(corner: Corner, position: RingPosition) -> RingPosition:
            sums, after = Consumer(ring, number, within).create(position)
            if staged is None:
                create_stores(plan, sums, found.matrices[2], corner(), number, within)
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


def _staged_stores(
    found: BlockMatmul, plan: PipelinePlan, maps: list[Value], ring: Ring
) -> StagedStores | None:
    """Returns the stores of results through shared memory; None where sums are stored to C directly."""
    if plan.stores != "tma" or found.epilogue is None:
        return None
    return StagedStores(plan, found.function, found.epilogue, found.matrices[2], maps[2], ring.start)
