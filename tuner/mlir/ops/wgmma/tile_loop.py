"""The tiles of C that a block makes, one after the other, and its place in the ring from tile to tile.

The script launches a block per tile. With several tiles per block the grid becomes one row of fewer clusters;
the cluster of number c then does what those of numbers c, c + launched, c + 2 launched, ... would have done,
counted along x first, each block in its place of the cluster. What computes the corner of a tile from block
ids is created anew in the loop, for the ids that the tile's own block would have had.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ops.wgmma.launch import block_id
from tuner.mlir.ops.wgmma.plan import PipelinePlan
from tuner.mlir.ops.wgmma.ring import Place
from tuner.mlir.ops.wgmma.words import as_count, as_word, calculate, count
from tuner.mlir.rewrite.building import affine, index, symbol
from tuner.mlir.rewrite.gpu_indices import AXES, axis_of
from tuner.mlir.rewrite.launch_operands import TILE_GRID, constant_grid

Corner = Callable[[], tuple[Value, Value]]  # creates the row and column of a tile of C, indices
Build = Callable[[Corner, Place], Place]  # creates the work on a tile, from a place in the ring to that after
DECIDED_BY_BLOCKS = ("arith.", "affine.apply", "gpu.block_id")


@dataclass(frozen=True)
class BlockTiles:
    """The tiles of a launch, which had a block for each."""

    launch: Op
    corner: tuple[Value | int, Value | int]  # row and column of C, by block ids
    grid: tuple[int, int]  # clusters along x and y, of one tile per block
    cluster: tuple[int, int]  # blocks along x and y
    per_block: int

    @classmethod
    def of(
        cls, launch: Op, corner: tuple[Value | int, Value | int], plan: PipelinePlan
    ) -> "BlockTiles | str":
        """Returns the tiles of a launch, or why a block cannot make several."""
        cluster = plan.cluster[::-1]
        if plan.tiles == 1:
            return cls(launch, corner, (0, 0), cluster, 1)
        blocks = constant_grid(launch)
        if blocks is None or any(size % each for size, each in zip(blocks, cluster, strict=True)):
            return f"tiles: found a grid of {blocks}, allowed constant sizes of whole clusters of {cluster}"
        foreign = next(filter(None, (_foreign(each, launch) for each in corner)), None)
        if foreign is not None:
            return f"tiles: found a corner computed by {foreign}, allowed arithmetic of block ids"
        grid = blocks[0] // cluster[0], blocks[1] // cluster[1]
        return cls(launch, corner, grid, cluster, plan.tiles)

    @property
    def clusters(self) -> int:
        """Returns how many clusters there would be of one tile per block."""
        return self.grid[0] * self.grid[1]

    @property
    def launched(self) -> int:
        """Returns how many clusters there are."""
        return -(-self.clusters // self.per_block)

    def set_grid(self) -> None:
        """Sets the grid of the launch to one row of clusters, where these make several tiles."""
        if self.per_block == 1:
            return
        tiles = [count * size for count, size in zip(self.grid, self.cluster, strict=True)]
        self.launch.attributes[TILE_GRID] = ir.DenseI32ArrayAttr.get(tiles)
        with self.launch.location, ir.InsertionPoint(self.launch):
            for dimension, size in enumerate((self.launched * self.cluster[0], self.cluster[1])):
                self.launch.operands[dimension] = index(size)

    def create_loop(self, first: Place, build: Build) -> None:
        """Creates the work on all tiles of a block; ``first`` is its place in the ring."""
        if self.per_block == 1:
            build(lambda: self._corner({}), first)
            return

        def step(number: Value, carried: list[Value]) -> list[Value]:
            return build(lambda: self._corner(self._block_ids(number)), Place(*carried)).values

        own = calculate("divui", as_word(block_id("x")), self.cluster[0])
        count(own, self.clusters, first.values, step, self.launched)

    def _block_ids(self, cluster: Value) -> dict[str, Value]:
        """Creates the ids of the block that one tile of a cluster would have had, by dimension."""
        number, columns = as_count(cluster), self.grid[0]
        places = ir.AffineExpr.get_mod(symbol(0), columns), ir.AffineExpr.get_floor_div(symbol(0), columns)
        return {
            dimension: affine(
                place * size + ir.AffineExpr.get_mod(symbol(1), size), number, block_id(dimension)
            )
            for dimension, place, size in zip("xy", places, self.cluster, strict=True)
        }

    def _corner(self, block_ids: dict[str, Value]) -> tuple[Value, Value]:
        """Creates the corner of a tile: of the block's own, or of that of other ids."""
        arguments = self.launch.regions[0].blocks[0].arguments
        known = dict(zip(list(arguments)[:2], block_ids.values(), strict=False))
        row, column = (
            index(each) if isinstance(each, int) else _anew(each, known, block_ids) for each in self.corner
        )
        return row, column


def _foreign(number: Value | int, launch: Op) -> str | None:
    """Names what else than block ids a value of a launch depends on, if anything."""
    if isinstance(number, int):
        return None
    if isinstance(number.owner, ir.Block):
        is_other = number.owner == launch.regions[0].blocks[0] and ir.BlockArgument(number).arg_number > 1
        return "an argument of the launch" if is_other else None
    op = number.owner.operation
    if not op.name.startswith(DECIDED_BY_BLOCKS):
        return str(op.name)
    return next(filter(None, (_foreign(each, launch) for each in op.operands)), None)


def _anew(number: Value, known: dict[Value, Value], block_ids: dict[str, Value]) -> Value:
    """Creates again what computes a value, of other block ids; ``known`` is what has been created."""
    if number in known or not block_ids or isinstance(number.owner, ir.Block):
        return known.get(number, number)
    op = number.owner.operation
    if op.name == "gpu.block_id" and (dimension := AXES[axis_of(op)]) in block_ids:
        known[number] = block_ids[dimension]
        return known[number]
    operands = [_anew(operand, known, block_ids) for operand in op.operands]
    copy = op.clone().operation
    for place, operand in enumerate(operands):
        copy.operands[place] = operand
    known[number] = copy.results[0]
    return known[number]
