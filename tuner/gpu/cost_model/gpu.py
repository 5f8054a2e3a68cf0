"""Analytical cost model of a tiled matmul on an NVIDIA GPU, in model cycles, never in seconds.

The cost is that of the most loaded resource of one multiprocessor (arithmetic, issue slots, the path to
shared memory, L2 bandwidth, latency that is not hidden), times the waves of thread blocks over all
multiprocessors. Occupancy is by the rules of ``tuner.gpu.cost_model.occupancy``. The model only ranks
schedules of one strategy before any of these schedules was measured.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from tuner.core.compiled_code import Resources
from tuner.core.gpu import USUAL_MULTIPROCESSORS, WARP_THREADS, Chip, chip_of
from tuner.core.problem import Problem
from tuner.gpu.cost_model.occupancy import PARTITIONS, BlockNeeds, blocks_per_multiprocessor
from tuner.gpu.cost_model.shared_memory import WARP_BYTES, access_cycles, stream_cycles
from tuner.search.cost_model.configurations import AbstractModel, KnobColumns
from tuner.space.enumeration import Indices

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
# Registers in addition to the accumulators, as ptxas reports for tuner's kernels:
# benchmarks/results/sass_sm_90.json
TENSOR_REGISTERS = 36  # without the two sets of fragments
COPY_BYTES = 16  # per lane and cp.async
PRODUCT = (16, 8, 32)  # of one mma.sync: rows of C, columns of C, bytes along K
MATRICES_BYTES = 512  # read by one ldmatrix.x4
READ_WAIT = 33.0  # latency of ldmatrix in cycles: arXiv 2206.02874; of ld.shared: 24
LOAD_WAIT = 24.0
CUDA_CORE_REGISTERS = {4: 64, 8: 100}  # bytes of an element of C -> registers


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
    """Returns ``cycles(*values)`` per configuration; ``values``: the configuration's entry in each column.

    ``columns``: arrays of whole numbers. ``cycles`` is called once for each distinct combination of values.
    """
    combinations, which = np.unique(np.stack(list(columns)), axis=1, return_inverse=True)
    counted = np.array([cycles(*map(int, combination)) for combination in combinations.T], np.float64)
    result: Counts = counted[which.reshape(-1)]
    return result


class TensorCoreModel(AbstractModel):
    """The cost model of GPU strategies in which warps multiply tiles in shared memory on tensor cores."""

    shape = ("block_m", "block_n")

    def costs(self, index: Indices, known: Mapping[int, Resources]) -> Counts:
        columns = KnobColumns(self.space, index)
        block_m = columns.numbers("block_m")
        block_n = columns.numbers("block_n")
        warps_m = columns.numbers("warps_m")
        warps_n = columns.numbers("warps_n")
        warps = warps_m * warps_n
        rows = block_m / warps_m
        columns_of_warp = block_n / warps_n
        sums = rows * columns_of_warp / WARP_THREADS
        registers = sums + TENSOR_REGISTERS + (rows + columns_of_warp) / 2
        input_bytes = self.problem.input_bytes
        capability = chip_of(self.machine.chip).capability
        step = PRODUCT[2] / input_bytes  # of K
        products = rows / PRODUCT[0] * columns_of_warp / PRODUCT[1] / step
        reads = (rows + columns_of_warp) * input_bytes / MATRICES_BYTES
        copies = (block_m + block_n) * input_bytes / (COPY_BYTES * WARP_THREADS) / warps
        # rows are swizzled or padded: no bank conflicts
        memory = reads * MATRICES_BYTES / WARP_BYTES
        memory = memory + copies * stream_cycles("store_shared", COPY_BYTES // 4, capability)
        waits = np.where(columns.numbers("prefetch") > 0, 0.0, READ_WAIT / step)
        path = SharedPath(products + reads + copies, memory, waits)
        return _gpu_costs(self, columns, warps * WARP_THREADS, registers, path, known)


class CudaCoreModel(AbstractModel):
    """The cost model of GPU strategies in which threads multiply tiles in shared memory by FMA."""

    shape = ("block_m", "block_n")

    def costs(self, index: Indices, known: Mapping[int, Resources]) -> Counts:
        columns = KnobColumns(self.space, index)
        output_bytes = self.problem.output_bytes
        rows = columns.numbers("split_m") * columns.numbers("thread_m")
        across = columns.numbers("split_n") * columns.numbers("thread_n")
        wide = columns.numbers("block_n") / across  # threads along n
        threads = columns.numbers("block_m") / rows * wide
        registers = rows * across * output_bytes / 4 + CUDA_CORE_REGISTERS[output_bytes]
        return _gpu_costs(self, columns, threads, registers, self._path(columns, wide, threads), known)

    def _path(self, columns: KnobColumns, wide: Counts, threads: Counts) -> "SharedPath":
        capability = chip_of(self.machine.chip).capability
        words = max(1.0, self.problem.input_bytes / 4)  # of an element; narrower elements count as one word
        unroll = columns.numbers("unroll_k", 1.0)
        block_k = columns.numbers("block_k")
        pad = columns.numbers("pad_bytes") / 4
        issued = columns.numbers("split_m") * columns.numbers("thread_m")
        issued = issued * columns.numbers("split_n") * columns.numbers("thread_n")
        memory = np.zeros(len(issued))
        # is_row: what a thread reads depends on its row among the block's threads, not on its column;
        # is_along: elements next to each other in shared memory are neighbours along the axis, not along K
        for axis, is_row, is_along in (
            ("m", True, self.problem.layout == "tn"),
            ("n", False, self.problem.layout != "nt"),
        ):
            parts = columns.numbers(f"split_{axis}")
            own = columns.numbers(f"thread_{axis}")
            vector = np.minimum(own if is_along else unroll, 4 / words)  # elements of one read
            stride = np.full(len(own), words) if is_along else block_k * words + pad
            read_cycles = by_kind(
                (wide, own * stride, vector * words),
                partial(_read_cycles, is_row=is_row, capability=capability),
            )
            reads = parts * own / vector  # for one step of K
            copied = columns.numbers(f"vector_{'a' if axis == 'm' else 'b'}", 4 / words)
            copies = columns.numbers(f"block_{axis}") / copied / threads
            copy_cycles = by_kind(
                (copied * words,), lambda width: stream_cycles("store_shared", width, capability)
            )
            issued = issued + reads + copies
            memory = memory + reads * read_cycles + copies * copy_cycles
        return SharedPath(issued, memory, LOAD_WAIT / unroll)


def _read_cycles(wide: int, stride: int, width: int, *, is_row: bool, capability: int) -> float:
    lanes = np.arange(WARP_THREADS)
    threads = lanes // max(wide, 1) if is_row else lanes % max(wide, 1)
    return access_cycles("load_shared", threads * stride, width, capability)


@dataclass(frozen=True)
class SharedPath:
    """The costs of a warp per index of K: arrays with one entry per configuration.

    Instructions issued, cycles of the path to shared memory, and cycles of waiting for shared memory.
    """

    issued: Counts
    memory: Counts
    waits: Counts


def _gpu_costs(
    model: AbstractModel,
    columns: KnobColumns,
    threads: Counts,
    registers: Counts,
    path: SharedPath,
    known: Mapping[int, Resources],
) -> Counts:
    problem = model.problem
    block_m, block_n, block_k = map(columns.numbers, ("block_m", "block_n", "block_k"))
    depth = columns.numbers("depth")
    shared = (
        (depth + 1) * (block_m + block_n) * (block_k * problem.input_bytes + columns.numbers("pad_bytes"))
    )
    for row, report in known.items():
        registers[row] = report.registers
        shared[row] = report.static_shared_bytes + report.dynamic_shared_bytes
    splits = columns.numbers("splits", 1.0)
    adds_by_kernel = (splits > 1) & ~columns.equal("split_by", "last_block")
    tiles = GpuTiles(
        block_m=block_m,
        block_n=block_n,
        block_k=block_k,
        threads=threads,
        registers=np.ceil(registers),
        shared_bytes=shared,
        issued=path.issued,
        memory=path.memory,
        waits=path.waits,
        depth=depth,
        splits=splits,
        more_launches=adds_by_kernel.astype(np.float64),
    )
    return cycles(tiles, problem, chip_of(model.machine.chip), model.machine.physical_cores)
