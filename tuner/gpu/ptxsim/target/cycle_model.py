"""Models the cycles of a GPU program from its machine code: to order candidates, never as a time.

A launch takes as long as its bottleneck on a multiprocessor. Counted are the instructions that each partition
issues, the multiplications and integer operations of its pipes, accesses to shared memory and the L1 cache
(one path), bytes from the L2 cache, and the critical path of one warp: stall counts, and the latency of loads
that the warp waits for. How often an instruction is executed comes from the multiply-adds that the problem
needs: the main loop runs until a thread has done its share. Where a thread holds 64 sums (elements of C) or
more, the ports of the register banks are counted as well: there they explain what issue slots and shared
memory leave unexplained. Constants were fitted to recorded times: docs/decisions/other-machines.md.
"""

import math
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.core.compiled_code import BusyCycles, KernelCode, Launch, PredictedCycles
from tuner.core.errors import TunerError
from tuner.core.gpu import USUAL_MULTIPROCESSORS, WARP_THREADS, chip_of
from tuner.core.problem import Problem
from tuner.gpu.cost_model import gpu, shared_memory
from tuner.gpu.cost_model.occupancy import PARTITIONS
from tuner.gpu.cost_model.untimed import ring_bytes
from tuner.gpu.ptxsim.launch import program_accesses
from tuner.gpu.ptxsim.memory.access_log import Access
from tuner.gpu.target.sass import Kernel, MachineInstruction, listing_of, nvdisasm, read_kernels

WARPGROUP_LANES = 128
# Shapes of mma.sync in names: "HMMA.16816.F32" has 16 x 8 x 16; of wgmma: "HGMMA.64x256x16.F32".
WARP_SHAPE = re.compile(r"\.(16|8)(8|4)(64|32|16|8|4)(?:\.|$)")
GROUP_SHAPE = re.compile(r"\.(\d+)x(\d+)x(\d+)")
SCALAR_PRODUCTS = {"FFMA": 1, "DFMA": 1, "HFMA2": 2}
WARP_PRODUCTS = ("HMMA", "IMMA", "QMMA", "DMMA")
GROUP_PRODUCTS = ("HGMMA", "IGMMA", "QGMMA")
F32_PIPES = {75: 1, 80: 1}  # of a partition, 16 lanes each: white papers of TU102, GA100, GA102, AD102, H100
USUAL_F32_PIPES = 2
F32_CYCLES = 2.0  # of a warp on a pipe of 16 lanes
INTEGER_CYCLES = 2.0  # 16 lanes
WIDE_CYCLES = 4.0  # of a multiply of integers with a result of 64 bits
WAVE_CYCLES = 2000.0  # of each wave of blocks: until its first product, and while it ends
MEMORY = ("LDS", "LDSM", "STS", "STSM", "LDG", "LDGSTS", "LDL", "STL", "STG", "RED", "ATOM", "ATOMG")
F32 = ("FFMA", "FMUL", "FADD")
# These instructions occupy no pipe of a partition for longer than the cycle of their issue.
ONLY_ISSUED = (
    *("BRA", "EXIT", "NOP", "WARPSYNC", "BSSY", "BSYNC", "BAR", "LDGDEPBAR", "DEPBAR", "SYNCS", "WARPGROUP"),
    *("S2R", "S2UR", "R2UR", "MUFU", "I2F", "F2I", "SHFL", "LDC", "CS2R", "ELECT", "FENCE", "ERRBAR"),
)
# Latency of loads, in cycles; shared memory: about that of arXiv 1804.06826 and 1903.07486.
LATENCIES = {"LDG": gpu.LATENCY, "LDL": gpu.LATENCY, "LDS": 24.0, "LDSM": 24.0}
BARRIER_CYCLES = 40.0  # until all warps of a block go on
MANY_SUMS = 64  # of a thread; with fewer, other parts of a multiprocessor are the bottleneck
# 35 kernels on an H200 take just the cycles of the ports, but 1.3 times those of the other parts.
PORT_SLACK = 1.3
# FFMA of a warp over which reads even out: of 1, 2, 4, 8, 16 and 64 this explains 22 kernels on an H200 best.
EVEN_PRODUCTS = 2
# Mnemonic of machine code -> (PTX opcode that it is compiled from, kind of access)
ORIGINS = {
    "LDS": ("ld.shared", "load_shared"),
    "LDSM": ("ldmatrix", "load_shared"),
    "STS": ("st.shared", "store_shared"),
    "STSM": ("stmatrix", "store_shared"),
    "LDGSTS": ("cp.async.c", "store_shared"),
    "LDG": ("ld.global", "load_global"),
}
SPILLS = ("LDL", "STL")  # written through to the L2, with few hits in the L1
MATRIX_WORDS = 4  # of the row at each address that ldmatrix and stmatrix take
WGMMA_RATE = 2.0  # times the rate of mma.sync on sm_90; H100 white paper
TILE_COPY = "UTMALDG"  # of the TMA; next to wgmma one warpgroup of a block only copies


