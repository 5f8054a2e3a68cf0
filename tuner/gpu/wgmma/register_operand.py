"""A consumer whose left operand passes through registers: tf32 in which k is not innermost.

``wgmma`` reads tf32 from shared memory only with k innermost. Fragments in registers have no such limit:
lanes read them from the tile as it lies there. Where B has n innermost and A has k innermost, the operands
change places: C^T = B^T A^T, so B is the left operand and rows of the product are columns of C. Three
products of tf32 split the left operand in registers, so lanes read it with k innermost as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from tuner.gpu.ir.warps import assembly, i32, synchronise_warp
from tuner.gpu.wgmma.integers import calculate, compare, long_word, loop_i32
from tuner.gpu.wgmma.plan import (
    ATOM_LINES,
    FRAGMENT_WORDS,
    LANE_BYTES,
    LINE_BYTES,
    MMA_DEPTH_BYTES,
    MMA_ROWS,
    UNIT_BYTES,
    OperandTile,
    PipelinePlan,
)
from tuner.gpu.wgmma.warpgroups import (
    POSITION_WORDS,
    Consumer,
    Ring,
    RingPosition,
    completed,
    struct_of,
    wait_for_older_groups,
    word_of,
)
from tuner.mlir.bindings import Value, ir
from tuner.mlir.ir.building import branch, create, value

# The fragment of a lane, and where it lies. Lane l of warp w holds, with g = l / 4 and t = l % 4, rows
# 16 w + g and 8 more, k = t and 4 more: a pair of rows per k. PTX ISA, "Register Fragments for
# wgmma.mma_async".
#
# With k not innermost:
# Which rows of the tile these are is free, since only the stores see it. Pairs are neighbours in the tile, so
# a lane reads a pair by one load of 8 bytes. A line of 128 bytes has chunks of 16 bytes, of two pairs each;
# with the swizzle, chunk c of line k lies at c ^ (k % 8). The 16 lanes of half a warp read four lines: pairs
# g = 0, 1 of chunk c and g = 2, 3 of chunk c + 4 lie in 8 different chunks then, in all banks. So a line of
# 32 rows is for two warps: the first has chunks 0, 4, 1, 5, the second 2, 6, 3, 7.

CHUNK_SHIFT = 4  # chunks of 16 bytes
HALF_LINES = 4  # the second pair of rows of a fragment is of k + 4
WORD_BITS = 32
LOW_WORD = (1 << WORD_BITS) - 1
FRAGMENT_LINE = LINE_BYTES // LANE_BYTES  # rows in a line


@dataclass(frozen=True)
class Lane:
    """A thread by i32 values that say which rows of the left operand it reads.

    ``warp`` is its number in the warpgroup, ``group`` its lane / 4, ``column`` its lane % 4.
    """

    warp: Value
    group: Value
    column: Value

    @classmethod
    def of(cls, thread: Value) -> "Lane":
        """Creates the values of a lane from ``thread``, an i32, the thread's number in its warpgroup."""
        lane = calculate("andi", thread, 31)
        warp = calculate("shrui", thread, 5)
        return cls(warp, calculate("shrui", lane, 2), calculate("andi", lane, 3))

    def chunk(self) -> Value:
        """Creates the number of the 16-byte chunk, in a line of 32 rows, with the lane's pair of rows."""
        second_line_half = calculate("shli", calculate("andi", self.warp, 1), 1)
        upper = calculate("shrui", self.group, 2)
        odd = calculate("andi", calculate("shrui", self.group, 1), 1)
        return calculate("addi", calculate("addi", second_line_half, upper), calculate("shli", odd, 2))

    def first_row(self) -> Value:
        """Creates the first of the lane's two adjacent rows, counted from the warpgroup's first row."""
        line = calculate("muli", calculate("shrui", self.warp, 1), FRAGMENT_LINE)
        in_chunk = calculate("shli", calculate("andi", self.group, 1), 1)
        return calculate("addi", calculate("addi", line, calculate("shli", self.chunk(), 2)), in_chunk)

    def pair_bytes(self, depth: int) -> tuple[Value, Value]:
        """Creates two byte offsets in a tile of ``depth`` k: of the lane's pair of rows, and 4 k further."""
        line = calculate("muli", calculate("shrui", self.warp, 1), depth * LINE_BYTES)
        line = calculate("addi", line, calculate("muli", self.column, LINE_BYTES))
        swizzled = calculate("shli", calculate("xori", self.chunk(), self.column), CHUNK_SHIFT)
        in_chunk = calculate("shli", calculate("andi", self.group, 1), 3)
        first = calculate("addi", calculate("addi", line, swizzled), in_chunk)
        other_chunk = calculate("xori", first, HALF_LINES << CHUNK_SHIFT)
        return first, calculate("addi", other_chunk, HALF_LINES * LINE_BYTES)


