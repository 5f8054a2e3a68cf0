"""Models the cycles of a kernel from its machine code: those of the busiest part of a multiprocessor.

Counted are the instructions that each partition issues, the multiplications and integer operations of its
pipes, accesses to shared memory and the L1 cache (one path), bytes from the L2 cache, and the critical path
of one warp: stall counts, and the latency of loads that the warp waits for. The model orders kernels before
any kernel was run, and is for nothing else: its cycles are never a time.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tuner.core.chips import WARP_THREADS
from tuner.cost_model.gpu import L2_BYTES_PER_CYCLE, LATENCY, WRITE_BYTES_PER_CYCLE
from tuner.cost_model.occupancy import PARTITIONS
from tuner.targets.gpu.machine_code.executions import SCALAR_PRODUCTS, main_loop, multiply_adds
from tuner.targets.gpu.machine_code.listing import Kernel, MachineInstruction

F32_PIPES = {75: 1, 80: 1}  # of a partition, 16 lanes each: white papers of TU102, GA100, GA102, AD102, H100
USUAL_F32_PIPES = 2
F32_CYCLES = 2.0  # of a warp on a pipe of 16 lanes
INTEGER_CYCLES = 2.0  # 16 lanes
WIDE_CYCLES = 4.0  # of a multiply of integers with a result of 64 bits
LAUNCH_CYCLES = 2000.0  # from a block's launch to its first product, and while the block ends

MEMORY = ("LDS", "LDSM", "STS", "STSM", "LDG", "LDGSTS", "LDL", "STL", "STG", "RED", "ATOM", "ATOMG")
F32 = ("FFMA", "FMUL", "FADD")
# These instructions occupy no pipe of a partition for longer than the cycle of their issue.
ONLY_ISSUED = (
    *("BRA", "EXIT", "NOP", "WARPSYNC", "BSSY", "BSYNC", "BAR", "LDGDEPBAR", "DEPBAR", "SYNCS", "WARPGROUP"),
    *("S2R", "S2UR", "R2UR", "MUFU", "I2F", "F2I", "SHFL", "LDC", "CS2R", "ELECT", "FENCE", "ERRBAR"),
)
# Latency of loads, in cycles; shared memory: about that of arXiv 1804.06826 and 1903.07486.
LATENCIES = {"LDG": LATENCY, "LDL": LATENCY, "LDS": 24.0, "LDSM": 24.0}
BARRIER_CYCLES = 40.0  # until all warps of a block go on


@dataclass(frozen=True)
class BlockWork:
    """The thread blocks of a kernel launch, for the cycle model: their number, warps and memory traffic."""

    blocks: int
    warps: int  # of a block that multiply
    resident: int  # blocks that a multiprocessor holds
    fetched_bytes: float  # of a block, from the L2 cache
    stored_bytes: float  # of a block

    def together(self, multiprocessors: int) -> int:
        """Returns how many blocks run at once on the multiprocessor that has most; at least 1.

        ``multiprocessors``: the number of multiprocessors of the GPU.
        """
        return max(min(self.resident, -(-self.blocks // multiprocessors)), 1)


@dataclass(frozen=True)
class Parts:
    """The predicted cycles for which each part of a multiprocessor, such as its memory, is busy.

    ``issue``: issuing instructions; ``products``, ``integers``: arithmetic pipes; ``memory``: shared memory
    and L1; ``second_level``: bytes from the L2; ``critical_path``: not a part, but one warp's instructions in
    sequence.
    """

    issue: float
    products: float
    integers: float
    memory: float
    second_level: float
    critical_path: float  # of one warp, whatever other warps do

    @property
    def busiest(self) -> float:
        """Returns the cycles of the busiest part, or of a warp's critical path if that is longer."""
        return max(
            self.issue, self.products, self.integers, self.memory, self.second_level, self.critical_path
        )


