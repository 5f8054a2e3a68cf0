"""The producer: one elected thread that fills the stages of the ring by TMA.

Each of the blocks of a cluster that share a tile copies a part of the tile to all of these blocks.
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Value, ir
from tuner.mlir.ops.wgmma.integers import calculate, cluster_pointer, count, shared_pointer
from tuner.mlir.ops.wgmma.operand_tile import Box, OperandTile
from tuner.mlir.ops.wgmma.ring import Place, Ring
from tuner.mlir.rewrite.building import create, value


@dataclass(frozen=True)
class Source:
    """The source of one operand's tiles: its tensor map, the first row to copy, the offset in a stage."""

    tile: OperandTile
    offset_bytes: int  # of the tile in a stage
    tensor_map: Value  # pointer to the CUtensorMap
    first_row: Value  # first row of the block's tile in the matrix, an i32
    rank: Value | None = None  # rank of the block among the blocks that share the tile, an i32


def create_producer(
    ring: Ring, sources: tuple[Source, ...], first: Place, first_k: Value | None = None
) -> Place:
    """Creates the producer's loop over tiles of k, which fills stages of the ring by TMA, for one thread.

    ``sources``: those of A and B. ``first``: the ring position where the loop starts. ``first_k`` (an i32
    value): where the block's part of k starts; None: the block sums all of k. Returns the ring position after
    the loop.
    """
    plan = ring.plan

    def step(number: Value, carried: list[Value]) -> list[Value]:
        place = Place(*carried)
        full = ring.full(place.stage)
        ring.wait(ring.empty(place.stage), place)
        ring.expect(full)
        k = calculate("muli", number, plan.a.depth)
        if first_k is not None:
            k = calculate("addi", k, first_k)
        for source in sources:
            for box in source.tile.boxes:
                _copy(ring, place, source, box, k, full)
        return ring.next_place(place).values

    return Place(*count(0, plan.k_tiles, first.values, step))


def _copy(ring: Ring, place: Place, source: Source, box: Box, k: Value, full: Value) -> None:
    tile, at = source.tile, ring.address(place.stage, source.offset_bytes + box.offset_bytes)
    row, depth = calculate("addi", source.first_row, box.row), calculate("addi", k, box.k)
    coordinates = [depth, row] if tile.is_k_major else [row, depth]  # innermost first
    ranks: list[Value] = []
    if source.rank is not None:
        at = calculate("addi", at, calculate("muli", source.rank, tile.part_bytes))
        coordinates[1] = calculate("addi", coordinates[1], calculate("muli", source.rank, tile.box[0]))
        ranks = [_every_rank(tile.parts)]
    create(
        "nvvm.cp.async.bulk.tensor.shared.cluster.global",
        [],
        [cluster_pointer(shared_pointer(at)), source.tensor_map, *coordinates, full, *ranks],
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 1, 2, 1, 0, len(ranks), 0, 0]),
    )


def _every_rank(blocks: int) -> Value:
    """Creates the multicast mask of a copy: all blocks of the cluster."""
    kind = ir.IntegerType.get_signless(16)
    return value("arith.constant", kind, value=ir.IntegerAttr.get(kind, (1 << blocks) - 1))