# With k innermost a line of 128 bytes holds 32 k of one row, and the fragment is what ``ldmatrix`` reads as
# four matrices of 16-bit elements, two of which are an f32: rows of 16 bytes, which are chunks of 4 k. Lanes
# 0 to 15 give the rows of the first 4 k, lanes 16 to 31 those of the next 4. Chunk c of row r lies at
# c ^ (r % 8), so 8 rows are in 8 different chunks, in all banks.

MATRIX_ROWS = 16  # of a fragment that a warp reads
STEP_SHIFT = MMA_DEPTH_BYTES.bit_length() - 1


def row_bytes(thread: Value) -> Value:
    """Creates the byte offset, in a tile with k innermost, of the 16 bytes that a lane gives to ldmatrix."""
    lane = calculate("andi", thread, 31)
    warp = calculate("shrui", thread, 5)
    row = calculate("addi", calculate("muli", warp, MATRIX_ROWS), calculate("andi", lane, MATRIX_ROWS - 1))
    chunk = calculate("xori", calculate("shrui", lane, 4), calculate("andi", lane, ATOM_LINES - 1))
    return calculate("addi", calculate("muli", row, LINE_BYTES), calculate("shli", chunk, CHUNK_SHIFT))


# The loop. Fragments of a set of registers may be written only after the group that reads them is complete,
# so two sets are used in turn, and the loop has two steps. A step:
#
# fence; products; commit; wait for all groups but the newest; release the previous stage; wait until the next
# stage is full; read its fragments
#
# Reads of a stage overlap the products of the stage before. In another order, as with the reads at the start
# of a step, ptxas serializes the products (C7513). Each warp releases a stage for itself: a thread knows of
# reads by other lanes after a barrier of its warp, but not of those by other warps.


@dataclass(frozen=True)
class _Step:
    """What the loop carries: fragments of a stage that were read, the stage multiplied last, and its sums."""

    position: RingPosition  # of the fragments
    before: Value  # stage multiplied last, an i32
    fragments: tuple[Value, ...]  # words
    sums: tuple[Value, ...]  # one LLVM struct per 64 rows

    @property
    def values(self) -> list[Value]:
        return [*self.position.values, self.before, *self.fragments, *self.sums]

    def with_values(self, values: Sequence[Value]) -> "_Step":
        first = POSITION_WORDS + 1
        last = first + len(self.fragments)
        position = RingPosition(*values[:POSITION_WORDS])
        return _Step(position, values[POSITION_WORDS], (*values[first:last],), (*values[last:],))