def multiply_adds(instruction: MachineInstruction) -> int:
    """Returns the multiply-adds per lane of an FFMA, DFMA, HFMA2 or matrix instruction; 0 for others."""
    name = instruction.mnemonic
    if name in SCALAR_PRODUCTS:
        return SCALAR_PRODUCTS[name]
    shape = None
    lanes = WARP_THREADS
    if name in WARP_PRODUCTS:
        shape = WARP_SHAPE.search(instruction.name)
    elif name in GROUP_PRODUCTS:
        shape = GROUP_SHAPE.search(instruction.name)
        lanes = WARPGROUP_LANES
    if shape:
        return int(shape[1]) * int(shape[2]) * int(shape[3]) // lanes
    return 0


def executions(kernel: Kernel, owed: float, outer_iterations: float = 1.0) -> tuple[float, ...]:
    """Returns how often a warp executes each instruction of a kernel.

    Instructions outside of loops and in other loops count once, those in the loop around the main loop
    ``outer_iterations`` times. The main loop runs until a lane has done ``owed`` multiply-adds.
    """
    products = list(map(multiply_adds, kernel.code))
    counts = [1.0] * len(products)
    inner = main_loop(kernel)
    if inner is None:
        return tuple(counts)
    around = [loop for loop in kernel.loops() if loop != inner and _holds(loop, inner)]
    outer = min(around, key=lambda loop: loop[1] - loop[0], default=None)
    if outer is not None:
        counts[slice(*outer)] = [outer_iterations] * (outer[1] - outer[0])
    entered = counts[inner[0]]
    counts[slice(*inner)] = [0.0] * (inner[1] - inner[0])
    missing = owed - sum(count * product for count, product in zip(counts, products, strict=True))
    iterations = max(missing / sum(products[slice(*inner)]), entered)
    counts[slice(*inner)] = [iterations] * (inner[1] - inner[0])
    return tuple(counts)


def main_loop(kernel: Kernel) -> tuple[int, int] | None:
    """Returns the innermost loop with most multiply-adds, as (first index, index after the last) in the code.

    None if no loop multiplies.
    """
    products = list(map(multiply_adds, kernel.code))
    loops = [loop for loop in kernel.loops() if any(products[slice(*loop)])]

    def is_innermost(loop: tuple[int, int]) -> bool:
        return not any(other != loop and _holds(loop, other) for other in loops)

    innermost = filter(is_innermost, loops)
    return max(innermost, key=lambda loop: sum(products[slice(*loop)]), default=None)


def _holds(loop: tuple[int, int], other: tuple[int, int]) -> bool:
    return loop[0] <= other[0] and other[1] <= loop[1]


