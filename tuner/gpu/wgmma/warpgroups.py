"""The warpgroups of a pipeline: a producer that copies by TMA, consumers that multiply, and their ring.

The producer fills empty stages of the ring; a consumer multiplies the rows of a full stage by wgmma, then
releases the previous stage. Each stage has two mbarriers for these waits.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from tuner.gpu.ir.warps import assembly, word
from tuner.gpu.wgmma.integers import calculate, cluster_pointer, compare, long_word, loop_i32, shared_pointer
from tuner.gpu.wgmma.plan import (
    MBARRIER_BYTES,
    MMA_DEPTH_BYTES,
    MMA_ROWS,
    UNIT_BYTES,
    Box,
    OperandTile,
    PipelinePlan,
)
from tuner.mlir.bindings import Attribute, Value, ir
from tuner.mlir.ir.building import branch, create, value

# The ring of stages in shared memory: two mbarriers per stage, and a thread's position in the ring.
#
# A stage is full when the producer's copies have delivered all its bytes, empty when each consumer has read
# it. A position is a stage and the parity of the phase that is waited for; the parity flips with each round.
# A consumer starts with parity 0, the producer with 1: a stage that was never filled is empty.
#
# In a cluster, copies go to the same stage of several blocks. Each block expects all bytes that it receives,
# from any block; each consumer releases a stage in every block, because the producer of any of these blocks
# may fill the stage next.

SUSPEND_NS = 0x989680  # time limit of one try_wait before it is repeated, as in CUTLASS
POSITION_WORDS = 2
REGISTER_OUTPUTS = {"f32": "=f", "i32": "=r"}  # constraints of LLVM's inline assembly, by MLIR type
ADDRESS_MASK = 0x3FFF  # address bits of a matrix descriptor, in units of 16 bytes


@dataclass(frozen=True)
class RingPosition:
    """A thread's position in the ring of stages: number of the stage and parity of its phase, i32 values."""

    stage: Value
    parity: Value

    @property
    def values(self) -> list[Value]:
        """Returns [stage, parity], the i32 values that a loop carries."""
        return [self.stage, self.parity]


@dataclass(frozen=True)
class Ring:
    """The ring of stages of a block in shared memory from ``start`` (i32) on, each with two mbarriers."""

    plan: PipelinePlan
    start: Value

    def first_position(self, parity: int) -> RingPosition:
        """Creates the position at stage 0; ``parity``: 0 for a consumer, 1 for the producer."""
        return RingPosition(word(0), word(parity))

    def next_position(self, position: RingPosition) -> RingPosition:
        """Creates the position one stage after ``position``, of the other parity after the last stage."""
        following = calculate("addi", position.stage, 1)
        is_round = compare("eq", following, self.plan.stages)
        stage = value("arith.select", following.type, is_round, word(0), following)
        flip = value("arith.extui", following.type, is_round)
        return RingPosition(stage, calculate("xori", position.parity, flip))

    def address(self, stage: Value, offset_bytes: int = 0) -> Value:
        """Creates the address in shared memory (i32) of the byte ``offset_bytes`` in stage ``stage``."""
        scaled = calculate("muli", stage, self.plan.stage_bytes)
        return calculate("addi", calculate("addi", scaled, self.start), offset_bytes)

    def full(self, stage: Value) -> Value:
        """Creates the pointer to a stage's full mbarrier, which completes when its copies have arrived."""
        return self._mbarrier(stage, 0)

    def empty(self, stage: Value) -> Value:
        """Creates the pointer to a stage's empty mbarrier, which completes once all consumers read it."""
        return self._mbarrier(stage, self.plan.stages)

    def _mbarrier(self, stage: Value, before: int) -> Value:
        offset = self.plan.mbarriers_offset_bytes + before * MBARRIER_BYTES
        scaled = calculate("muli", stage, MBARRIER_BYTES)
        return shared_pointer(calculate("addi", calculate("addi", scaled, self.start), offset))

    def create_mbarriers(self) -> None:
        """Creates the initialization of all mbarriers of the ring, for one thread of the block to run."""
        for number in range(self.plan.stages):
            create("nvvm.mbarrier.init", [], [self.full(word(number)), word(1)])
            create("nvvm.mbarrier.init", [], [self.empty(word(number)), word(self.plan.readers)])
        create("nvvm.fence.mbarrier.init")

    def wait(self, mbarrier: Value, position: RingPosition) -> None:
        """Creates the wait at an mbarrier until its phase with the parity of ``position`` is complete."""
        create("nvvm.mbarrier.try_wait.parity", [], [mbarrier, position.parity, word(SUSPEND_NS)])

    def expect(self, mbarrier: Value) -> None:
        """Creates the producer's arrival at a full barrier, which announces the bytes of one stage."""
        create("nvvm.mbarrier.arrive.expect_tx", [], [mbarrier, word(self.plan.stage_bytes)])

    def release(self, stage: Value, rank: Value) -> None:
        """Creates a consumer's arrival at a stage's empty barrier in block ``rank`` (i32) of a cluster."""
        if self.plan.cluster_blocks > 1:
            away = value("nvvm.mapa", ir.Type.parse("!llvm.ptr<7>"), self.empty(stage), rank)
            # In cta scope, as in CUTLASS: this thread wrote nothing that another block reads. A release in
            # cluster scope is a MEMBAR.GPU in each step of the loop, for which blocks lost a quarter of
            # their speed.
            create("nvvm.mbarrier.arrive", [], [away])
            return
        create("nvvm.mbarrier.arrive", [ir.IntegerType.get_signless(64)], [self.empty(stage)])


