"""The sizes of a pipeline: tiles, stages, warpgroups, registers, bytes of shared memory."""

from dataclasses import dataclass

from tuner.mlir.ops.wgmma.operand_tile import MMA_ROWS, OperandTile

WARPGROUP = 128  # threads
MBARRIER_BYTES = 8
N_MULTIPLE = 8  # columns of a wgmma are a multiple of this
N_LIMIT = 256
REGISTERS_OF_BLOCK = 64 * 1024
# Number of consumers -> accumulators per thread that leave registers for addresses. ptxas rejects 128 of them
# where a block of 512 threads starts with 128 registers per thread, regardless of setmaxnreg.
SUMS_LIMIT = {1: 192, 2: 192, 3: 80}
REGISTERS_BESIDES_SUMS = 48  # with fewer left, registers move from the producer to the consumers
CLUSTERS = ((1, 1), (2, 1), (1, 2))
STORES = ("direct", "tma")
BOX_ROWS, BOX_COLUMNS = 16, 64  # 16-bit results that a warp stores at once: its rows, lines of 128 bytes
BOXES = 2  # per warp: one is filled while the other is stored
WARPS_OF_CONSUMER = 4
UNEQUAL_REGISTERS = (40, 232)  # per thread of the producer, of each of two consumers; CUTLASS's numbers


@dataclass(frozen=True)
class PipelinePlan:
    """The sizes of a warp-specialized matmul pipeline, with one producer warpgroup.

    The producer copies tiles for ``consumers`` other warpgroups, which multiply them.
    """

    a: OperandTile
    b: OperandTile
    k: int  # elements of the whole sum
    stages: int
    consumers: int
    kind: str  # element type, as wgmma spells it: "f16", "bf16", "tf32", "e4m3", "e5m2", "s8"
    cluster: tuple[int, int] = (1, 1)  # blocks along rows and columns of C that share tiles
    tiles: int = 1  # tiles of C that a block computes, one after another
    stores: str = "direct"  # or "tma": results of 16 bits, through boxes in shared memory
    splits: int = 1  # parts of the sum, each computed by other blocks

    @property
    def sum_kinds(self) -> tuple[str, str]:
        """Returns the type of the sums by (wgmma's, MLIR's) name: ("f32", "f32") or ("s32", "i32")."""
        return ("s32", "i32") if self.kind == "s8" else ("f32", "f32")

    @property
    def threads(self) -> int:
        """Returns the number of threads per block: 128 for each consumer, and 128 for the producer."""
        return WARPGROUP * (self.consumers + 1)

    @property
    def cluster_blocks(self) -> int:
        """Returns the number of thread blocks per cluster."""
        return self.cluster[0] * self.cluster[1]

    @property
    def readers(self) -> int:
        """Returns how many consumer warpgroups release a stage: those of all blocks of the cluster."""
        return self.consumers * self.cluster_blocks

    @property
    def k_tiles(self) -> int:
        """Returns the number of tiles that a block multiplies along k, rounded up.

        The last tile may extend beyond the matrix.
        """
        return -(-self.k // (self.a.depth * self.splits))

    @property
    def consumer_rows(self) -> int:
        """Returns how many rows of the block's tile of C each consumer warpgroup computes."""
        return self.a.rows // self.consumers

    @property
    def fragments(self) -> int:
        """Returns how many fragments, of 64 rows of C each, a consumer warpgroup computes."""
        return self.consumer_rows // MMA_ROWS

    @property
    def sums(self) -> int:
        """Returns the number of 32-bit accumulators of a thread for one fragment of 64 rows of C."""
        return self.b.rows // 2

    @property
    def stage_bytes(self) -> int:
        """Returns the bytes of one stage of the ring: a tile of A and a tile of B."""
        return self.a.bytes + self.b.bytes

    @property
    def box(self) -> tuple[int, int]:
        """Returns how many (rows, columns) of C a warp stores by one TMA copy."""
        return BOX_ROWS, BOX_COLUMNS

    @property
    def box_bytes(self) -> int:
        """Returns the bytes of the 16-bit results that a warp stores to C by one TMA copy."""
        return BOX_ROWS * BOX_COLUMNS * 2

    @property
    def boxes_offset_bytes(self) -> int:
        """Returns the byte offset in shared memory where TMA stores stage results, after the stages."""
        return self.stages * self.stage_bytes

    @property
    def mbarriers_offset_bytes(self) -> int:
        """Returns the byte offset in shared memory of the mbarriers, after stages and staged results."""
        boxes = BOXES * WARPS_OF_CONSUMER * self.consumers if self.stores == "tma" else 0
        return self.boxes_offset_bytes + boxes * self.box_bytes

    @property
    def shared_bytes(self) -> int:
        """Returns the bytes of shared memory per block: stages, boxes of results, two mbarriers per stage."""
        return self.mbarriers_offset_bytes + self.stages * 2 * MBARRIER_BYTES

    @property
    def registers(self) -> tuple[int, int] | None:
        """Returns the registers per thread to set for (producer, consumer); None if equal shares suffice."""
        equal = REGISTERS_OF_BLOCK // self.threads
        is_enough = self.fragments * self.sums + REGISTERS_BESIDES_SUMS <= equal
        return None if is_enough else UNEQUAL_REGISTERS

    def why_not(self) -> str | None:
        """Returns a message on the first size of this pipeline that is not supported, else None."""
        if self.consumers not in SUMS_LIMIT:
            return f"consumers: found {self.consumers}, allowed {', '.join(map(str, SUMS_LIMIT))}"
        if self.cluster not in CLUSTERS:
            return f"cluster: found {self.cluster}, allowed {', '.join(map(str, CLUSTERS))}"
        if self.stages < 2:
            return f"stages: found {self.stages}, allowed 2 or more: one is filled while one is read"
        if self.tiles < 1:
            return f"tiles: found {self.tiles}, allowed 1 or more"
        if self.b.rows > N_LIMIT:
            return f"B: found {self.b.rows} columns of C, allowed {N_LIMIT}"
        if self.fragments * self.sums > SUMS_LIMIT[self.consumers]:
            found = f"found {self.fragments * self.sums} sums per thread"
            return f"consumers: {found}, allowed {SUMS_LIMIT[self.consumers]} with {self.consumers}"
        rows = self.consumers * MMA_ROWS
        return self._why_not_stored() or self.a.why_not("A", rows) or self.b.why_not("B", N_MULTIPLE)

    def _why_not_stored(self) -> str | None:
        """Returns why sums cannot be split into parts, or results cannot be stored, else None."""
        if self.splits < 1 or (self.splits > 1 and self.k % (self.a.depth * self.splits)):
            found = f"found {self.splits} of {self.k} elements"
            return f"splits: {found}, allowed equal parts of whole tiles of {self.a.depth}"
        if self.splits > 1 and self.stores == "tma":
            return "splits: found results stored by tma, allowed direct: parts of sums are added up later"
        if self.stores not in STORES:
            return f"stores: found {self.stores!r}, allowed {', '.join(STORES)}"
        if self.stores == "tma" and self.b.rows % BOX_COLUMNS:
            return f"stores: found tma for {self.b.rows} columns of C, allowed multiples of {BOX_COLUMNS}"
        return None
