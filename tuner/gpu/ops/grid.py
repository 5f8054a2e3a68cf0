"""Transform ops of a grid's blocks: ``tuner.split_k`` divides K, ``tuner.swizzle_blocks`` reorders blocks."""

from tuner.core.errors import Refusal
from tuner.gpu.ir.launches import constant_grid, index_along
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute, text
from tuner.mlir.effects.launches import AXES, axis_of
from tuner.mlir.ir.building import affine, index, symbol, value
from tuner.mlir.ir.reading import constant_of, ops_in, walk

GRID_Z = 2  # index of the operand of gpu.launch: blocks along z
BANDS = {"columns": 0, "rows": 1}  # value of `bands` -> the axis that bands divide: 0 is x, 1 is y


class SplitKOp(InPlaceOp, name="split_k"):
    """``tuner.split_k``: split-K: each block along z computes a part of the loop over K.

    Changes every ``gpu.launch`` of a function, whose body has one loop at its top level, from 0, with
    constant bounds. Gives ``slices`` blocks along z, each with one ``slices``-th of the iterations:
    ``tuner.finish_stores`` must add the parts. Upstream's tiling of a sum by ``scf.forall`` warns.

        scf.for %k = %c0 to %c96 step %c8 {
          memref.store %x, %c[%k] : memref<96xf32>
      with slices = 4 becomes
        %slice = gpu.block_id z
        scf.for %j = %c0 to %c24 step %c8 {
          %k = affine.apply affine_map<()[s0, s1] -> (s0 + s1 * 24)>()[%j, %slice]
          memref.store %x, %c[%k] : memref<96xf32>

    Attribute ``slices`` (i64, default 1): blocks along z. The handle (a func.func) stays valid. Silenceable
    failure, with launches before the failing one split: a launch without exactly one loop at its top level, a
    loop that does not start at 0 or is not constant, more than one block along z, a number of iterations that
    is not a multiple of ``slices``.
    """

    def change(self, function: Op) -> Refusal | None:
        slices = attribute(self, "slices", 1)
        for launch in walk(function, "gpu.launch"):
            body = ops_in(launch.regions[0].blocks[0])
            loops = [op for op in body if op.name == "scf.for"]
            reason = _why_not(launch, loops, slices)
            if reason is not None:
                return reason
            _split(launch, loops[0], slices)
        return None


def _why_not(launch: Op, loops: list[Op], slices: int) -> Refusal | None:
    if len(loops) != 1:
        return Refusal(f"found {len(loops)} loops in a launch, allowed 1")
    if constant_of(launch.operands[GRID_Z]) != 1:
        return Refusal("found a launch with more than one block along z, or not constant")
    bounds = list(map(constant_of, list(loops[0].operands)[:3]))
    lower, upper, step = bounds
    if lower != 0 or upper is None or step is None:
        return Refusal(f"found a loop from {lower} to {upper} by {step}, allowed constants, from 0")
    if slices < 1 or upper % (step * slices):
        return Refusal(f"slices: found {slices}, allowed what divides {upper // step} trips")
    return None


def _split(launch: Op, loop: Op, slices: int) -> None:
    # block z has the iterations from z * length on, of the same step
    length = (constant_of(loop.operands[1]) or 0) // slices
    with launch.location:
        with ir.InsertionPoint(launch):
            launch.operands[GRID_Z] = index(slices)
        with ir.InsertionPoint(loop):
            block = index_along("gpu.block_id", "z")
            loop.operands[1] = index(length)
        body = loop.regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(body):
            at = affine(symbol(0) + symbol(1) * length, body.arguments[0], block)
        for use in list(body.arguments[0].uses):
            if use.owner.operation != at.owner:
                use.owner.operation.operands[use.operand_number] = at