@dataclass(frozen=True)
class Consumer(ABC):
    """A generator of the code of one consumer: a warpgroup of the block that multiplies tiles by wgmma."""

    ring: Ring
    number: Value  # consumer's number, an i32 that is uniform in its threads
    thread: Value  # thread's number in the warpgroup, an i32

    @property
    def plan(self) -> PipelinePlan:
        return self.ring.plan

    @abstractmethod
    def create(self, first: RingPosition) -> tuple[list[Value], RingPosition]:
        """Creates the loop over tiles of k from position ``first`` on; returns (sums, position after it).

        ``sums``: one LLVM struct of a thread's sums per 64 rows of the left operand.
        """

    def release(self, stage: Value) -> None:
        """Creates arrivals at a stage's empty barriers: thread i, for its warpgroup, at that in block i."""
        is_speaker = compare("ult", self.thread, self.plan.cluster_blocks)
        branch(is_speaker, lambda: self.ring.release(stage, self.thread))


# A consumer of operands in shared memory, with one group of wgmma in flight.
#
# - First tile: wait until the stage is full; fence; products, the first of which sets the sums; commit.
# - Each later tile: wait; fence; products; commit; wait until all groups but the newest are complete; release
#   the previous stage, in all blocks of the cluster.
# - End: wait for the last group; release its stage if another tile of C follows.


@final
class SharedConsumer(Consumer):
    """Generator of the code of a warpgroup that sums all of K by wgmma on operands in shared memory."""

    def create(self, first: RingPosition) -> tuple[list[Value], RingPosition]:
        ring = self.ring
        plan = self.plan
        nothing = [undefined_sums(plan) for _ in range(plan.fragments)]
        sums = self._multiply(first, nothing, is_first=True)

        def step(_number: Value, carried: list[Value]) -> list[Value]:
            position = RingPosition(*carried[:POSITION_WORDS])
            before, *so_far = carried[POSITION_WORDS:]
            new = self._multiply(position, so_far, is_first=False)
            wait_for_older_groups()
            self.release(before)
            return [*ring.next_position(position).values, position.stage, *new]

        carried = [*ring.next_position(first).values, first.stage, *sums]
        stage, parity, last, *sums = loop_i32(1, plan.k_tiles, carried, step)
        complete = [completed(struct, plan) for struct in sums]
        if plan.tiles > 1:
            self.release(last)
        return complete, RingPosition(stage, parity)

    def _multiply(self, position: RingPosition, sums: list[Value], *, is_first: bool) -> list[Value]:
        ring = self.ring
        plan = self.plan
        ring.wait(ring.full(position.stage), position)
        rows_before = calculate("muli", self.number, plan.a.offset_bytes(plan.consumer_rows, 0))
        a = _descriptor(plan.a, calculate("addi", ring.address(position.stage), rows_before))
        b = _descriptor(plan.b, ring.address(position.stage, plan.right_offset_bytes))
        create("nvvm.wgmma.fence.aligned")
        new = list(sums)
        for fragment in range(plan.fragments):
            for step in range(plan.a.steps):
                left = _advance(a, plan.a.offset_bytes(fragment * MMA_ROWS, step))
                right = _advance(b, plan.b.offset_bytes(0, step))
                is_set = is_first and step == 0
                new[fragment] = multiplied(plan, new[fragment], left, right, is_set=is_set)
        create("nvvm.wgmma.commit.group.sync.aligned")
        return new


