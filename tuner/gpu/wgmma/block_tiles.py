"""The tiles of C that a block computes, one after another.

Between two tiles it keeps its position in the ring of stages in shared memory (``warpgroups.RingPosition``).

The script launches a block per tile. With several tiles per block the grid becomes one row of fewer
clusters; cluster c then computes the tiles of the original clusters c, c + launched, c + 2 launched, ...,
numbered with x fastest; each block keeps its position in the cluster. The ops that compute a tile's corner
from block ids are cloned into the loop, for the ids that the tile's original block would have had.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.gpu.ir.launches import TILE_GRID, constant_grid
from tuner.gpu.wgmma.integers import as_count, as_i32, calculate, loop_i32
from tuner.gpu.wgmma.launch import block_id
from tuner.gpu.wgmma.plan import PipelinePlan
from tuner.gpu.wgmma.warpgroups import RingPosition
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.launches import AXES, axis_of
from tuner.mlir.ir.building import affine, index, symbol

Corner = Callable[[], tuple[Value, Value]]  # creates the row and column of a tile of C, indices
# Creates the code of a tile: ring position before -> after
Build = Callable[[Corner, RingPosition], RingPosition]
DECIDED_BY_BLOCKS = ("arith.", "affine.apply", "gpu.block_id")


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
        cluster = plan.cluster[::-1]  # the plan has rows and columns of C, a grid x and y
        if plan.tiles == 1:
            return cls(launch, corner, (0, 0), cluster, 1)
        blocks = constant_grid(launch)
        if blocks is None or blocks[0] % cluster[0] or blocks[1] % cluster[1]:
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
        tiles = [self.grid[0] * self.cluster[0], self.grid[1] * self.cluster[1]]
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
        positions = ir.AffineExpr.get_mod(symbol(0), columns), ir.AffineExpr.get_floor_div(symbol(0), columns)
        return {
            dimension: affine(
                position * size + ir.AffineExpr.get_mod(symbol(1), size), number, block_id(dimension)
            )
            for dimension, position, size in zip("xy", positions, self.cluster, strict=True)
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
