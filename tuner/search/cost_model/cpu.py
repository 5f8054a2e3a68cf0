"""Analytical cost model of a blocked matmul on one processor core, and of its register tile.

It is in model cycles, never in seconds, and only ranks schedules of one strategy before any was measured.
Loops, outermost first: blocks of n, of k, of m, then register tiles (see strategies/_matmul_cpu.mlir.j2).
Arithmetic overlaps with most of the cache traffic; packing is added on top.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.machine import Machine
from tuner.core.problem import Problem

Counts = npt.NDArray[np.float64]

# Of one core. One value serves Intel's and AMD's cores since 2017: the differences do not change a ranking.
# https://www.agner.org/optimize/microarchitecture.pdf, https://uops.info
FMA_PER_CYCLE = 2.0
LOADS_PER_CYCLE = 2.0
VECTORS_PER_CYCLE = 3.0  # FMAs and shuffles together; 2 on Intel's cores with 512-bit vectors
# Latency of a dependent FMA: 4 cycles by the manuals. Calibrated: eight accumulators, which would suffice for
# two FMA units, take 1.12 to 1.18 times as long as twelve.
FMA_LATENCY = 4.5
WINDOW = 320  # entries of the reorder buffer: Skylake 224, Zen 4 320, Zen 5 448, Golden Cove 512
STORES_PER_CYCLE = 1.0  # of whole vectors
STORED_SUM_LATENCY = 17.0  # of an accumulator that is spilled: stored and loaded in each step; calibrated
LOADS_UNHIDDEN = 0.1  # share of the loads that FMAs do not hide; calibrated
PAIR_SHUFFLES = 1.5  # per row and step, where LLVM loads two elements of A at once and separates them
WHOLE_ROWS = (1, 2, 4)  # vectors per row of B for which LLVM keeps the whole row in registers
L2_BYTES_PER_CYCLE = 64.0  # Intel's since 2015, AMD's Zen 5; Zen 2 to 4: 32
L3_BYTES_PER_CYCLE = 20.0  # Intel's servers about 10, AMD's since Zen 2 up to 32
LINE_BYTES = 64  # a vector that is not aligned to a cache line lies in two lines
L1_WAY_BYTES = 4096  # likewise, of Intel's and AMD's cores
L2_WAY_BYTES = 64 * 1024  # addresses this far apart map to one set; Zen 4 and Golden Cove: 128 KiB
HALF = 0.5  # share of a cache for the data that is reused; the other half is for streamed data
UNHIDDEN = 0.1  # share of the traffic that arithmetic does not hide
COPY_BYTES_PER_CYCLE = 32.0  # bytes read and written, both in L2; calibrated
TILE_CYCLES = 10.0  # to fill and drain the pipelines of a register tile
# Lost at each row of a B that is read in place from L3: the hardware prefetcher does not follow from one row
# to the next; a prefetch of the next panel avoids the loss. Calibrated on two Xeons, 74 shapes:
# benchmarks/results/many_shapes.json. Checked on a Zen 4: many_shapes_zen4.json.
JUMP_CYCLES = 25.0
STREAMS = 32  # rows of B that the hardware prefetcher follows at once, from panel to panel
# adjacent elements of A that LLVM loads at once and separates by shuffles
PAIR = 2
PAIRED_BYTES = 4
# where the machine reports no cache size
USUAL_L1_BYTES = 32 * 1024
USUAL_L2_BYTES = 1024 * 1024


def step_cycles(
    rows: Counts,
    vectors: Counts,
    lines: Counts,  # cache lines per vector of B: 1 where aligned, else 2; 1 more with prefetching
    steps: Counts,
    is_paired: npt.NDArray[np.bool_],
    registers: int,
) -> Counts:
    """Returns the estimated cycles per step along K (one k) of a register tile, as an array over schedules.

    The tile has ``rows`` rows by ``vectors`` vectors; ``lines``: cache lines touched per vector of B;
    ``steps``: steps along K per tile, few of which let the next tile hide FMA latency; ``is_paired``: LLVM
    loads two elements of A at once; ``registers``: vector registers of the core.
    """
    sums = rows * vectors
    tiles_under_way = np.maximum(1.0, WINDOW / np.maximum(1.0, steps * (sums + vectors)))
    loads = (rows + lines * vectors) / LOADS_PER_CYCLE
    shuffles = np.where(is_paired, PAIR_SHUFFLES * rows, 0.0)
    busiest = np.maximum.reduce([sums / FMA_PER_CYCLE, (sums + shuffles) / VECTORS_PER_CYCLE, loads])
    # operand registers: a row of B and an element of A, or a column of A and a vector of B
    factors = np.where(np.isin(vectors, WHOLE_ROWS), vectors, rows) + 1
    is_spilled = sums + factors > registers
    latency = np.where(is_spilled, STORED_SUM_LATENCY, FMA_LATENCY / tiles_under_way)
    of_step: Counts = np.maximum(busiest, latency) + LOADS_UNHIDDEN * loads
    return of_step


def stored_cycles(rows: Counts, vectors: Counts) -> Counts:
    """Returns the minimum cycles of one step along K on a padded register tile, per schedule.

    0 for rows of 1, 2 or 4 vectors, which LLVM keeps in registers; else a store per accumulator.
    """
    return np.where(np.isin(vectors, WHOLE_ROWS), 0.0, rows * vectors / STORES_PER_CYCLE)


@dataclass(frozen=True)
class CpuTiles:
    """Schedule parameters that the CPU cost model reads: arrays with one entry per schedule.

    ``is_packed`` is the same for all schedules. Sizes are in elements.
    """

    tile_m: Counts
    tile_n: Counts
    unroll_k: Counts  # steps of K per loop iteration
    block_m: Counts
    block_n: Counts
    block_k: Counts
    is_row_major: npt.NDArray[np.bool_]  # register tiles are visited along n first: a row of A stays in L1
    m: Counts  # extent of one thread's part of C
    n: Counts
    packs_a: npt.NDArray[np.bool_]
    is_packed: bool  # B is copied to packed panels first
    fetches_b: npt.NDArray[np.bool_]  # the next panel of a B that is read in place is prefetched


def cycles(tiles: CpuTiles, problem: Problem, machine: Machine) -> Counts:
    """Returns the estimated cycles of one core's part of a matmul, per schedule of ``tiles``.

    Only for ranking.
    """
    # bytes of each cache that reused data may take
    l1 = HALF * (machine.l1_bytes or USUAL_L1_BYTES)
    l2 = HALF * (machine.l2_bytes or USUAL_L2_BYTES)
    arithmetic = _register_cycles(tiles, problem, machine)
    traffic = _panel_cycles(tiles, problem, l1, l2) + _result_cycles(tiles, problem, l2)
    unhidden = (
        UNHIDDEN * traffic + _packing_cycles(tiles, problem, l2) + _jump_cycles(tiles, problem, machine, l2)
    )
    return np.maximum(arithmetic, traffic) + unhidden


def _register_cycles(tiles: CpuTiles, problem: Problem, machine: Machine) -> Counts:
    k = problem.sizes[2]
    lanes = machine.vector_bytes / problem.accumulator_bytes
    passes = np.ceil(k / tiles.block_k)
    is_paired = (tiles.unroll_k == PAIR) & (problem.input_bytes == PAIRED_BYTES) & (problem.layout != "tn")
    is_aligned = (
        problem.offset_bytes % LINE_BYTES == 0 and problem.sizes[1] * problem.input_bytes % LINE_BYTES == 0
    )
    # cache lines per vector of B: an unaligned row's vector lies in two
    lines = (1 if tiles.is_packed or is_aligned else 2) + tiles.fetches_b.astype(np.float64)
    total = np.zeros(len(tiles.m))
    for along_m, rows in _rows(tiles):
        for along_n, columns, is_padded in _columns(tiles):
            vectors = np.ceil(columns / lanes)
            step = step_cycles(rows, vectors, lines, tiles.block_k, is_paired, machine.vector_registers)
            if is_padded and not tiles.is_packed:
                step = np.maximum(step, stored_cycles(rows, vectors))
            # per block of K, the sums of a register tile are loaded and stored
            ends = passes * (rows * vectors / LOADS_PER_CYCLE + TILE_CYCLES)
            total = total + along_m * along_n * (k * step + ends)
    return total


def _rows(tiles: CpuTiles) -> Iterator[tuple[Counts, Counts]]:  # (register tiles along m, rows of each)
    blocks = np.floor(tiles.m / tiles.block_m)
    rest = tiles.m - blocks * tiles.block_m
    yield blocks * np.floor(tiles.block_m / tiles.tile_m) + np.floor(rest / tiles.tile_m), tiles.tile_m
    for count, left in ((blocks, tiles.block_m % tiles.tile_m), (np.ones(len(rest)), rest % tiles.tile_m)):
        yield np.where(left > 0, count, 0.0), left


def _columns(tiles: CpuTiles) -> Iterator[tuple[Counts, Counts, bool]]:
    """Yields (number of register tiles along n, columns of each, whether the tile is padded).

    First for the whole blocks of n, then for the last block, each: whole tiles, then the padded tile.
    """
    blocks = np.floor(tiles.n / tiles.block_n)
    rest = tiles.n - blocks * tiles.block_n
    for count, extent in ((blocks, tiles.block_n), (np.ones(len(rest)), rest)):
        columns = np.minimum(tiles.tile_n, extent)
        whole = np.floor(extent / np.maximum(columns, 1))
        yield count * whole, columns, False
        yield np.where(extent > whole * columns, count, 0.0), columns, True


def _panel_cycles(tiles: CpuTiles, problem: Problem, l1: float, l2: float) -> Counts:
    a_row, a_block = (_a_block(tiles, problem, rows) for rows in (tiles.tile_m, tiles.block_m))
    b_panel, b_block = (_b_block(tiles, problem, columns) for columns in (tiles.tile_n, tiles.block_n))
    # held: the panel that consecutive register tiles share; stream: the other panel, a new one for each tile
    is_row = tiles.is_row_major
    held = _either(is_row, a_row, b_panel)
    stream = _either(is_row, b_panel, a_row)
    held_block = _either(is_row, a_block, b_block)
    streamed = _either(is_row, b_block, a_block)
    along_m = _pieces(tiles.m, tiles.block_m, tiles.tile_m)
    along_n = _pieces(tiles.n, tiles.block_n, tiles.tile_n)
    visits = along_m * along_n * np.ceil(problem.sizes[2] / tiles.block_k)
    first_visits = visits / np.maximum(np.where(is_row, along_n, along_m), 1)
    again = np.where(held.bytes <= l1, 0.0, visits - first_visits)
    stream_visits = np.where(streamed.bytes + held.bytes <= l1, 0.0, visits)
    held_cycles = first_visits / _rate(held_block.l2_bytes, l2) + again / _rate(held.l2_bytes, l2)
    return held.bytes * held_cycles + stream_visits * stream.bytes / _rate(streamed.l2_bytes, l2)


@dataclass(frozen=True)
class _Block:
    bytes: Counts
    l2_bytes: Counts  # occupied in L2: rows with a power-of-two stride map to few sets

    @classmethod
    def of(cls, rows: Counts, row_bytes: Counts, stride_bytes: npt.NDArray[np.int64]) -> "_Block":
        """Returns a block of ``rows`` rows of ``row_bytes`` each, which begin ``stride_bytes`` apart."""
        return cls(rows * row_bytes, rows * np.maximum(row_bytes, np.gcd(stride_bytes, L2_WAY_BYTES)))


def _a_block(tiles: CpuTiles, problem: Problem, rows: Counts) -> _Block:
    sides = (rows, tiles.block_k)
    stride = problem.sizes[2]
    if problem.layout == "tn":
        sides = (tiles.block_k, rows)
        stride = problem.sizes[0]
    strides = np.where(tiles.packs_a, 1, stride)  # packed rows are adjacent: no two need one set of a cache
    return _Block.of(sides[0], sides[1] * problem.input_bytes, strides * problem.input_bytes)


def _b_block(tiles: CpuTiles, problem: Problem, columns: Counts) -> _Block:
    sides = (tiles.block_k, columns)
    stride = problem.sizes[1]
    if problem.layout == "nt":
        sides = (columns, tiles.block_k)
        stride = problem.sizes[2]
    strides = np.array(1 if tiles.is_packed else stride)
    return _Block.of(sides[0], sides[1] * problem.input_bytes, strides * problem.input_bytes)


def _either(is_first: npt.NDArray[np.bool_], first: _Block, second: _Block) -> _Block:
    return _Block(
        np.where(is_first, first.bytes, second.bytes), np.where(is_first, first.l2_bytes, second.l2_bytes)
    )


def _result_cycles(tiles: CpuTiles, problem: Problem, l2: float) -> Counts:
    passes = np.ceil(problem.sizes[2] / tiles.block_k)
    # every pass over K writes C, every pass but the first reads C
    moved = (2 * passes - 1) * tiles.m * tiles.n * problem.output_bytes
    return moved / _rate(tiles.m * tiles.block_n * problem.output_bytes, l2)


def _packing_cycles(tiles: CpuTiles, problem: Problem, l2: float) -> Counts:
    element = 2 * problem.input_bytes  # read and written
    b_bytes = element * problem.sizes[2] * tiles.n * float(tiles.is_packed)
    a_bytes = element * problem.sizes[2] * np.where(tiles.packs_a, tiles.m, 0.0)
    blocks = np.ceil(tiles.n / tiles.block_n)
    packing: Counts = b_bytes / _copy_rate(b_bytes, l2) + blocks * a_bytes / _copy_rate(a_bytes, l2)
    return packing


def _jump_cycles(tiles: CpuTiles, problem: Problem, machine: Machine, l2: float) -> Counts:
    """Returns the cycles lost at the beginning of each row of a panel of B, read in place, from L3.

    0 where B is packed, stored by columns (nt), a single panel, or prefetched, and where so few rows are read
    side by side that the hardware prefetcher follows each of them.
    """
    if tiles.is_packed or problem.layout == "nt":
        return np.zeros(len(tiles.m))
    k = problem.sizes[2]
    missed = np.maximum(0.0, 1 - l2 / (k * tiles.n * problem.input_bytes))
    panels = np.where(tiles.tile_n < tiles.n, np.ceil(tiles.n / tiles.tile_n), 0.0)
    visits = np.where(tiles.is_row_major, np.ceil(tiles.m / tiles.tile_m), 1.0)
    # lines a multiple of a way apart need one set of the first level, which holds as many as it has ways
    apart = max(LINE_BYTES, math.gcd(problem.sizes[1] * problem.input_bytes, L1_WAY_BYTES))
    streams = min(STREAMS, (machine.l1_bytes or USUAL_L1_BYTES) // apart)
    is_followed = tiles.fetches_b | ((tiles.block_k <= streams) & tiles.is_row_major)
    cycles_lost: Counts = np.where(is_followed, 0.0, JUMP_CYCLES * k * panels * visits * missed)
    return cycles_lost


def _rate(block_bytes: Counts, l2: float) -> Counts:
    """Returns the bytes per cycle at which a block is read again: from L2, and the rest from L3."""
    missed = np.maximum(0.0, 1 - l2 / block_bytes)
    rate: Counts = 1 / ((1 - missed) / L2_BYTES_PER_CYCLE + missed / L3_BYTES_PER_CYCLE)
    return rate


def _copy_rate(moved_bytes: Counts, l2: float) -> Counts:
    return np.where(moved_bytes <= l2, COPY_BYTES_PER_CYCLE, L3_BYTES_PER_CYCLE)


def _pieces(extent: Counts, block: Counts, tile: Counts) -> Counts:
    whole = np.floor(extent / block)
    pieces: Counts = whole * np.ceil(block / tile) + np.ceil((extent - whole * block) / tile)
    return pieces