def undefined_sums(plan: PipelinePlan) -> Value:
    """Creates an LLVM struct of a thread's accumulators of 64 rows, all f32 or all i32, without values."""
    return value("llvm.mlir.undef", struct_of(plan.accumulator_kinds[1], plan.sums))


def multiplied(plan: PipelinePlan, sums: Value, left: Value, right: Value, *, is_set: bool) -> Value:
    """Creates one wgmma of operands in shared memory; returns the new sums, an LLVM struct.

    ``left``, ``right``: matrix descriptors, i64; ``is_set``: the sums are those of this product alone.
    """
    depth = MMA_DEPTH_BYTES // plan.a.item_bytes
    words = {
        "shape": f"#nvvm.shape<m = {MMA_ROWS}, n = {plan.b.rows}, k = {depth}>",
        "typeA": f"#nvvm.wgmma_type<{plan.element}>",
        "typeB": f"#nvvm.wgmma_type<{plan.element}>",
        "typeD": f"#nvvm.wgmma_type<{plan.accumulator_kinds[0]}>",
        "scaleD": f"#nvvm.wgmma_scale_out<{'zero' if is_set else 'one'}>",
        "scaleA": "#nvvm.wgmma_scale_in<one>",
        "scaleB": "#nvvm.wgmma_scale_in<one>",
        "layoutA": f"#nvvm.mma_layout<{'row' if plan.a.is_k_major else 'col'}>",
        "layoutB": f"#nvvm.mma_layout<{'col' if plan.b.is_k_major else 'row'}>",
    }
    attributes: dict[str, Attribute] = {name: ir.Attribute.parse(text) for name, text in words.items()}
    return value("nvvm.wgmma.mma_async", sums.type, sums, left, right, **attributes)


def _descriptor(tile: OperandTile, address: Value) -> Value:
    units = calculate("andi", calculate("shrui", address, UNIT_BYTES.bit_length() - 1), ADDRESS_MASK)
    wide = value("arith.extui", ir.IntegerType.get_signless(64), units)
    return value("arith.ori", wide.type, wide, long_word(tile.descriptor))


