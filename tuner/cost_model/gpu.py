"""What a tiled matmul costs a GPU, by counting: cycles of a model, never a time.

The busiest part of one multiprocessor (arithmetic, issue, the path to shared memory, bandwidth of the second
level of cache, latency hidden by what is in flight), waves of blocks over all of them, occupancy by the rules
of ``tuner.cost_model.occupancy``. The model ranks schedules of one strategy before any of them was run, and
is for nothing else.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.chips import USUAL_MULTIPROCESSORS, WARP_THREADS, Chip
from tuner.core.problem import Problem
from tuner.cost_model.occupancy import PARTITIONS, BlockNeeds, blocks_per_multiprocessor

Counts = npt.NDArray[np.float64]

# Multiply-adds per cycle and multiprocessor: CUDA programming guide, throughput of native arithmetic
# instructions; tensor cores by mma.sync: white papers of A100, GA102, AD102, H100.
F32_FMA = {75: 64.0, 80: 64.0}
USUAL_F32_FMA = 128.0
F64_FMA = {80: 32.0, 90: 64.0, 100: 64.0}
USUAL_F64_FMA = 2.0
TENSOR_FMA = {80: 1024.0, 90: 1024.0, 100: 1024.0}  # of 16-bit elements; half of that for tf32
USUAL_TENSOR_FMA = 256.0  # GeForce adds up in f32 at half of the rate
L2_BYTES_PER_CYCLE = 24.0  # to each multiprocessor while all read: 15 to 30 on A100, H100, AD102, GA102
WRITE_BYTES_PER_CYCLE = 32.0
LATENCY = 260.0  # cycles of a load from the second level of cache: about that of arXiv 2208.11174
OWN_ISSUE_CYCLES = 2.0  # from one instruction of a warp to its next
BARRIER = 50.0  # cycles until all warps of a block go on to the next tile
SHOWING = 0.1  # of what is hidden behind the busiest part, what is not hidden after all
LAUNCH = 5000.0  # cycles of one more kernel


@dataclass(frozen=True)
class GpuTiles:
    """Schedules, one per place; a block of threads makes block_m x block_n of C, or its part of K."""

    block_m: Counts
    block_n: Counts
    block_k: Counts
    threads: Counts
    registers: Counts  # of a thread
    shared_bytes: Counts  # of a block
    issued: Counts  # instructions of a warp for one step of K
    memory: Counts  # cycles that these keep the path to shared memory busy, see ``memory_path``
    waits: Counts  # cycles that a warp waits for shared memory in one step of K
    depth: Counts  # tiles that copies are ahead; 0: none
    splits: Counts  # parts of K


def cycles(tiles: GpuTiles, problem: Problem, chip: Chip, multiprocessors: int) -> Counts:
    """Returns the cycles of one call; infinite where not even one block can be launched."""
    m, n, _ = problem.sizes
    count = multiprocessors or USUAL_MULTIPROCESSORS.get(chip.name, 100)
    resident = _resident(tiles, chip)
    blocks = np.ceil(m / tiles.block_m) * np.ceil(n / tiles.block_n) * tiles.splits * problem.batch
    share = np.ceil(blocks / count)  # of the busiest multiprocessor
    together = np.minimum(np.maximum(resident, 1), share)
    waves = np.floor(share / together)
    rest = share - waves * together
    spent = waves * _wave(tiles, problem, chip, together)
    spent += np.where(rest > 0, _wave(tiles, problem, chip, np.maximum(rest, 1)), 0.0)
    return np.where(resident > 0, spent + _joining(tiles, problem, count), np.inf)


def fma_per_cycle(problem: Problem, chip: Chip) -> float:
    """Returns the multiply-adds per cycle of one multiprocessor."""
    match problem.dtype:
        case "f32":
            return F32_FMA.get(chip.capability, USUAL_F32_FMA)
        case "f64":
            return F64_FMA.get(chip.capability, USUAL_F64_FMA)
    return TENSOR_FMA.get(chip.capability, USUAL_TENSOR_FMA) * 2 / problem.input_bytes


def _wave(tiles: GpuTiles, problem: Problem, chip: Chip, together: Counts) -> Counts:
    """Counts the blocks that a multiprocessor has at once: what is busiest, or one block's way through K."""
    k = np.ceil(problem.sizes[2] / tiles.splits)
    warps = np.ceil(tiles.threads / WARP_THREADS)
    products = tiles.block_m * tiles.block_n / warps / (fma_per_cycle(problem, chip) / PARTITIONS)
    step = np.maximum(products, tiles.issued)  # of K, by one warp
    arithmetic = np.ceil(together * warps / PARTITIONS) * k * step
    loads = together * k * (tiles.block_m + tiles.block_n) * problem.input_bytes / L2_BYTES_PER_CYCLE
    reads = together * warps * k * tiles.memory
    own = tiles.block_k * (np.maximum(products, OWN_ISSUE_CYCLES * tiles.issued) + tiles.waits)
    turn = np.where(tiles.depth > 0, np.maximum(own, LATENCY / np.maximum(tiles.depth, 1)), own + LATENCY)
    path = np.ceil(k / tiles.block_k) * (turn + BARRIER)
    busiest = np.maximum.reduce([arithmetic, loads, reads, path])
    results = together * tiles.block_m * tiles.block_n * problem.output_bytes / WRITE_BYTES_PER_CYCLE
    wave: Counts = busiest + SHOWING * (loads + reads + path) + results + LATENCY
    return wave


def _joining(tiles: GpuTiles, problem: Problem, multiprocessors: int) -> Counts:
    """Counts adding up the parts of K: they are written, read again, and that is one more kernel."""
    n = problem.sizes[1]
    moved = (tiles.splits + 1) * problem.rows * n * 4 / WRITE_BYTES_PER_CYCLE / multiprocessors
    return np.where(tiles.splits > 1, moved + LAUNCH, 0.0)


def _resident(tiles: GpuTiles, chip: Chip) -> Counts:
    """Returns the blocks that fit one multiprocessor; each kind of block is looked at once."""
    kinds, which = np.unique(
        np.stack([tiles.threads, tiles.registers, tiles.shared_bytes]), axis=1, return_inverse=True
    )
    needs = (BlockNeeds(int(threads), int(registers), int(shared)) for threads, registers, shared in kinds.T)
    fits = np.array([blocks_per_multiprocessor(chip, each) for each in needs], np.float64)
    resident: Counts = fits[which.reshape(-1)]
    return resident
