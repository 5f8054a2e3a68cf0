"""The launch around the pipeline: tensor maps, threads, roles of warpgroups, and the tiles of each block."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.building import affine, branch, create, index, symbol, value
from tuner.mlir.ir.reading import AXES, CLUSTER_SIZE, TILE_GRID, axis_of, constant_grid, index_along
from tuner.mlir.wgmma.integers import as_count, as_i32, calculate, compare, i32, loop_i32, word
from tuner.mlir.wgmma.plan import WARPGROUP, PipelinePlan
from tuner.mlir.wgmma.warpgroups import RingPosition

# numbers of operands of gpu.launch: blocks along z, threads along x
GRID_Z = 2
BLOCK_X = 3
ALL_LANES = -1
LAST_LANE = 31
MAP = (
    "!nvgpu.tensormap.descriptor<tensor = memref<{0}x{1}x{2}, 3>, swizzle = swizzle_128b, "
    "l2promo = l2promo_256b, oob = zero, interleave = none>"
)
Corner = Callable[[], tuple[Value, Value]]  # creates the row and column of a tile of C, indices
Build = Callable[
    [Corner, RingPosition], RingPosition
]  # creates the code of a tile: ring position before -> after
DECIDED_BY_BLOCKS = ("arith.", "affine.apply", "gpu.block_id")


def create_tensor_map(matrix: Value, box: tuple[int, int], *, is_tf32: bool) -> Value:
    """Creates the CUDA tensor map of a memref, on the host; returns an LLVM pointer to it for the kernel.

    ``box``: elements per TMA copy, as (slower, innermost dimension). ``is_tf32``: f32 is rounded.
    """
    element = ir.MemRefType(matrix.type).element_type
    unranked = value("memref.cast", ir.UnrankedMemRefType.get(element, None), matrix)
    kind = ir.Type.parse(MAP.format(*box, element))
    sizes = list(map(index, box))
    rounding = {"tuner.tf32": ir.UnitAttr.get()} if is_tf32 else {}
    descriptor = value("nvgpu.tma.create.descriptor", kind, unranked, *sizes, **rounding)
    return value("builtin.unrealized_conversion_cast", ir.Type.parse("!llvm.ptr"), descriptor)


def set_threads(launch: Op, threads: int) -> None:
    """Sets the number of threads per block of a ``gpu.launch`` along x."""
    with launch.location, ir.InsertionPoint(launch):
        launch.operands[BLOCK_X] = index(threads)


def set_cluster(launch: Op, plan: PipelinePlan) -> None:
    """Sets the cluster size of a launch, if above 1: blocks along M differ in y, those along N in x."""
    if plan.cluster_blocks > 1:
        rows, columns = plan.cluster
        launch.attributes[CLUSTER_SIZE] = ir.DenseI32ArrayAttr.get([columns, rows, 1])


def set_splits(launch: Op, plan: PipelinePlan) -> None:
    """Sets the blocks along z of a launch to ``plan.splits``, if above 1, each of which sums a part of k."""
    if plan.splits > 1:
        with launch.location, ir.InsertionPoint(launch):
            launch.operands[GRID_Z] = index(plan.splits)


def block_id(dimension: str) -> Value:
    """Creates ``gpu.block_id`` along ``dimension`` ("x", "y" or "z"); returns its index value."""
    return index_along("gpu.block_id", dimension)


def block_rank() -> Value:
    """Creates the read of the block's rank in its cluster; returns the i32 value."""
    return value("nvvm.read.ptx.sreg.cluster.ctarank", i32())


def synchronise(plan: PipelinePlan) -> None:
    """Creates a barrier of all threads of a block, or of its cluster where that has several blocks."""
    if plan.cluster_blocks == 1:
        create("gpu.barrier")
        return
    create("nvvm.cluster.arrive")
    create("nvvm.cluster.wait")