def _advance(descriptor: Value, offset_bytes: int) -> Value:
    if offset_bytes == 0:
        return descriptor
    return value("arith.addi", descriptor.type, descriptor, long_word(offset_bytes // UNIT_BYTES))


def wait_for_older_groups() -> None:
    """Creates the wait until all groups of wgmma instructions but the newest group are complete."""
    i64 = ir.IntegerType.get_signless(64)
    create("nvvm.wgmma.wait.group.sync.aligned", group=ir.IntegerAttr.get(i64, 1))


def completed(sums: Value, plan: PipelinePlan, newest: int = 0) -> Value:
    """Creates the wait until all groups of products but the ``newest`` are complete.

    Returns ``sums`` as they are after the wait: an LLVM struct of sums whose products are complete then. The
    wait takes and returns each sum, because LLVM sees no other reason not to read a register before it: LLVM
    moves the first operation of an epilogue, such as an absolute value, above a wait without operands.
    """
    element = plan.accumulator_kinds[1]
    type_ = ir.Type.parse(element)
    numbers = [word_of(sums, type_, number) for number in range(plan.sums)]
    output = REGISTER_OUTPUTS[element]
    constraints = [output] * plan.sums + list(map(str, range(plan.sums)))
    text = f"wgmma.wait_group.sync.aligned {newest};"
    return value("llvm.inline_asm", sums.type, *numbers, **assembly(text, ",".join(constraints)))


def struct_of(element: str, count: int) -> ir.Type:
    """Returns the LLVM struct type of ``count`` elements of the type with the MLIR name ``element``."""
    return ir.Type.parse(f"!llvm.struct<({', '.join([element] * count)})>")


def struct_with(numbers: Sequence[Value]) -> Value:
    """Creates an LLVM struct with the f32 values ``numbers``; returns it."""
    struct = value("llvm.mlir.undef", struct_of("f32", len(numbers)))
    for index, element in enumerate(numbers):
        position = ir.DenseI64ArrayAttr.get([index])
        struct = value("llvm.insertvalue", struct.type, struct, element, position=position)
    return struct


def structs_with(numbers: Sequence[Value], plan: PipelinePlan) -> list[Value]:
    """Creates LLVM structs of one thread's f32 sums, one struct per 64 rows of C; returns them.

    ``numbers``: ``plan.sums`` values for each struct, in order. ``words_of`` reads them again.
    """
    return [struct_with(numbers[at : at + plan.sums]) for at in range(0, len(numbers), plan.sums)]


def words_of(structs: Sequence[Value], plan: PipelinePlan) -> list[Value]:
    """Creates the reads of all f32 values in a thread's LLVM structs: undoes ``structs_with``."""
    type_ = ir.F32Type.get()
    return [word_of(struct, type_, number) for struct in structs for number in range(plan.sums)]


def added(totals: Sequence[Value], numbers: Sequence[Value]) -> list[Value]:
    """Creates ``totals[i] + numbers[i]`` of f32 values, each rounded to nearest; returns the sums."""
    pairs = zip(totals, numbers, strict=True)
    return [value("arith.addf", total.type, total, number) for total, number in pairs]


def word_of(structure: Value, type_: ir.Type, position: int) -> Value:
    """Creates the read of element ``position``, of type ``type_``, of an LLVM struct; returns its value."""
    index = ir.DenseI64ArrayAttr.get([position])
    return value("llvm.extractvalue", type_, structure, position=index)


# The producer: one elected thread that fills the stages of the ring by TMA.
#
# Each of the blocks of a cluster that share a tile copies a part of the tile to all of these blocks.


@dataclass(frozen=True)
class Source:
    """The source of one operand's tiles: its tensor map, the first row to copy, the offset in a stage."""

    tile: OperandTile
    offset_bytes: int  # of the tile in a stage
    tensor_map: Value  # pointer to the CUtensorMap
    first_row: Value  # first row of the block's tile in the matrix, an i32
    rank: Value | None = None  # rank of the block among the blocks that share the tile, an i32


def create_producer(
    ring: Ring, sources: tuple[Source, ...], first: RingPosition, first_k: Value | None = None
) -> RingPosition:
    """Creates the producer's loop over tiles of k, which fills stages of the ring by TMA, for one thread.

    ``sources``: of the operands' tiles. ``first``: ring position before the loop. ``first_k``: where the
    block's part of k starts, i32; None: all of k. Returns the ring position after the loop.
    """
    plan = ring.plan

    def step(number: Value, carried: list[Value]) -> list[Value]:
        position = RingPosition(*carried)
        full = ring.full(position.stage)
        ring.wait(ring.empty(position.stage), position)
        ring.expect(full)
        k = calculate("muli", number, plan.a.depth)
        if first_k is not None:
            k = calculate("addi", k, first_k)
        for source in sources:
            for box in source.tile.boxes:
                _copy(ring, position, source, box, k, full)
        return ring.next_position(position).values

    return RingPosition(*loop_i32(0, plan.k_tiles, first.values, step))


def _copy(ring: Ring, position: RingPosition, source: Source, box: Box, k: Value, full: Value) -> None:
    tile = source.tile
    at = ring.address(position.stage, source.offset_bytes + box.offset_bytes)
    row = calculate("addi", source.first_row, box.row)
    depth = calculate("addi", k, box.k)
    coordinates = [depth, row] if tile.is_k_major else [row, depth]  # innermost first
    ranks: list[Value] = []
    if source.rank is not None:
        at = calculate("addi", at, calculate("muli", source.rank, tile.block_bytes))
        coordinates[1] = calculate("addi", coordinates[1], calculate("muli", source.rank, tile.box[0]))
        i16 = ir.IntegerType.get_signless(16)
        ranks = [value("arith.constant", i16, value=ir.IntegerAttr.get(i16, (1 << tile.sharing_blocks) - 1))]
    create(
        "nvvm.cp.async.bulk.tensor.shared.cluster.global",
        [],
        [cluster_pointer(shared_pointer(at)), source.tensor_map, *coordinates, full, *ranks],
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 1, 2, 1, 0, len(ranks), 0, 0]),
    )