@final
class RegisterConsumer(Consumer):
    """Generator of the code of a warpgroup that holds the left operand's fragments in registers."""

    def create(self, first: RingPosition) -> tuple[list[Value], RingPosition]:
        plan = self.plan
        own = fragment_addresses(self.ring, self.number, self.thread)
        sums = self._multiply(first.stage, read_fragments(self.ring, first, own), (None,) * plan.fragments)
        before = first.stage
        after = self.ring.next_position(first)
        if plan.k_tiles > 1:
            wait_for_older_groups()  # of one group for none: without it ptxas serializes the products
            sums, before, after = self._create_loop(
                _Step(after, before, read_fragments(self.ring, after, own), sums), own
            )
        complete = [completed(struct, plan) for struct in sums]
        if plan.tiles > 1:
            release_by_warps(self.ring, self.thread, before)
        return complete, after

    def _create_loop(self, step: _Step, own: list[Value]) -> tuple[tuple[Value, ...], Value, RingPosition]:
        """Creates all steps but the first; returns sums, the last stage and the position after it."""

        def two_steps(_number: Value, carried: list[Value]) -> list[Value]:
            return self._next(self._next(step.with_values(carried), own), own).values

        steps = self.plan.k_tiles - 2  # that read fragments of the next stage
        if steps >= 2:
            step = step.with_values(loop_i32(0, steps // 2, step.values, two_steps))
        if steps % 2:
            step = self._next(step, own)
        sums = self._multiply(step.position.stage, step.fragments, step.sums)
        if self.plan.tiles > 1:
            wait_for_older_groups()
            release_by_warps(self.ring, self.thread, step.before)
        return sums, step.position.stage, self.ring.next_position(step.position)

    def _next(self, step: _Step, own: list[Value]) -> _Step:
        sums = self._multiply(step.position.stage, step.fragments, step.sums)
        wait_for_older_groups()
        release_by_warps(self.ring, self.thread, step.before)
        following = self.ring.next_position(step.position)
        return _Step(following, step.position.stage, read_fragments(self.ring, following, own), sums)

    def _multiply(
        self, stage: Value, words: Sequence[Value], sums: Sequence[Value | None]
    ) -> tuple[Value, ...]:
        plan = self.plan
        right = right_operand(self.ring, stage)
        create("nvvm.wgmma.fence.aligned")
        new = []
        for index, so_far in enumerate(sums):
            for step in range(plan.a.steps):
                first = (index * plan.a.steps + step) * FRAGMENT_WORDS
                left = words[first : first + FRAGMENT_WORDS]
                so_far = create_product(plan, so_far, left, right.at(plan.b.offset_bytes(0, step)))
            new.append(so_far)
        create("nvvm.wgmma.commit.group.sync.aligned")
        return tuple(new)


@dataclass(frozen=True)
class Descriptor:
    """A wgmma matrix descriptor as two 32-bit words: ``low`` has the address, to which offsets are added."""

    low: Value  # an i32
    high: int

    def at(self, offset_bytes: int) -> Value:
        """Creates the descriptor, an i64, of the operand ``offset_bytes`` further in shared memory.

        ptxas adds to the lower word alone then, and keeps the upper one where it is.
        """
        wide = value("arith.extui", ir.IntegerType.get_signless(64), self.low)
        base = value("arith.ori", wide.type, wide, long_word(self.high << WORD_BITS))
        if offset_bytes == 0:
            return base
        return value("arith.addi", wide.type, base, long_word(offset_bytes // UNIT_BYTES))


def left_operand(ring: Ring, stage: Value, consumer: Value) -> Descriptor:
    """Creates the wgmma descriptor of a consumer's rows of the left operand's first tile in a stage.

    ``stage``, ``consumer``: their numbers, i32.
    """
    plan = ring.plan
    offset_bytes = calculate("muli", consumer, plan.a.offset_bytes(plan.consumer_rows, 0))
    return _descriptor_of(ring, plan.a, stage, offset_bytes)


def right_operand(ring: Ring, stage: Value) -> Descriptor:
    """Creates the wgmma descriptor of the right operand's first tile in stage number ``stage``, an i32."""
    return _descriptor_of(ring, ring.plan.b, stage, ring.plan.right_offset_bytes)


def _descriptor_of(ring: Ring, tile: OperandTile, stage: Value, offset_bytes: int | Value) -> Descriptor:
    """Creates the wgmma descriptor of ``tile``, or a part of it, ``offset_bytes`` from a stage's beginning.

    ``stage``, and ``offset_bytes`` if it is a value, are i32.
    """
    units = calculate("shrui", calculate("addi", ring.start, offset_bytes), UNIT_BYTES.bit_length() - 1)
    low = calculate("addi", units, tile.descriptor & LOW_WORD)
    of_stage = calculate("muli", stage, ring.plan.stage_bytes // UNIT_BYTES)
    return Descriptor(calculate("addi", low, of_stage), tile.descriptor >> WORD_BITS)


def release_by_warps(ring: Ring, thread: Value, stage: Value) -> None:
    """Creates the arrivals of each warp at a stage's empty mbarriers.

    Lane i arrives at the mbarrier of block i. ``thread``, ``stage``: i32 values, the thread's index in its
    warpgroup and the stage's index.
    """
    lane = calculate("andi", thread, 31)
    is_speaker = compare("ult", lane, ring.plan.cluster_blocks)
    synchronise_warp()
    branch(is_speaker, lambda: ring.release(stage, lane))


def fragment_addresses(ring: Ring, consumer: Value, thread: Value) -> list[Value]:
    """Creates the addresses in the first stage at which a lane reads fragments; returns one or two addresses.

    With k innermost one address, for ldmatrix; else two, of pairs of rows 4 k apart. ``consumer`` and
    ``thread``, i32 values: indices of the warpgroup and of the thread in it.
    """
    plan = ring.plan
    rows_before = calculate("muli", consumer, plan.a.offset_bytes(plan.consumer_rows, 0))
    tile = calculate("addi", ring.start, rows_before)
    if plan.a.is_k_major:
        return [calculate("addi", tile, row_bytes(thread))]
    return [calculate("addi", tile, pair) for pair in Lane.of(thread).pair_bytes(plan.a.depth)]


def read_fragments(ring: Ring, position: RingPosition, own: list[Value]) -> tuple[Value, ...]:
    """Creates the wait for a stage and the reads of its fragments.

    Returns the words of all fragments, i32 values. ``own``: the lane's addresses of ``fragment_addresses``.
    """
    plan = ring.plan
    ring.wait(ring.full(position.stage), position)
    stage = calculate("muli", position.stage, plan.stage_bytes)
    addresses = [calculate("addi", address, stage) for address in own]
    words: list[Value] = []
    for row in range(0, plan.consumer_rows, MMA_ROWS):
        if plan.a.is_k_major:
            words += _read_matrices(plan, addresses[0], row)
        else:
            words += _read_pairs(plan, addresses, row)
    return tuple(words)


def _read_pairs(plan: PipelinePlan, addresses: list[Value], row: int) -> list[Value]:
    words: list[Value] = []
    for step in range(plan.a.steps):
        for address in addresses:
            words += load_pair(address, plan.a.offset_bytes(row, step))
    return words


def _read_matrices(plan: PipelinePlan, address: Value, row: int) -> list[Value]:
    words: list[Value] = []
    for step in range(plan.a.steps):
        # two chunks further: no addition, as the swizzle exchanges chunks
        of_step = calculate("xori", address, step << STEP_SHIFT)
        words += load_matrices(of_step, plan.a.offset_bytes(row, 0))
    return words


def load_pair(address: Value, offset_bytes: int) -> list[Value]:
    """Creates a load of 8 bytes of shared memory; returns its two words, i32 values.

    It is inline PTX, as are the products and the waits for mbarriers: LLVM keeps the order of inline PTX.
    """
    return _load("ld.shared.v2.b32", 2, address, offset_bytes)


def load_matrices(address: Value, offset_bytes: int) -> list[Value]:
    """Creates a read of a fragment with k innermost, by inline PTX; returns its four words, i32 values."""
    return _load("ldmatrix.sync.aligned.m8n8.x4.shared.b16", FRAGMENT_WORDS, address, offset_bytes)


def _load(name: str, count: int, address: Value, offset_bytes: int) -> list[Value]:
    results = ", ".join(f"${number}" for number in range(count))
    words = value(
        "llvm.inline_asm",
        struct_of("i32", count),
        address,
        **assembly(f"{name} {{{results}}}, [${count}+{offset_bytes}];", "=r," * count + "r"),
    )
    return [word_of(words, i32(), number) for number in range(count)]


def create_product(plan: PipelinePlan, sums: Value | None, left: Sequence[Value], right: Value) -> Value:
    """Creates one wgmma whose left operand is in registers; returns the new sums, an LLVM struct.

    ``sums``: the sums so far; None for the first product. ``left``: the four words of a fragment; ``right``:
    the descriptor, an i64. Upstream's op takes descriptors only.
    """
    type_ = ir.Type.parse(plan.accumulator_kinds[1])
    struct = struct_of(plan.accumulator_kinds[1], plan.sums)
    so_far = [] if sums is None else [word_of(sums, type_, number) for number in range(plan.sums)]
    first = plan.sums + len(so_far)
    depth = MMA_DEPTH_BYTES // plan.a.item_bytes
    name = f"wgmma.mma_async.sync.aligned.m{MMA_ROWS}n{plan.b.rows}k{depth}.f32.{plan.element}.{plan.element}"
    results = ", ".join(f"${number}" for number in range(plan.sums))
    words = ", ".join(f"${number}" for number in range(first, first + FRAGMENT_WORDS))
    adds = int(sums is not None)
    text = (
        f"{{ .reg .pred p; setp.ne.b32 p, {adds}, 0; "
        f"{name} {{{results}}}, {{{words}}}, ${first + FRAGMENT_WORDS}, p, 1, 1; }}"
    )
    ties = list(map(str, range(len(so_far))))
    constraints = ["=f"] * plan.sums + ties + ["r"] * FRAGMENT_WORDS + ["l"]
    return value("llvm.inline_asm", struct, *so_far, *left, right, **assembly(text, ",".join(constraints)))