class SwizzleBlocksOp(InPlaceOp, name="swizzle_blocks"):
    """``tuner.swizzle_blocks``: reorders blocks so that those that run concurrently share data in L2.

    Renumbers the blocks of each ``gpu.launch`` of a function by bands of ``group`` block rows, within a band
    column by column (the "grouped ordering" of Triton's matmul tutorial, CUTLASS's threadblock swizzle): in
    row-major order blocks read all of B before any tile of B again. With ``bands = "columns"`` bands are of
    block columns, and blocks go row by row. A block keeps its position in its cluster. Must come before
    ``tuner.wgmma_pipeline``.

        %x = gpu.block_id x
        memref.store %x, %c[%zero] : memref<2xindex>
      on a grid of 4 x 4 blocks with group = 2 becomes
        %x = gpu.block_id x
        %y = gpu.block_id y
        %column = affine.apply affine_map<()[s0, s1] -> (((s1 * 4 + s0) mod 8) floordiv 2)>()[%x, %y]
        memref.store %column, %c[%zero] : memref<2xindex>

    Attributes: ``group`` (i64, default 1), ``bands`` (string, "rows" by default or "columns"),
    ``cluster_m`` and ``cluster_n`` (i64, default 1): blocks of a cluster along y and x. The handle
    (a func.func) stays valid. Silenceable failure: no launch, a launch whose grid is not constant, a
    ``group`` below 1, a ``group`` or a grid that is not a multiple of the cluster, other ``bands``. Launches
    before the one that fails may be renumbered.
    """

    def change(self, function: Op) -> Refusal | None:
        group = attribute(self, "group", 1)
        bands = text(self, "bands", "rows")
        if bands not in BANDS:
            return Refusal(f"bands: found {bands}, allowed {' or '.join(BANDS)}")
        banded = BANDS[bands]
        cluster = attribute(self, "cluster_n", 1), attribute(self, "cluster_m", 1)  # blocks along x and y
        launches = walk(function, "gpu.launch")
        grids = [grid for grid in map(constant_grid, launches) if grid is not None]
        if group < 1 or not launches or len(grids) < len(launches):
            found = f"{len(launches)} launches, {len(grids)} of a constant grid, group {group}"
            return Refusal(f"found {found}, allowed constant grids and a group of 1 or more")
        for launch, grid in zip(launches, grids, strict=True):
            if group % cluster[banded] or any(
                count % size for count, size in zip(grid, cluster, strict=True)
            ):
                return Refusal(
                    f"found clusters of {cluster} on a grid of {grid}, group {group}; allowed whole ones"
                )
            clusters = (grid[0] // cluster[0], grid[1] // cluster[1])
            height = group // cluster[banded]
            sides = clusters[1 - banded], clusters[banded]  # along a band, across bands
            block = launch.regions[0].blocks[0]
            old = {
                dimension: [op for op in walk(launch, "gpu.block_id") if AXES[axis_of(op)] == dimension]
                for dimension in "xy"
            }
            with launch.location, ir.InsertionPoint.at_block_begin(block):
                ids = [index_along("gpu.block_id", dimension) for dimension in "xy"]
                x, y = map(_cluster_number, ids, cluster)
                number = symbol(1) * clusters[0] + symbol(0)
                if sides[1] % height == 0:
                    pair = _whole_bands(x, y, number, sides[0], height)
                else:
                    pair = _bands(x, y, number, sides, height)
                if banded == BANDS["columns"]:
                    pair = pair[::-1]  # (along, across) is (y, x)
                new = tuple(map(_within, pair, ids, cluster))
            for axis, (dimension, replacement) in enumerate(zip("xy", new, strict=True)):
                block.arguments[axis].replace_all_uses_with(replacement)
                for op in old[dimension]:
                    op.results[0].replace_all_uses_with(replacement)
                    op.erase()
        return None


def _cluster_number(block: Value, size: int) -> Value:
    """Creates the index of a block's cluster along an axis; ``size``: blocks of a cluster along this axis."""
    if size == 1:
        return block
    return affine(ir.AffineExpr.get_floor_div(symbol(0), size), block)


def _within(cluster: Value, block: Value, size: int) -> Value:
    """Creates the index of the block in ``cluster`` that lies there as ``block`` lies in its own cluster.

    All along one axis; ``size``: blocks of a cluster along this axis.
    """
    if size == 1:
        return cluster
    return affine(symbol(0) * size + ir.AffineExpr.get_mod(symbol(1), size), cluster, block)


def _whole_bands(x: Value, y: Value, number: ir.AffineExpr, length: int, group: int) -> tuple[Value, Value]:
    """Creates a cluster's position (along its band, across bands), for bands of equal height.

    ``number``: the cluster's linear index, as an expression of ``x`` and ``y``; ``length`` and ``group``:
    clusters along and across a band. It takes only divisions by constants, which are cheap.
    """
    band = ir.AffineExpr.get_floor_div(number, group * length)
    within = ir.AffineExpr.get_mod(number, group * length)
    across = band * group + ir.AffineExpr.get_mod(within, group)
    return affine(ir.AffineExpr.get_floor_div(within, group), x, y), affine(across, x, y)


def _bands(
    x: Value, y: Value, number: ir.AffineExpr, sides: tuple[int, int], group: int
) -> tuple[Value, Value]:
    """Creates a cluster's position (along its band, across bands), where the last band may be lower.

    ``number``: the cluster's linear index, as an expression of ``x`` and ``y``; ``sides``: the grid's
    clusters along and across the bands; ``group``: clusters across a band. It takes a division by the height
    of the band, which is not constant.
    """
    type_ = ir.IndexType.get()
    (length, breadth) = sides
    first = affine(ir.AffineExpr.get_floor_div(number, group * length) * group, x, y)
    within = affine(ir.AffineExpr.get_mod(number, group * length), x, y)
    left = value("arith.subi", type_, index(breadth), first)
    height = value("arith.minui", type_, left, index(group))
    across = value("arith.addi", type_, first, value("arith.remui", type_, within, height))
    return value("arith.divui", type_, within, height), across
