"""The producer: one elected thread that fills the stages of the ring by TMA."""

from dataclasses import dataclass

from tuner.mlir.bindings import Value, ir
from tuner.mlir.ops.wgmma.operand_tile import Box, OperandTile
from tuner.mlir.ops.wgmma.ring import Place, Ring
from tuner.mlir.ops.wgmma.words import calculate, cluster_pointer, count, shared_pointer
from tuner.mlir.rewrite.building import create


@dataclass(frozen=True)
class Source:
    """Where tiles of one operand come from."""

    tile: OperandTile
    offset_bytes: int  # of the tile in a stage
    tensor_map: Value  # pointer to the CUtensorMap
    first_row: Value  # of the block's tile, a word


def create_producer(ring: Ring, sources: tuple[Source, ...]) -> None:
    """Creates the loop over tiles of k, for one thread."""
    plan = ring.plan

    def step(number: Value, carried: list[Value]) -> list[Value]:
        place = Place(*carried)
        full = ring.full(place.stage)
        ring.wait(ring.empty(place.stage), place)
        ring.expect(full)
        k = calculate("muli", number, plan.a.depth)
        for source in sources:
            for box in source.tile.boxes:
                _copy(ring, place, source, box, k, full)
        return ring.next_place(place).values

    count(0, plan.k_tiles, ring.first_place(1).values, step)


def _copy(ring: Ring, place: Place, source: Source, box: Box, k: Value, full: Value) -> None:
    target = shared_pointer(ring.address(place.stage, source.offset_bytes + box.offset_bytes))
    row = calculate("addi", source.first_row, box.row)
    depth = calculate("addi", k, box.k)
    coordinates = [depth, row] if source.tile.is_k_major else [row, depth]  # innermost first
    create(
        "nvvm.cp.async.bulk.tensor.shared.cluster.global",
        [],
        [cluster_pointer(target), source.tensor_map, *coordinates, full],
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 1, 2, 1, 0, 0, 0, 0]),
    )
