"""A consumer: a warpgroup that multiplies its rows of each stage, with one group of wgmma in flight.

first tile: wait until the stage is full; fence; products, the first of which sets the sums; commit
each later tile: wait; fence; products; commit; wait until all groups but the newest are complete; release the
previous stage, in all blocks of the cluster
end: wait for the last group; release its stage if another tile of C follows
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Attribute, Type, Value, ir
from tuner.mlir.ops.wgmma.integers import calculate, compare, count, long_word
from tuner.mlir.ops.wgmma.operand_tile import MMA_DEPTH_BYTES, MMA_ROWS, UNIT_BYTES, OperandTile
from tuner.mlir.ops.wgmma.plan import PipelinePlan
from tuner.mlir.ops.wgmma.ring import PLACE_WORDS, Place, Ring
from tuner.mlir.rewrite.building import branch, create, value

ADDRESS_MASK = 0x3FFF  # address bits of a matrix descriptor, in units of 16 bytes


@dataclass(frozen=True)
class Consumer:
    """A generator of the code of one consumer: a warpgroup of the block that multiplies tiles by wgmma."""

    ring: Ring
    number: Value  # consumer's number, an i32 that is uniform in its threads
    thread: Value  # thread's number in the warpgroup, an i32

    def create(self, first: Place) -> tuple[list[Value], Place]:
        """Creates the loop over tiles of k: waits for a stage, multiplies its tiles, releases the stage.

        ``first``: the ring position where the loop starts. Returns (sums, ring position after the loop); sums
        are one LLVM struct of a thread's accumulators per 64 rows of C.
        """
        ring, plan = self.ring, self.ring.plan
        kind = sums_type(plan)
        nothing = [value("llvm.mlir.undef", kind) for _ in range(plan.fragments)]
        sums = self._multiply(first, nothing, is_first=True)

        def step(_number: Value, carried: list[Value]) -> list[Value]:
            place = Place(*carried[:PLACE_WORDS])
            before, *so_far = carried[PLACE_WORDS:]
            new = self._multiply(place, so_far, is_first=False)
            _wait_groups(1)
            self._release(before)
            return [*ring.next_place(place).values, place.stage, *new]

        carried = [*ring.next_place(first).values, first.stage, *sums]
        stage, parity, last, *sums = count(1, plan.k_tiles, carried, step)
        _wait_groups(0)
        if plan.tiles > 1:
            self._release(last)
        return sums, Place(stage, parity)

    def _multiply(self, place: Place, sums: list[Value], *, is_first: bool) -> list[Value]:
        """Creates the wait for a stage, the products of the stage and their commit; returns the sums."""
        ring, plan = self.ring, self.ring.plan
        ring.wait(ring.full(place.stage), place)
        rows_before = calculate("muli", self.number, plan.a.offset_bytes(plan.consumer_rows, 0))
        a = _descriptor(plan.a, calculate("addi", ring.address(place.stage), rows_before))
        b = _descriptor(plan.b, ring.address(place.stage, plan.a.bytes))
        create("nvvm.wgmma.fence.aligned")
        new = list(sums)
        for fragment in range(plan.fragments):
            for step in range(plan.a.steps):
                left = _advance(a, plan.a.offset_bytes(fragment * MMA_ROWS, step))
                right = _advance(b, plan.b.offset_bytes(0, step))
                is_set = is_first and step == 0
                new[fragment] = self._product(new[fragment], left, right, is_set=is_set)
        create("nvvm.wgmma.commit.group.sync.aligned")
        return new

    def _product(self, sums: Value, left: Value, right: Value, *, is_set: bool) -> Value:
        """Creates one wgmma, which overwrites the sums (``is_set``) or adds to them."""
        plan = self.ring.plan
        depth = MMA_DEPTH_BYTES // plan.a.item_bytes
        words = {
            "shape": f"#nvvm.shape<m = {MMA_ROWS}, n = {plan.b.rows}, k = {depth}>",
            "typeA": f"#nvvm.wgmma_type<{plan.kind}>",
            "typeB": f"#nvvm.wgmma_type<{plan.kind}>",
            "typeD": f"#nvvm.wgmma_type<{plan.sum_kinds[0]}>",
            "scaleD": f"#nvvm.wgmma_scale_out<{'zero' if is_set else 'one'}>",
            "scaleA": "#nvvm.wgmma_scale_in<one>",
            "scaleB": "#nvvm.wgmma_scale_in<one>",
            "layoutA": f"#nvvm.mma_layout<{'row' if plan.a.is_k_major else 'col'}>",
            "layoutB": f"#nvvm.mma_layout<{'col' if plan.b.is_k_major else 'row'}>",
        }
        attributes: dict[str, Attribute] = {name: ir.Attribute.parse(text) for name, text in words.items()}
        return value("nvvm.wgmma.mma_async", sums.type, sums, left, right, **attributes)

    def _release(self, stage: Value) -> None:
        """Creates arrivals at a stage's empty barriers, by one thread per block of the cluster.

        A wgmma group completes for the whole warpgroup at once, so other threads need not arrive.
        """
        is_speaker = compare("ult", self.thread, self.ring.plan.cluster_blocks)
        branch(is_speaker, lambda: self.ring.release(stage, self.thread))


def sums_type(plan: PipelinePlan) -> Type:
    """Returns the LLVM struct type of a thread's accumulators for 64 rows of C: all f32, or all i32."""
    return ir.Type.parse(f"!llvm.struct<({', '.join([plan.sum_kinds[1]] * plan.sums)})>")


def _descriptor(tile: OperandTile, address: Value) -> Value:
    """Creates the matrix descriptor of a tile at an address in shared memory."""
    units = calculate("andi", calculate("shrui", address, UNIT_BYTES.bit_length() - 1), ADDRESS_MASK)
    wide = value("arith.extui", ir.IntegerType.get_signless(64), units)
    return value("arith.ori", wide.type, wide, long_word(tile.descriptor))


def _advance(descriptor: Value, offset_bytes: int) -> Value:
    """Creates the descriptor of the operand ``offset_bytes`` further in the tile."""
    if offset_bytes == 0:
        return descriptor
    return value("arith.addi", descriptor.type, descriptor, long_word(offset_bytes // UNIT_BYTES))


def _wait_groups(newest: int) -> None:
    """Creates the wait until all groups of wgmma but the ``newest`` are complete."""
    kind = ir.IntegerType.get_signless(64)
    create("nvvm.wgmma.wait.group.sync.aligned", group=ir.IntegerAttr.get(kind, newest))