def create_shared_memory(size_bytes: int) -> Value:
    """Creates an allocation of the block's shared memory, aligned to 1024 bytes; returns its i32 address."""
    kind = ir.Type.parse(f"memref<{size_bytes}xi8, #gpu.address_space<workgroup>>")
    long = ir.IntegerType.get_signless(64)
    empty = ir.DenseI32ArrayAttr.get([0, 0])
    buffer = value("memref.alloc", kind, alignment=ir.IntegerAttr.get(long, 1024), operandSegmentSizes=empty)
    return as_i32(value("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), buffer))


def thread_number() -> Value:
    """Creates the read of the thread's number in its block, along x; returns the i32 value."""
    return as_i32(index_along("gpu.thread_id", "x"))


def warp_number(thread: Value) -> Value:
    """Creates the number of a thread's warp, i32, by a shuffle: ptxas then knows that it is uniform."""
    warp = calculate("shrui", thread, 5)
    kind = ir.Attribute.parse("#nvvm<shfl_kind idx>")
    return value("nvvm.shfl.sync", i32(), word(ALL_LANES), warp, word(0), word(LAST_LANE), kind=kind)


def split_roles(
    plan: PipelinePlan, warp: Value, produce: Callable[[], None], consume: Callable[[], None]
) -> None:
    """Creates the branch by warpgroup: the last warpgroup runs the producer, all others run the consumer.

    ``produce`` creates the code of one elected thread of the last warpgroup, ``consume`` the code of all
    threads of the other warpgroups. Where ``plan.registers`` is set, registers move from the producer to the
    consumers.
    """
    warps = WARPGROUP // 32
    first = plan.consumers * warps

    def producer() -> None:
        if plan.registers is not None:
            _set_registers("decrease", plan.registers[0])
        branch(compare("eq", warp, first), elected)

    def elected() -> None:
        branch(value("nvvm.elect.sync", ir.IntegerType.get_signless(1)), produce)

    def consumer() -> None:
        if plan.registers is not None:
            _set_registers("increase", plan.registers[1])
        consume()

    branch(compare("ult", warp, first), consumer, producer)


def _set_registers(action: str, registers: int) -> None:
    create(
        "nvvm.setmaxregister",
        action=ir.Attribute.parse(f"#nvvm<action {action}>"),
        regCount=ir.IntegerAttr.get(i32(), registers),
    )


# The tiles of C that a block computes, one after another, and its position in the ring between tiles.
#
# The script launches a block per tile. With several tiles per block the grid becomes one row of fewer
# clusters; cluster c then computes the tiles of the original clusters c, c + launched, c + 2 launched, ...,
# numbered with x fastest; each block keeps its position in the cluster. The ops that compute a tile's corner
# from block ids are cloned into the loop, for the ids that the tile's original block would have had.


@dataclass(frozen=True)
class BlockTiles:
    """The tiles of C that each block of a ``gpu.launch`` computes; the script launched one block per tile."""

    launch: Op
    corner: tuple[Value | int, Value | int]  # row and column in C, computed from block ids
    grid: tuple[int, int]  # clusters along x and y with one tile per block
    cluster: tuple[int, int]  # blocks along x and y
    per_block: int

    @classmethod
    def of(
        cls, launch: Op, corner: tuple[Value | int, Value | int], plan: PipelinePlan
    ) -> "BlockTiles | Refusal":
        """Returns the tiles of each block; a Refusal if a block cannot compute several tiles.

        ``corner``: row and column in C of a block's tile, as the script computes them.
        """
        cluster = plan.cluster[::-1]
        if plan.tiles == 1:
            return cls(launch, corner, (0, 0), cluster, 1)
        blocks = constant_grid(launch)
        if blocks is None or any(
            size % blocks_of_cluster for size, blocks_of_cluster in zip(blocks, cluster, strict=True)
        ):
            return Refusal(
                f"tiles: found a grid of {blocks}, allowed constant sizes of whole clusters of {cluster}"
            )
        foreign = next(filter(None, (_foreign(coordinate, launch) for coordinate in corner)), None)
        if foreign is not None:
            return Refusal(f"tiles: found a corner computed by {foreign}, allowed arithmetic of block ids")
        grid = blocks[0] // cluster[0], blocks[1] // cluster[1]
        return cls(launch, corner, grid, cluster, plan.tiles)

    @property
    def clusters(self) -> int:
        """Returns how many clusters one tile per block would take; 0 if ``per_block`` is 1."""
        return self.grid[0] * self.grid[1]

    @property
    def launched(self) -> int:
        """Returns how many clusters are launched if blocks compute several tiles; 0 if ``per_block`` is 1."""
        return -(-self.clusters // self.per_block)

    def set_grid(self) -> None:
        """Makes the launch's grid one row of ``launched`` clusters, and records the tiles along x and y.

        Changes nothing if a block computes one tile.
        """
        if self.per_block == 1:
            return
        tiles = [count * size for count, size in zip(self.grid, self.cluster, strict=True)]
        self.launch.attributes[TILE_GRID] = ir.DenseI32ArrayAttr.get(tiles)
        with self.launch.location, ir.InsertionPoint(self.launch):
            for dimension, size in enumerate((self.launched * self.cluster[0], self.cluster[1])):
                self.launch.operands[dimension] = index(size)

    def create_loop(self, first: RingPosition, build: Build) -> None:
        """Creates the code of all tiles of a block: a loop, or the code of one tile without a loop.

        ``build(corner, position)`` creates the code of one tile from a function that creates its row and
        column in C, and from the ring position before the tile; returns the ring position after it.
        ``first``: ring position before the first tile.
        """
        if self.per_block == 1:
            build(lambda: self._corner({}), first)
            return

        def step(number: Value, carried: list[Value]) -> list[Value]:
            return build(lambda: self._corner(self._block_ids(number)), RingPosition(*carried)).values

        own = calculate("divui", as_i32(block_id("x")), self.cluster[0])
        loop_i32(own, self.clusters, first.values, step, self.launched)

    def _block_ids(self, cluster: Value) -> dict[str, Value]:
        number = as_count(cluster)
        columns = self.grid[0]
        places = ir.AffineExpr.get_mod(symbol(0), columns), ir.AffineExpr.get_floor_div(symbol(0), columns)
        return {
            dimension: affine(
                position * size + ir.AffineExpr.get_mod(symbol(1), size), number, block_id(dimension)
            )
            for dimension, position, size in zip("xy", places, self.cluster, strict=True)
        }

    def _corner(self, block_ids: dict[str, Value]) -> tuple[Value, Value]:
        arguments = self.launch.regions[0].blocks[0].arguments
        known = dict(zip(list(arguments)[:2], block_ids.values(), strict=False))
        row, column = (
            index(coordinate) if isinstance(coordinate, int) else _anew(coordinate, known, block_ids)
            for coordinate in self.corner
        )
        return row, column


def _foreign(number: Value | int, launch: Op) -> str | None:
    """Returns what a value of a launch depends on other than block ids, for a message; None if nothing."""
    if isinstance(number, int):
        return None
    if isinstance(number.owner, ir.Block):
        is_other = number.owner == launch.regions[0].blocks[0] and ir.BlockArgument(number).arg_number > 1
        if is_other:
            return "an argument of the launch"
        return None
    op = number.owner.operation
    if not op.name.startswith(DECIDED_BY_BLOCKS):
        return str(op.name)
    return next(filter(None, (_foreign(operand, launch) for operand in op.operands)), None)


def _anew(number: Value, known: dict[Value, Value], block_ids: dict[str, Value]) -> Value:
    """Clones the ops that compute ``number``, for other block ids; without any, ``number`` stays."""
    if number in known or not block_ids or isinstance(number.owner, ir.Block):
        return known.get(number, number)
    op = number.owner.operation
    if op.name == "gpu.block_id" and (dimension := AXES[axis_of(op)]) in block_ids:
        known[number] = block_ids[dimension]
        return known[number]
    operands = [_anew(operand, known, block_ids) for operand in op.operands]
    copy = op.clone().operation
    for position, operand in enumerate(operands):
        copy.operands[position] = operand
    known[number] = copy.results[0]
    return known[number]
