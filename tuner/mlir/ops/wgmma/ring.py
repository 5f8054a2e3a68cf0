"""The ring of stages in shared memory: two mbarriers per stage, and a thread's position in the ring.

A stage is full when the producer's copies have delivered all its bytes, empty when each consumer has read it.
A position is a stage and the parity of the phase that is waited for; the parity flips with each round. A
consumer starts with parity 0, the producer with 1: a stage that was never filled is empty.

In a cluster, copies go to the same stage of several blocks. Each block expects all bytes that it receives,
from any block; each consumer releases a stage in every block, because the producer of any of these blocks may
fill the stage next.
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Value, ir
from tuner.mlir.ops.wgmma.integers import calculate, compare, shared_pointer, word
from tuner.mlir.ops.wgmma.plan import MBARRIER_BYTES, PipelinePlan
from tuner.mlir.rewrite.building import create, value

SUSPEND_NS = 0x989680  # time limit of one try_wait before it is repeated, as in CUTLASS
PLACE_WORDS = 2


@dataclass(frozen=True)
class Place:
    """A thread's position in the ring of stages: number of the stage and parity of its phase, i32 values."""

    stage: Value
    parity: Value

    @property
    def values(self) -> list[Value]:
        """Returns [stage, parity], the i32 values that a loop carries."""
        return [self.stage, self.parity]


@dataclass(frozen=True)
class Ring:
    """The ring of stages of a block in shared memory, from the address ``start`` (an i32 value) on.

    Its methods create code at the current insertion point. Each stage has two mbarriers: full and empty.
    """

    plan: PipelinePlan
    start: Value

    def first_place(self, parity: int) -> Place:
        """Creates the position at stage 0 of a thread that has used no stage.

        ``parity``: 0 for a consumer, 1 for the producer, for which every stage is empty at first.
        """
        return Place(word(0), word(parity))

    def next_place(self, place: Place) -> Place:
        """Creates the position one stage after ``place``.

        After the last stage comes stage 0, with the other parity.
        """
        following = calculate("addi", place.stage, 1)
        is_round = compare("eq", following, self.plan.stages)
        stage = value("arith.select", following.type, is_round, word(0), following)
        flip = value("arith.extui", following.type, is_round)
        return Place(stage, calculate("xori", place.parity, flip))

    def address(self, stage: Value, offset_bytes: int = 0) -> Value:
        """Creates the address in shared memory (i32) of the byte ``offset_bytes`` in stage ``stage``."""
        scaled = calculate("muli", stage, self.plan.stage_bytes)
        return calculate("addi", calculate("addi", scaled, self.start), offset_bytes)

    def full(self, stage: Value) -> Value:
        """Creates the pointer to a stage's full barrier: it completes when the stage's copies arrived."""
        return self._mbarrier(stage, 0)

    def empty(self, stage: Value) -> Value:
        """Creates the pointer to a stage's empty barrier: it completes when all consumers read the stage."""
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

    def wait(self, mbarrier: Value, place: Place) -> None:
        """Creates the wait at an mbarrier until its phase with the parity of ``place`` is complete."""
        create("nvvm.mbarrier.try_wait.parity", [], [mbarrier, place.parity, word(SUSPEND_NS)])

    def expect(self, mbarrier: Value) -> None:
        """Creates the producer's arrival at a full barrier, which announces the bytes of one stage.

        ``mbarrier``: the pointer to the stage's full barrier.
        """
        create("nvvm.mbarrier.arrive.expect_tx", [], [mbarrier, word(self.plan.stage_bytes)])

    def release(self, stage: Value, rank: Value) -> None:
        """Creates a consumer's arrival at the empty barrier of a stage: the consumer has read the stage.

        ``rank`` (an i32 value): the block of the cluster whose barrier it is; ignored where clusters have one
        block.
        """
        if self.plan.cluster_blocks > 1:
            away = value("nvvm.mapa", ir.Type.parse("!llvm.ptr<7>"), self.empty(stage), rank)
            create("nvvm.mbarrier.arrive", [], [away], scope=ir.Attribute.parse("#nvvm.mem_scope<cluster>"))
            return
        create("nvvm.mbarrier.arrive", [ir.IntegerType.get_signless(64)], [self.empty(stage)])
