"""Model cycles of one step of K on a register tile: accumulators in vector registers of a core."""

import numpy as np
import numpy.typing as npt

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


def step_cycles(
    rows: Counts,
    vectors: Counts,
    lines: Counts,  # cache lines per vector of B: 1 where aligned, else 2; and 1 that is prefetched
    steps: Counts,
    is_paired: npt.NDArray[np.bool_],
    registers: int,
) -> Counts:
    """Returns the estimated cycles of one step along K on a register tile, per schedule.

    A step multiplies ``rows`` elements of A by ``vectors`` vectors of B and adds the products to the
    accumulators. With few steps per tile, the next tile starts before the accumulators of the current one are
    complete, which hides FMA latency.

    Args:
        rows: rows of the register tile.
        vectors: vectors per row of the register tile.
        lines: cache lines per vector of B: 1 where aligned, else 2; one more where B is prefetched.
        steps: steps along K per register tile.
        is_paired: whether LLVM loads two adjacent elements of A at once and separates them by shuffles.
        registers: number of vector registers of the core.
    """
    sums = rows * vectors
    tiles_under_way = np.maximum(1.0, WINDOW / np.maximum(1.0, steps * (sums + vectors)))
    loads = (rows + lines * vectors) / LOADS_PER_CYCLE
    shuffles = np.where(is_paired, PAIR_SHUFFLES * rows, 0.0)
    busiest = np.maximum.reduce([sums / FMA_PER_CYCLE, (sums + shuffles) / VECTORS_PER_CYCLE, loads])
    is_spilled = sums + _factors(rows, vectors) > registers
    latency = np.where(is_spilled, STORED_SUM_LATENCY, FMA_LATENCY / tiles_under_way)
    cycles: Counts = np.maximum(busiest, latency) + LOADS_UNHIDDEN * loads
    return cycles


def stored_cycles(rows: Counts, vectors: Counts) -> Counts:
    """Returns the minimum cycles of one step along K on a padded register tile, per schedule.

    The tile has ``rows`` rows of ``vectors`` vectors. LLVM keeps whole rows of 1, 2 or 4 vectors in
    registers, which gives 0; otherwise each step stores every accumulator, one vector per cycle.
    """
    return np.where(np.isin(vectors, WHOLE_ROWS), 0.0, rows * vectors / STORES_PER_CYCLE)


def _factors(rows: Counts, vectors: Counts) -> Counts:
    """Returns operand registers: a row of B and an element of A, or a column of A and a vector of B."""
    return np.where(np.isin(vectors, WHOLE_ROWS), vectors, rows) + 1
