"""Analytical cost model of a tiled matmul on a GPU, in model cycles, never in seconds.

The cost is that of the most loaded resource of one multiprocessor (arithmetic, issue slots, the path to
shared memory, L2 bandwidth, latency that is not hidden), times the waves of thread blocks over all
multiprocessors. Occupancy is by the rules of ``tuner.search.cost_model.occupancy``. The model only ranks
schedules of one strategy before any of these schedules was measured.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.gpu import USUAL_MULTIPROCESSORS, WARP_THREADS, Chip
from tuner.core.problem import Problem
from tuner.search.cost_model.occupancy import PARTITIONS, BlockNeeds, blocks_per_multiprocessor

Counts = npt.NDArray[np.float64]
# Multiply-adds per cycle and multiprocessor: CUDA programming guide, throughput of native arithmetic
# instructions; tensor cores by mma.sync: white papers of A100, GA102, AD102, H100.
F32_FMA = {75: 64.0, 80: 64.0}
USUAL_F32_FMA = 128.0
F64_FMA = {80: 32.0, 90: 64.0, 100: 64.0}
USUAL_F64_FMA = 2.0
TENSOR_FMA = {80: 1024.0, 90: 1024.0, 100: 1024.0}  # of 16-bit elements; half of that for tf32
USUAL_TENSOR_FMA = 256.0  # GeForce accumulates in f32 at half of the rate
L2_BYTES_PER_CYCLE = 24.0  # per multiprocessor while all of them read: 15 to 30 on A100, H100, AD102, GA102
WRITE_BYTES_PER_CYCLE = 32.0
LATENCY = 260.0  # cycles of a load from L2: about the value of arXiv 2208.11174
SAME_WARP_ISSUE_CYCLES = 2.0  # cycles from one instruction of a warp to the next of the same warp
BARRIER = 50.0  # cycles of the barrier before all warps of a block start the next tile
UNHIDDEN = 0.1  # share of the other resources' cycles that the most loaded resource does not hide
LAUNCH = 5000.0  # cycles of an additional kernel launch


@dataclass(frozen=True)
class GpuTiles:
    """Tile sizes and resource needs of many GPU matmul schedules: arrays with one entry per schedule."""

    block_m: Counts
    block_n: Counts
    block_k: Counts
    threads: Counts
    registers: Counts  # of a thread
    shared_bytes: Counts  # of a block
    issued: Counts  # instructions of a warp per step of K
    memory: Counts  # cycles of the path to shared memory per warp and step of K (``access_cycles``)
    waits: Counts  # cycles that a warp waits for shared memory per step of K
    depth: Counts  # pipeline depth: tiles that copies run ahead; 0: no prefetch
    splits: Counts  # parts that K is split into
    more_launches: Counts  # kernels after that of the product


def cycles(tiles: GpuTiles, problem: Problem, chip: Chip, multiprocessors: int) -> Counts:
    """Returns the estimated cycles of one matmul call, per schedule of ``tiles``; inf where no block fits."""
    _, n, _ = problem.sizes
    matrices = problem.b_matrices
    rows = problem.rows / matrices  # that a matrix of B multiplies; as if all groups of rows had as many
    count = multiprocessors or USUAL_MULTIPROCESSORS.get(chip.name, 100)
    resident = by_kind(
        (tiles.threads, tiles.registers, tiles.shared_bytes),
        lambda *needs: blocks_per_multiprocessor(chip, BlockNeeds(*needs)),
    )
    blocks = np.ceil(rows / tiles.block_m) * np.ceil(n / tiles.block_n) * tiles.splits * matrices
    share = np.ceil(blocks / count)  # of the busiest multiprocessor
    together = np.minimum(np.maximum(resident, 1), share)
    waves = np.floor(share / together)
    rest = share - waves * together
    spent = waves * _wave(tiles, problem, chip, together)
    spent += np.where(rest > 0, _wave(tiles, problem, chip, np.maximum(rest, 1)), 0.0)
    # of split K: writes and reads of partial sums
    moved = (tiles.splits + 1) * problem.rows * n * 4 / WRITE_BYTES_PER_CYCLE / count
    joining = np.where(tiles.splits > 1, moved, 0.0) + tiles.more_launches * LAUNCH
    return np.where(resident > 0, spent + joining, np.inf)


def fma_per_cycle(problem: Problem, chip: Chip) -> float:
    """Returns a multiprocessor's peak multiply-adds per cycle: CUDA cores for f32, f64, else tensor cores."""
    match problem.dtype:
        case "f32":
            return F32_FMA.get(chip.capability, USUAL_F32_FMA)
        case "f64":
            return F64_FMA.get(chip.capability, USUAL_F64_FMA)
    return TENSOR_FMA.get(chip.capability, USUAL_TENSOR_FMA) * 2 / problem.input_bytes


def _wave(tiles: GpuTiles, problem: Problem, chip: Chip, together: Counts) -> Counts:
    """Returns the cycles of one wave: ``together`` thread blocks resident on one multiprocessor."""
    k = np.ceil(problem.sizes[2] / tiles.splits)
    warps = np.ceil(tiles.threads / WARP_THREADS)
    products = tiles.block_m * tiles.block_n / warps / (fma_per_cycle(problem, chip) / PARTITIONS)
    step = np.maximum(products, tiles.issued)  # of K, by one warp
    arithmetic = np.ceil(together * warps / PARTITIONS) * k * step
    loads = together * k * (tiles.block_m + tiles.block_n) * problem.input_bytes / L2_BYTES_PER_CYCLE
    reads = together * warps * k * tiles.memory
    # the longest chain: one warp's tiles of K after each other, each of block_k steps
    own = tiles.block_k * (np.maximum(products, SAME_WARP_ISSUE_CYCLES * tiles.issued) + tiles.waits)
    tile = np.where(tiles.depth > 0, np.maximum(own, LATENCY / np.maximum(tiles.depth, 1)), own + LATENCY)
    path = np.ceil(k / tiles.block_k) * (tile + BARRIER)
    busiest = np.maximum.reduce([arithmetic, loads, reads, path])
    results = together * tiles.block_m * tiles.block_n * problem.output_bytes / WRITE_BYTES_PER_CYCLE
    wave: Counts = busiest + UNHIDDEN * (loads + reads + path) + results + LATENCY
    return wave


def by_kind(columns: Iterable[Counts], cycles: Callable[..., float]) -> Counts:
    """Returns ``cycles(*values)`` per configuration, with its values in ``columns``, as integers.

    ``cycles`` is called once for each distinct combination of values.
    """
    combinations, which = np.unique(np.stack(list(columns)), axis=1, return_inverse=True)
    counted = np.array([cycles(*map(int, combination)) for combination in combinations.T], np.float64)
    result: Counts = counted[which.reshape(-1)]
    return result