@dataclass(frozen=True)
class KernelCounts:
    """A kernel's instructions, how often a warp executes each, and the cycles of each memory access."""

    kernel: Kernel
    executed: tuple[float, ...]
    memory_cycles: Mapping[int, float]  # of an access, by its index in the code
    tensor_fma_per_cycle: float  # of a multiprocessor
    capability: int

    @property
    def multiply_adds(self) -> float:
        """Returns how many multiply-adds one lane executes in a kernel."""
        pairs = zip(self.kernel.code, self.executed, strict=True)
        return sum(count * multiply_adds(one) for one, count in pairs)

    def parts(self, work: BlockWork, blocks: int) -> Parts:
        """Returns the predicted busy cycles of each part of a multiprocessor with ``blocks`` blocks.

        ``work`` describes the blocks of the launch.
        """
        warps = work.warps * blocks
        busiest = math.ceil(warps / PARTITIONS)  # warps of a partition
        each = list(zip(self.kernel.code, self.executed, strict=True))
        memory = sum(cycles * self.executed[place] for place, cycles in self.memory_cycles.items())
        return Parts(
            issue=busiest * sum(self.executed),
            products=busiest * sum(count * self._product_cycles(one) for one, count in each),
            integers=busiest * sum(count * _integer_cycles(one) for one, count in each),
            memory=warps * memory,
            second_level=blocks * work.fetched_bytes / L2_BYTES_PER_CYCLE,
            critical_path=critical_path(self.kernel, self.executed),
        )

    def cycles(self, work: BlockWork, multiprocessors: int) -> float:
        """Returns the predicted cycles of a launch: full waves of blocks, and the last wave.

        ``work`` describes the blocks of the launch; ``multiprocessors`` is the GPU's number of
        multiprocessors.
        """
        together = work.together(multiprocessors)
        waves, rest = divmod(work.blocks, together * multiprocessors)
        ending = LAUNCH_CYCLES + together * work.stored_bytes / WRITE_BYTES_PER_CYCLE
        wave = self.parts(work, together).busiest
        last = 0.0
        if rest:
            count = -(-rest // multiprocessors)
            last = max(self.parts(work, 1).busiest, wave * count / together) + ending
        return waves * (wave + ending) + last

    def _product_cycles(self, instruction: MachineInstruction) -> float:
        """Returns the cycles for which a warp's instruction occupies the multiplying pipes; 0: none."""
        name = instruction.mnemonic
        pipes = F32_PIPES.get(self.capability, USUAL_F32_PIPES)
        if name in F32 or (name == "IMAD" and ".WIDE" not in instruction.name):
            return F32_CYCLES / pipes + (pipes > 1 and name == "FFMA" and _asks_one_bank(instruction))
        if name == "IMAD":
            return WIDE_CYCLES
        if name in SCALAR_PRODUCTS:
            return F32_CYCLES
        fma = multiply_adds(instruction)
        return fma * WARP_THREADS * PARTITIONS / self.tensor_fma_per_cycle if fma else 0.0


def _integer_cycles(instruction: MachineInstruction) -> float:
    name = instruction.mnemonic
    is_other = name in (*F32, *MEMORY, *ONLY_ISSUED, "IMAD") or name.startswith("U")
    return 0.0 if is_other or multiply_adds(instruction) else INTEGER_CYCLES


def _asks_one_bank(instruction: MachineInstruction) -> bool:
    """Returns whether three source registers are in one of the two register banks, none of them reused."""
    sources = instruction.sources
    parities = {number % 2 for number, _ in sources}
    return len(sources) == 3 and len(parities) == 1 and not any(reused for _, reused in sources)


def critical_path(kernel: Kernel, executed: Sequence[float]) -> float:
    """Returns the cycles that one warp takes alone: stall counts, and load latencies that nothing hides.

    Each barrier of a block (BAR) adds BARRIER_CYCLES (40). ``executed``: how often the warp executes each
    instruction of the kernel.
    """
    spent = dict(_spent(kernel))  # the second iteration of the main loop counts: prefetched loads are done
    return sum(executed[place] * cycles for place, cycles in spent.items())


def _spent(kernel: Kernel) -> Iterator[tuple[int, float]]:
    """Yields (index, cycles) of each instruction; instructions of the main loop twice."""
    now, ready = 0.0, dict.fromkeys(range(6), 0.0)
    start, end = main_loop(kernel) or (0, 0)
    for place in (*range(end), *range(start, len(kernel.code))):
        one = kernel.code[place]
        begins = max([now, *(ready[number] for number in one.waits)])
        ends = begins + max(one.stall_cycles, 1) + (BARRIER_CYCLES if one.mnemonic == "BAR" else 0.0)
        if one.sets is not None:
            ready[one.sets] = max(ready[one.sets], begins + LATENCIES.get(one.mnemonic, 0.0))
        yield place, ends - now
        now = ends
