"""The plan of a wgmma pipeline: layouts of operands' tiles in shared memory, stages, registers.

``OperandTile`` is the layout of one operand's tile, with the TMA copies that fill it (``Box``) and the matrix
descriptors that wgmma reads it by; ``PipelinePlan`` has both tiles and the sizes of the pipeline. Each says
by ``why_not`` what it cannot be.
"""

from dataclasses import dataclass

from tuner.core.dtypes import TENSOR_DTYPES, number_type
from tuner.core.errors import Refusal
from tuner.core.problem import SCALED_DEPTH

# The layout of one operand's tile in shared memory: boxes that the TMA copies, descriptors that wgmma reads.
#
# A tile holds ``rows`` (along A's m or B's n) x ``depth`` (along k) elements in the 128-byte swizzle: lines
# of 128 bytes, eight of which are an atom. PTX ISA, "Matrix Descriptor Format" and "Strides".
#
# K-major: a line holds k of one row. A box is all rows x one line of k; the next line of k is a box away, the
# next eight rows (stride offset) an atom; the depth of one wgmma is 32 bytes within a line. MN-major
# (transposed): a line holds rows of one k. A box is all of k x one line of rows; the next line of rows
# (leading offset) is a box away, the next eight k (stride offset) an atom.

LINE_BYTES = 128  # the swizzle's span
ATOM_LINES = 8
ATOM_BYTES = ATOM_LINES * LINE_BYTES
MMA_DEPTH_BYTES = 32  # along k, per wgmma
MMA_ROWS = 64  # rows of A per wgmma
BOX_LIMIT = 256  # elements along one dimension of a box; cuTensorMapEncodeTiled
SWIZZLE_128 = 1 << 62  # layout type of a matrix descriptor
UNIT_BYTES = 16  # unit of addresses and offsets in a matrix descriptor
LANE_BYTES = 4  # of the elements that lanes read: one in each register
WARPGROUP = 128  # threads
MBARRIER_BYTES = 8
N_MULTIPLE = 8  # columns of a wgmma are a multiple of this
N_LIMIT = 256
REGISTERS_OF_BLOCK = 64 * 1024
# Number of consumers -> accumulators per thread that leave registers for addresses. ptxas rejects 128 of them
# where a block of 512 threads starts with 128 registers per thread, regardless of setmaxnreg.
SUMS_LIMIT = {1: 192, 2: 192, 3: 80}
FRAGMENT_WORDS = 4  # registers of a left operand per wgmma
REGISTERS_BESIDES_SUMS = 48  # with fewer left, registers move from the producer to the consumers
CLUSTERS = ((1, 1), (2, 1), (1, 2))
STORES = ("direct", "tma")
# 16-bit results that a warp stores at once: its rows, lines of 128 bytes
BOX_ROWS = 16
BOX_COLUMNS = 64
BOXES = 2  # per warp: one is filled while the other is stored
WARPS_OF_CONSUMER = 4
UNEQUAL_REGISTERS = (40, 232)  # per thread of the producer, of each of two consumers; CUTLASS's numbers
# Element type -> wgmma's spelling; sums are f32, of integers i32
ELEMENTS = {dtype.mlir: dtype.ptx for dtype in map(number_type, TENSOR_DTYPES)}
# Products of a pair of numbers -> (matrices that make up the left operand, the right one), each with a
# tile in a stage. For three products, the left numbers are split in registers.
MATRICES_OF_OPERANDS = {1: (1, 1), 3: (1, 2), 6: (3, 3)}
PLANES = ("high", "middle", "low")  # of an operand that is the sum of three matrices; names of their buffers


@dataclass(frozen=True)
class Box:
    """One TMA copy into a tile: where it goes (byte offset), and its first row and k in the tile."""

    offset_bytes: int  # in the tile in shared memory
    row: int
    k: int


