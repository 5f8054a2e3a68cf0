"""``tuner.swizzle_blocks``: reorders blocks so that concurrently running blocks share data in the L2 cache.

Takes a function with ``gpu.launch`` of a constant grid. Gives its blocks another order: bands of ``group``
block rows, within a band column by column (the "grouped ordering" of Triton's matmul tutorial, CUTLASS's
threadblock swizzle). Blocks start in the order of their linear number, x fastest; in row-major order they
would read all of B before any tile of A again. The last band has the remaining rows.
With ``bands = "columns"``, bands are of block columns, within a band row by row. Clusters are numbered as
units: a block keeps its position in its cluster. Must come before ``tuner.wgmma_pipeline``.

    %x = gpu.block_id x
    memref.store %x, %c[%zero] : memref<2xindex>
  on a grid of 4 x 4 blocks with group = 2 becomes
    %x = gpu.block_id x
    %y = gpu.block_id y
    %column = affine.apply affine_map<()[s0, s1] -> (((s1 * 4 + s0) mod 8) floordiv 2)>()[%x, %y]
    memref.store %column, %c[%zero] : memref<2xindex>
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ops.dialect import InPlaceOp, attribute, text
from tuner.mlir.rewrite.building import affine, index, symbol, value
from tuner.mlir.rewrite.gpu_indices import AXES, axis_of, index_along
from tuner.mlir.rewrite.launch_operands import constant_grid
from tuner.mlir.rewrite.walking import walk

BANDS = {"columns": 0, "rows": 1}  # value of `bands` -> the grid dimension that is divided into bands


class SwizzleBlocksOp(InPlaceOp, name="swizzle_blocks"):
    """The transform op ``tuner.swizzle_blocks``, which reorders thread blocks to share data in the L2 cache.

    Renumbers the blocks of every ``gpu.launch`` by bands of ``group`` (i64, default 1) block rows, column by
    column within a band. ``bands`` (string, default "rows") may be "columns": bands of ``group`` block
    columns. ``cluster_m`` and ``cluster_n`` (i64, default 1): blocks of a cluster along y and x. The handle
    (a func.func) stays valid. Silenceable failure: no launch, a launch whose grid is not constant, a
    ``group`` below 1, a ``group`` or a grid that is not a multiple of the cluster, other ``bands``.
    """

    def change(self, function: Op) -> str | None:
        """Renumbers the blocks of each ``gpu.launch`` in one function by bands, in place.

        Returns None, or a message on why a launch cannot be renumbered; launches before it may be renumbered.
        """
        group, bands = attribute(self, "group", 1), text(self, "bands", "rows")
        if bands not in BANDS:
            return f"bands: found {bands}, allowed {' or '.join(BANDS)}"
        cluster = attribute(self, "cluster_n", 1), attribute(self, "cluster_m", 1)  # blocks along x and y
        launches = walk(function, "gpu.launch")
        grids = [grid for grid in map(constant_grid, launches) if grid is not None]
        if group < 1 or not launches or len(grids) < len(launches):
            found = f"{len(launches)} launches, {len(grids)} of a constant grid, group {group}"
            return f"found {found}, allowed constant grids and a group of 1 or more"
        for launch, grid in zip(launches, grids, strict=True):
            if group % cluster[BANDS[bands]] or any(
                count % size for count, size in zip(grid, cluster, strict=True)
            ):
                return f"found clusters of {cluster} on a grid of {grid}, group {group}; allowed whole ones"
            _renumber(launch, grid, cluster, group, BANDS[bands])
        return None


def _renumber(launch: Op, grid: tuple[int, int], cluster: tuple[int, int], group: int, across: int) -> None:
    """Renumbers the blocks of a launch; ``across`` is the grid dimension that is divided into bands."""
    clusters, height = (grid[0] // cluster[0], grid[1] // cluster[1]), group // cluster[across]
    sides = clusters[1 - across], clusters[across]  # along a band, across bands
    block = launch.regions[0].blocks[0]
    old = {dimension: _block_ids(launch, dimension) for dimension in "xy"}
    with launch.location, ir.InsertionPoint.at_block_begin(block):
        ids = [index_along("gpu.block_id", dimension) for dimension in "xy"]
        x, y = (_whole(each, size) for each, size in zip(ids, cluster, strict=True))
        number = symbol(1) * clusters[0] + symbol(0)
        if sides[1] % height == 0:
            pair = _whole_bands(x, y, number, sides[0], height)
        else:
            pair = _bands(x, y, number, sides, height)
        new = tuple(map(_within, pair if across else pair[::-1], ids, cluster))
    for number, (dimension, replacement) in enumerate(zip("xy", new, strict=True)):
        block.arguments[number].replace_all_uses_with(replacement)
        for op in old[dimension]:
            op.results[0].replace_all_uses_with(replacement)
            op.erase()


def _whole(number: Value, size: int) -> Value:
    """Creates the number of the cluster that a block is in, along one dimension."""
    return number if size == 1 else affine(ir.AffineExpr.get_floor_div(symbol(0), size), number)


def _within(cluster: Value, number: Value, size: int) -> Value:
    """Creates the number of the block at the same position of the cluster numbered ``cluster``."""
    if size == 1:
        return cluster
    return affine(symbol(0) * size + ir.AffineExpr.get_mod(symbol(1), size), cluster, number)


def _block_ids(launch: Op, dimension: str) -> list[Op]:
    return [op for op in walk(launch, "gpu.block_id") if AXES[axis_of(op)] == dimension]


def _whole_bands(x: Value, y: Value, number: ir.AffineExpr, length: int, group: int) -> tuple[Value, Value]:
    """Creates (along, across) for bands of equal height: only divisions by constants, which are cheap."""
    band = ir.AffineExpr.get_floor_div(number, group * length)
    within = ir.AffineExpr.get_mod(number, group * length)
    across = band * group + ir.AffineExpr.get_mod(within, group)
    return affine(ir.AffineExpr.get_floor_div(within, group), x, y), affine(across, x, y)


def _bands(
    x: Value, y: Value, number: ir.AffineExpr, sides: tuple[int, int], group: int
) -> tuple[Value, Value]:
    """Creates (along, across) if the last band is lower: divides by its height, which is not constant."""
    kind, (length, breadth) = ir.IndexType.get(), sides
    first = affine(ir.AffineExpr.get_floor_div(number, group * length) * group, x, y)
    within = affine(ir.AffineExpr.get_mod(number, group * length), x, y)
    left = value("arith.subi", kind, index(breadth), first)
    height = value("arith.minui", kind, left, index(group))
    across = value("arith.addi", kind, first, value("arith.remui", kind, within, height))
    return value("arith.divui", kind, within, height), across