@dataclass(frozen=True)
class BlockWork:
    """The thread blocks of a kernel launch, for the cycle model: number, warps and memory traffic."""

    blocks: int
    warps: int  # of a block that multiply
    resident: int  # blocks that a multiprocessor holds
    fetched_bytes: float  # of a block, from the L2 cache
    stored_bytes: float  # of a block

    def together(self, multiprocessors: int) -> int:
        """Returns how many blocks run at once on the busiest multiprocessor; at least 1."""
        return max(min(self.resident, -(-self.blocks // multiprocessors)), 1)


@dataclass(frozen=True)
class KernelCounts:
    """A kernel's instructions, how often a warp executes each, and the cycles of each memory access."""

    kernel: Kernel
    executed: tuple[float, ...]
    memory_cycles: Mapping[int, float]  # of an access, by its index in the code
    tensor_fma_per_cycle: float  # of a multiprocessor
    capability: int
    sums: float  # that a thread holds at once

    @property
    def multiply_adds(self) -> float:
        """Returns the multiply-adds that one lane executes in the kernel."""
        pairs = zip(self.kernel.code, self.executed, strict=True)
        return sum(count * multiply_adds(instruction) for instruction, count in pairs)

    def parts(self, work: BlockWork, blocks: int) -> BusyCycles:
        """Returns the predicted busy cycles of each part of a multiprocessor that runs ``blocks`` blocks."""
        warps = work.warps * blocks
        partition_warps = math.ceil(warps / PARTITIONS)  # of the partition with most
        pairs = list(zip(self.kernel.code, self.executed, strict=True))
        memory = sum(cycles * self.executed[index] for index, cycles in self.memory_cycles.items())
        return BusyCycles(
            issue=partition_warps * sum(self.executed),
            products=partition_warps * sum(count * self._product_cycles(op) for op, count in pairs),
            ports=self._port_cycles(partition_warps),
            integers=partition_warps * sum(count * _integer_cycles(op) for op, count in pairs),
            memory=warps * memory,
            second_level=blocks * work.fetched_bytes / gpu.L2_BYTES_PER_CYCLE,
            critical_path=critical_path(self.kernel, self.executed),
        )

    def cycles(self, work: BlockWork, multiprocessors: int) -> float:
        """Returns the predicted cycles of a launch: full waves of blocks, then the last wave."""
        together = work.together(multiprocessors)
        waves, rest = divmod(work.blocks, together * multiprocessors)
        ending = WAVE_CYCLES + together * work.stored_bytes / gpu.WRITE_BYTES_PER_CYCLE
        wave = self.parts(work, together).bottleneck
        last = 0.0
        if rest:
            count = -(-rest // multiprocessors)
            # the last wave takes its share of a full one, but no less than one block alone
            last = max(self.parts(work, 1).bottleneck, wave * count / together) + ending
        return waves * (wave + ending) + last

    def _port_cycles(self, partition_warps: int) -> float:
        """Returns the cycles that issue takes where each FFMA waits for its operands.

        0 if a thread holds fewer than MANY_SUMS sums, or the main loop has no FFMA.
        """
        reads = register_reads(self.kernel)
        if self.sums < MANY_SUMS or reads is None:
            return 0.0
        pairs = zip(self.kernel.code, self.executed, strict=True)
        products = sum(count for instruction, count in pairs if instruction.mnemonic == "FFMA")
        others = sum(self.executed) - products
        return partition_warps * (others + products * reads.cycles) / PORT_SLACK

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
        if fma:
            return fma * WARP_THREADS * PARTITIONS / self.tensor_fma_per_cycle
        return 0.0


@dataclass(frozen=True)
class RegisterReads:
    """Cycles in which a main loop's FFMA read registers, from two banks that serve one register per cycle.

    Registers of even and of odd number are in different banks; a read that the operand cache serves
    (``.reuse``) does not count. Banks: arXiv 2503.20481.
    """

    alone: float  # cycles of an FFMA: reads of the bank that it asks for most, on average
    cycles: float  # the same where the reads of two successive FFMA even out: what they take
    in_one_bank: float  # share of the FFMA that read three registers of one bank


def register_reads(kernel: Kernel) -> RegisterReads | None:
    """Returns the register reads of the FFMA in a kernel's main loop; None if there are no FFMA."""
    code = kernel.code[slice(*(main_loop(kernel) or (0, 0)))]
    products = [index for index, instruction in enumerate(code) if instruction.mnemonic == "FFMA"]
    if not products:
        return None
    before = (None, *code)
    banks = [bank_reads(code[index], before[index]) for index in products]
    return RegisterReads(
        alone=_cycles_per_product(banks, 1),
        cycles=_cycles_per_product(banks, EVEN_PRODUCTS),
        in_one_bank=sum(max(reads) == 3 for reads in banks) / len(banks),
    )


def _cycles_per_product(banks: Sequence[tuple[int, int]], count: int) -> float:
    """Returns the mean cycles of an FFMA, at least 1, where runs of ``count`` FFMA share register reads.

    A run takes as many cycles as it has FFMA, or as it reads even or odd registers, if these are more.
    ``banks``: per FFMA, in order, its reads of (even, odd) registers.
    """
    cycles = 0
    for start in range(0, len(banks), count):
        group = banks[start : start + count]
        cycles += max(sum(reads[0] for reads in group), sum(reads[1] for reads in group), len(group))
    return cycles / len(banks)


def bank_reads(instruction: MachineInstruction, before: MachineInstruction | None) -> tuple[int, int]:
    """Returns an FFMA's reads of (even, odd) registers, without those that the operand cache serves.

    ``before``: the previous instruction, whose operands with ``.reuse`` are in the cache.
    """
    kept: tuple[tuple[int, bool] | None, ...] = ()
    if before is not None and before.mnemonic == "FFMA":
        kept = before.slots
    cached = {(slot, source[0]) for slot, source in enumerate(kept) if source is not None and source[1]}
    read = [
        source[0]
        for slot, source in enumerate(instruction.slots)
        if source is not None and (slot, source[0]) not in cached
    ]
    odd = sum(number % 2 for number in read)
    return len(read) - odd, odd


def _integer_cycles(instruction: MachineInstruction) -> float:
    name = instruction.mnemonic
    is_other = name in (*F32, *MEMORY, *ONLY_ISSUED, "IMAD") or name.startswith("U")
    if is_other or multiply_adds(instruction):
        return 0.0
    return INTEGER_CYCLES


def _asks_one_bank(instruction: MachineInstruction) -> bool:
    """Returns whether an instruction reads three registers of one bank, none from the operand cache."""
    sources = instruction.sources
    parities = {number % 2 for number, _ in sources}
    return len(sources) == 3 and len(parities) == 1 and not any(reused for _, reused in sources)


def critical_path(kernel: Kernel, executed: Sequence[float]) -> float:
    """Returns the cycles of one warp alone: stall counts, exposed latencies of loads, and barriers.

    ``executed``: how often each instruction runs.
    """
    now = 0.0
    ready = dict.fromkeys(range(6), 0.0)
    start, end = main_loop(kernel) or (0, 0)
    spent: dict[int, float] = {}  # by index of the instruction
    # the second iteration of the main loop counts: prefetched loads are done
    for index in (*range(end), *range(start, len(kernel.code))):
        instruction = kernel.code[index]
        mnemonic = instruction.mnemonic
        begins = max([now, *(ready[number] for number in instruction.waits)])
        ends = begins + max(instruction.stall_cycles, 1) + (BARRIER_CYCLES if mnemonic == "BAR" else 0.0)
        if instruction.sets is not None:
            ready[instruction.sets] = max(ready[instruction.sets], begins + LATENCIES.get(mnemonic, 0.0))
        spent[index] = ends - now
        now = ends
    return sum(executed[index] * cycles for index, cycles in spent.items())


def memory_cycles(kernel: Kernel, accesses: Iterable[Access], capability: int) -> dict[int, float]:
    """Returns {index in the code: a warp's predicted cycles} for each memory instruction of a kernel.

    Predictions are means over simulated ``accesses`` of the same operation and, if there are any, of the same
    width; else estimates.
    """
    seen: dict[tuple[str, int], list[float]] = {}  # by mnemonic and width in words; width 0 stands for any
    for access in accesses:
        for mnemonic, (opcode, category) in ORIGINS.items():
            if access.opcode.startswith(opcode):
                cost = shared_memory.access_cycles(category, np.array(access.words), access.width, capability)
                for width in (access.width, 0):
                    seen.setdefault((mnemonic, width), []).append(cost)
    means = {key: float(np.mean(costs)) for key, costs in seen.items()}
    every = enumerate(_cycles(instruction, means, capability) for instruction in kernel.code)
    return {index: cycles for index, cycles in every if cycles}


def _cycles(instruction: MachineInstruction, costs: dict[tuple[str, int], float], capability: int) -> float:
    name = instruction.mnemonic
    width = instruction.words
    if name in SPILLS:
        return shared_memory.WARP_BYTES * width / gpu.L2_BYTES_PER_CYCLE
    if name in ("LDSM", "STSM"):
        width = MATRIX_WORDS
    if name in ORIGINS:
        known = costs.get((name, width), costs.get((name, 0)))
        if known is not None:
            return known
        return shared_memory.stream_cycles(ORIGINS[name][1], width, capability)
    if name in ("STG", "RED", "ATOM", "ATOMG"):
        return float(width)
    return 0.0


def predicted(problem: Problem, program: KernelCode) -> PredictedCycles | None:
    """Returns the predicted cycles of a program; None without nvdisasm or a cubin.

    None also if its machine code cannot be read or its PTX cannot be simulated.
    """
    tool = nvdisasm()
    if tool is None or not program.binary:
        return None
    try:
        return _predicted(problem, program, read_kernels(listing_of(program.binary, tool.path)))
    except (TunerError, subprocess.SubprocessError):
        return None


def _predicted(problem: Problem, program: KernelCode, kernels: Iterable[Kernel]) -> PredictedCycles:
    chip = chip_of(program.chip)
    multiprocessors = USUAL_MULTIPROCESSORS.get(program.chip, 1)
    kernel_of = {kernel.name: kernel for kernel in kernels}
    cycles = gpu.LAUNCH * (len(program.launches) - 1)
    most = 0.0
    parts = None
    in_flight_bytes = 0
    for launch, accesses in zip(program.launches, program_accesses(program), strict=True):
        kernel = kernel_of[launch.kernel]
        work = _work(problem, program, launch, kernel)
        # multiply-adds that each thread must execute
        owed = problem.flop / 2 / (work.blocks * work.warps * WARP_THREADS)
        owed *= _padding(problem, launch, kernel, work)
        mnemonics = {instruction.mnemonic for instruction in kernel.code}
        counts = KernelCounts(
            kernel,
            executions(kernel, owed, float(launch.tiles_of((0, 0, 0)))),
            memory_cycles(kernel, accesses, chip.capability),
            gpu.fma_per_cycle(problem, chip) * (WGMMA_RATE if mnemonics & set(GROUP_PRODUCTS) else 1.0),
            chip.capability,
            _sums(problem, launch, work),
        )
        cycles += counts.cycles(work, multiprocessors)
        if counts.multiply_adds > most:
            most = counts.multiply_adds
            together = work.together(multiprocessors)
            parts = counts.parts(work, together)
            in_flight_bytes = together * ring_bytes(program.text, launch.kernel)
    return PredictedCycles(cycles, parts, in_flight_bytes)


def _padding(problem: Problem, launch: Launch, kernel: Kernel, work: BlockWork) -> float:
    """Returns the elements of C that all blocks compute, over those that C has; 1 for kernels without wgmma.

    A block of 8 rows for a C of one row multiplies zeros. The elements are counted by the registers that
    products of the main loop are added to.
    """
    loop = main_loop(kernel)
    if loop is None:
        return 1.0
    sums: dict[str, int] = {}  # first register -> sums of a lane
    for instruction in kernel.code[slice(*loop)]:
        if instruction.mnemonic in GROUP_PRODUCTS:
            register = instruction.text.split()[1].rstrip(",")
            shape = GROUP_SHAPE.search(instruction.name)
            assert shape is not None, "wgmma has its shape in its name"
            sums[register] = int(shape[1]) * int(shape[2]) // WARPGROUP_LANES
    splits = launch.grid[2] // problem.batch
    lanes = work.blocks * work.warps * WARP_THREADS * launch.tiles_of((0, 0, 0))
    computed = sum(sums.values()) * lanes / max(splits, 1)
    return max(computed / (problem.rows * problem.sizes[1]), 1.0)


def _sums(problem: Problem, launch: Launch, work: BlockWork) -> float:
    """Returns the elements of C for which a multiplying thread holds sums at once."""
    tiles = work.blocks
    if launch.tile_grid is not None:  # of a batch each matrix has them
        tiles = min(math.prod(launch.tile_grid) * problem.batch, work.blocks)
    threads = tiles * work.warps * WARP_THREADS
    return problem.rows * problem.sizes[1] / threads / launch.tiles_of((0, 0, 0))


def _work(problem: Problem, program: KernelCode, launch: Launch, kernel: Kernel) -> BlockWork:
    _, n, k = problem.sizes
    elements = problem.rows * n
    blocks = math.prod(launch.grid)
    tiles = launch.tiles_of((0, 0, 0))
    mnemonics = {instruction.mnemonic for instruction in kernel.code}
    copies_only = 0
    if TILE_COPY in mnemonics and mnemonics & set(GROUP_PRODUCTS):
        copies_only = WARPGROUP_LANES
    resident = [
        resource.blocks_per_multiprocessor
        for resource in program.resources
        if resource.kernel == launch.kernel
    ]
    return BlockWork(
        blocks=blocks,
        warps=-(-(math.prod(launch.block) - copies_only) // WARP_THREADS),
        resident=max([1, *resident]),
        # as if its tiles of C were square, which reads least
        fetched_bytes=2 * math.sqrt(tiles * elements / blocks) * k * problem.input_bytes,
        stored_bytes=elements / blocks * problem.output_bytes,
    )