@dataclass(frozen=True)
class OperandTile:
    """The layout in shared memory of a tile of an operand: ``rows`` x ``depth`` (along k) elements.

    It has lines of 128 bytes with the 128-byte swizzle of TMA and wgmma.
    """

    rows: int
    depth: int
    item_bytes: int
    is_k_major: bool
    sharing_blocks: int = 1  # of a cluster, that share the tile: each copies its lines of every box to all
    is_read_by_lanes: bool = False  # wgmma takes the operand from registers, which lanes fill from the tile

    @property
    def line(self) -> int:
        """Returns the number of elements in a line of 128 bytes, the span of the swizzle."""
        return LINE_BYTES // self.item_bytes

    @property
    def bytes(self) -> int:
        return self.rows * self.depth * self.item_bytes

    @property
    def box(self) -> tuple[int, int]:
        """Returns the shape in elements of one TMA copy by a block: (slower dimension, line of 128 bytes)."""
        lines = self.rows if self.is_k_major else self.depth
        return lines // self.sharing_blocks, self.line

    @property
    def block_bytes(self) -> int:
        """Returns the bytes that one block copies per TMA instruction.

        Of each box, a block copies those from its rank in the cluster times these bytes on.
        """
        return self.box[0] * LINE_BYTES

    @property
    def boxes(self) -> tuple[Box, ...]:
        """Returns the TMA copies by the block of rank 0 in its cluster.

        A block of another rank writes ``block_bytes`` further per rank.
        """
        size = self.sharing_blocks * self.block_bytes
        if self.is_k_major:
            starts = enumerate(range(0, self.depth, self.line))
            return tuple(Box(number * size, 0, k) for number, k in starts)
        starts = enumerate(range(0, self.rows, self.line))
        return tuple(Box(number * size, row, 0) for number, row in starts)

    @property
    def steps(self) -> int:
        return self.depth * self.item_bytes // MMA_DEPTH_BYTES

    def offset_bytes(self, row: int, step: int) -> int:
        """Returns the byte offset in the tile of what wgmma number ``step`` along k reads, from ``row`` on.

        ``row`` must be a multiple of 8 where k is innermost, else of ``line``.
        """
        k = step * MMA_DEPTH_BYTES // self.item_bytes
        if self.is_k_major:
            return (
                row * LINE_BYTES + k // self.line * self.rows * LINE_BYTES + k % self.line * self.item_bytes
            )
        return (row // self.line * self.depth + k) * LINE_BYTES

    @property
    def has_paired_rows(self) -> bool:
        """Returns whether a lane's two rows of a fragment are neighbours in the tile, not 8 rows apart."""
        return self.is_read_by_lanes and not self.is_k_major

    @property
    def descriptor(self) -> int:
        """Returns the 64-bit wgmma matrix descriptor of an operand at shared-memory address 0."""
        leading = UNIT_BYTES if self.is_k_major else self.depth * LINE_BYTES  # ignored if K-major
        return SWIZZLE_128 | ATOM_BYTES // UNIT_BYTES << 32 | leading // UNIT_BYTES << 16

    def why_not(self, name: str, rows_of_one: int) -> Refusal | None:
        """Returns a Refusal if TMA and wgmma cannot handle the tile, else None.

        ``name``: of the operand, for the message; the tile's rows must be a multiple of ``rows_of_one``.
        """
        if self.depth % self.line or (not self.is_k_major and self.rows % self.line):
            return Refusal(
                f"{name}: found {self.rows} x {self.depth}, allowed whole lines of {LINE_BYTES} bytes"
            )
        if self.box[0] % ATOM_LINES:
            found = f"found {self.sharing_blocks} parts of {self.box[0]} lines"
            return Refusal(f"{name}: {found}, allowed multiples of {ATOM_LINES} lines")
        if self.box[0] > BOX_LIMIT or self.rows % rows_of_one:
            return Refusal(
                f"{name}: found {self.rows} rows, allowed multiples of {rows_of_one} up to {BOX_LIMIT}"
            )
        if self.is_read_by_lanes:
            found = f"found {self.depth} k of {self.item_bytes}-byte elements read by lanes"
            allowed = f"allowed {LINE_BYTES // LANE_BYTES} of 4-byte ones"
            if self.item_bytes == LANE_BYTES and self.depth == self.line:
                return None
            return Refusal(f"{name}: {found}, {allowed}")
        if not self.is_k_major and self.item_bytes != 2:  # PTX ISA: imm-trans only for .f16 and .bf16
            return Refusal(
                f"{name}: found {self.item_bytes}-byte elements with k not innermost, allowed 2-byte ones"
            )
        return None


@dataclass(frozen=True)
class PipelinePlan:
    """The sizes of a pipeline: one producer warpgroup copies tiles for ``consumers`` warpgroups."""

    a: OperandTile  # the left operand of wgmma, which takes 64 of its rows at once
    b: OperandTile
    k: int  # elements of the whole sum
    stages: int
    consumers: int
    element: str  # element type, as wgmma spells it: "f16", "bf16", "tf32", "e4m3", "e5m2", "s8"
    cluster: tuple[int, int] = (1, 1)  # blocks along rows and columns of C that share tiles
    tiles: int = 1  # tiles of C that a block computes, one after another
    stores: str = "direct"  # or "tma": results of 16 bits, through boxes in shared memory
    splits: int = 1  # slices of the sum along k, each computed by other blocks
    is_swapped: bool = False  # C^T = B^T A^T: ``a`` is the tile of B, whose rows are columns of C
    products: int = (
        1  # a key of MATRICES_OF_OPERANDS; above 1 sums of a stage are added up outside of the tensor cores
    )
    is_scaled: bool = False  # sums of each stage are multiplied by scales, and added up outside as well

    @property
    def accumulator_kinds(self) -> tuple[str, str]:
        """Returns the type of the sums by (wgmma's, MLIR's) name: ("f32", "f32") or ("s32", "i32")."""
        if self.element == "s8":
            return ("s32", "i32")
        return ("f32", "f32")

    @property
    def threads(self) -> int:
        return WARPGROUP * (self.consumers + 1)

    @property
    def cluster_blocks(self) -> int:
        return self.cluster[0] * self.cluster[1]

    @property
    def readers(self) -> int:
        """Returns how many arrivals at its empty mbarrier release a stage, from all blocks of the cluster.

        Each consumer warpgroup arrives once; where lanes read the left operand, each of its warps does.
        """
        of_consumer = WARPS_OF_CONSUMER if self.a.is_read_by_lanes else 1
        return self.consumers * of_consumer * self.cluster_blocks

    @property
    def k_tiles(self) -> int:
        return -(-self.k // (self.a.depth * self.splits))

    @property
    def consumer_rows(self) -> int:
        return self.a.rows // self.consumers

    @property
    def fragments(self) -> int:
        return self.consumer_rows // MMA_ROWS

    @property
    def sums(self) -> int:
        return self.b.rows // 2  # per thread: 64 rows x columns of C, shared by 128 threads

    @property
    def held(self) -> int:
        """Returns the registers per thread that hold sums, and fragments of a left operand that lanes read.

        Fragments are in two sets, of a stage and of the next one. With three products they are in three sets:
        the numbers, their high bits and their low bits. With six products there are three sets of sums: of
        large products, of small products, and totals.
        """
        if not self.a.is_read_by_lanes:
            sets = 0
        elif self.products == 3:
            sets = 3
        else:
            sets = 2
        if self.products == 6:
            sums = 3 * self.sums
        elif self.products == 3 or self.is_scaled:
            sums = 2 * self.sums
        else:
            sums = self.sums
        return self.fragments * (sums + sets * FRAGMENT_WORDS * self.a.steps)

    @property
    def right_offset_bytes(self) -> int:
        """Returns the byte offset in a stage of the right operand's tiles, which follow the left one's."""
        return MATRICES_OF_OPERANDS[self.products][0] * self.a.bytes

    @property
    def stage_bytes(self) -> int:
        return self.right_offset_bytes + MATRICES_OF_OPERANDS[self.products][1] * self.b.bytes

    @property
    def stored_box(self) -> tuple[int, int]:
        """Returns the (rows, columns) of C that a warp stores by one TMA copy."""
        return BOX_ROWS, BOX_COLUMNS

    @property
    def stored_box_bytes(self) -> int:
        return BOX_ROWS * BOX_COLUMNS * 2

    @property
    def stored_boxes_offset_bytes(self) -> int:
        """Returns the byte offset in shared memory of the boxes of C, which follow the ring's stages.

        Results are staged there for TMA stores.
        """
        return self.stages * self.stage_bytes

    @property
    def mbarriers_offset_bytes(self) -> int:
        """Returns the byte offset in shared memory of the mbarriers, after stages and staged results."""
        boxes = BOXES * WARPS_OF_CONSUMER * self.consumers if self.stores == "tma" else 0
        return self.stored_boxes_offset_bytes + boxes * self.stored_box_bytes

    @property
    def shared_bytes(self) -> int:
        """Returns the bytes of shared memory per block: stages, boxes of results, two mbarriers per stage."""
        return self.mbarriers_offset_bytes + self.stages * 2 * MBARRIER_BYTES

    @property
    def registers(self) -> tuple[int, int] | None:
        """Returns the registers per thread to set for (producer, consumer); None if equal shares suffice."""
        equal = REGISTERS_OF_BLOCK // self.threads
        is_enough = self.held + REGISTERS_BESIDES_SUMS <= equal
        if is_enough:
            return None
        return UNEQUAL_REGISTERS

    def why_not(self) -> Refusal | None:
        """Returns a Refusal for the first size of this pipeline that is not supported; None if all are."""
        if self.consumers not in SUMS_LIMIT:
            return Refusal(f"consumers: found {self.consumers}, allowed {', '.join(map(str, SUMS_LIMIT))}")
        if self.cluster not in CLUSTERS:
            return Refusal(f"cluster: found {self.cluster}, allowed {', '.join(map(str, CLUSTERS))}")
        if self.stages < 2:
            return Refusal(f"stages: found {self.stages}, allowed 2 or more: one is filled while one is read")
        if self.tiles < 1:
            return Refusal(f"tiles: found {self.tiles}, allowed 1 or more")
        if self.products not in MATRICES_OF_OPERANDS or (self.products == 3 and not self.a.is_read_by_lanes):
            allowed = "1, 6, and 3 where lanes read one operand"
            return Refusal(f"products: found {self.products}, allowed {allowed}")
        if self.b.rows > N_LIMIT:
            name, lines = ("A", "rows") if self.is_swapped else ("B", "columns")
            return Refusal(f"{name}: found {self.b.rows} {lines} of C, allowed {N_LIMIT}")
        if self.held > SUMS_LIMIT[self.consumers]:
            found = f"found {self.held} sums{' and fragments' if self.a.is_read_by_lanes else ''} per thread"
            return Refusal(f"consumers: {found}, allowed {SUMS_LIMIT[self.consumers]} with {self.consumers}")
        rows = self.consumers * MMA_ROWS
        left, right = ("B", "A") if self.is_swapped else ("A", "B")
        return (
            self._why_not_scaled()
            or self._why_not_stored()
            or self.a.why_not(left, rows)
            or self.b.why_not(right, N_MULTIPLE)
        )

    def _why_not_scaled(self) -> Refusal | None:
        if not self.is_scaled:
            return None
        if self.a.item_bytes != 1 or not (self.a.is_k_major and self.b.is_k_major):
            return Refusal("scales: found another matmul, allowed 8-bit elements with k innermost")
        if self.a.depth != SCALED_DEPTH:
            return Refusal(f"scales: found stages of {self.a.depth} k, allowed {SCALED_DEPTH}, of one scale")
        return None

    def _why_not_stored(self) -> Refusal | None:
        if self.splits < 1 or (self.splits > 1 and self.k % (self.a.depth * self.splits)):
            found = f"found {self.splits} of {self.k} elements"
            return Refusal(f"splits: {found}, allowed equal parts of whole tiles of {self.a.depth}")
        if self.splits > 1 and self.stores == "tma":
            return Refusal(
                "splits: found results stored by tma, allowed direct: parts of sums are added up later"
            )
        if self.is_swapped and self.stores == "tma":
            return Refusal("stores: found tma of operands that change places, allowed direct")
        if self.stores not in STORES:
            return Refusal(f"stores: found {self.stores!r}, allowed {', '.join(STORES)}")
        if self.stores == "tma" and self.b.rows % BOX_COLUMNS:
            return Refusal(
                f"stores: found tma for {self.b.rows} columns of C, allowed multiples of {BOX_COLUMNS}"
            )
        return None
