"""What a step of K costs a tile of sums in vector registers of a core: cycles of a model, never a time."""

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.float64]

# Of one core; the same for Intel's and AMD's cores since 2017 as far as a rank is concerned.
# https://www.agner.org/optimize/microarchitecture.pdf, https://uops.info
FMA_PER_CYCLE = 2.0
LOADS_PER_CYCLE = 2.0
VECTORS_PER_CYCLE = 3.0  # multiply-adds and shuffles together; of Intel's cores with 512 bits 2
# Until a sum can be added to again: 4 cycles by the manuals. Calibrated: eight sums, which would just do for
# two multipliers, take 1.12 to 1.18 times as long as twelve.
FMA_LATENCY = 4.5
WINDOW = 320  # instructions under way at once: Skylake 224, Zen 4 320, Zen 5 448, Golden Cove 512
STORES_PER_CYCLE = 1.0  # of whole vectors
STORED_SUM_LATENCY = 17.0  # of a sum that is stored and loaded again in each step; calibrated
LOADS_SHOWING = 0.1  # of the loads beside multiply-adds, what is not hidden after all; calibrated
PAIR_SHUFFLES = 1.5  # for each row and step, where LLVM loads two elements of A at once and parts them
WHOLE_ROWS = (1, 2, 4)  # vectors of a row of B that are multiplied by one element of A after the other


def step_cycles(
    rows: Counts,
    vectors: Counts,
    lines: int,  # of cache that a vector of B lies in
    steps: Counts,
    is_paired: npt.NDArray[np.bool_],
    registers: int,
) -> Counts:
    """Returns the cycles of one of ``steps`` for ``rows`` elements of A and ``vectors`` of B.

    A tile of few steps need not wait for its sums: the next begins meanwhile.
    """
    sums = rows * vectors
    tiles_under_way = np.maximum(1.0, WINDOW / np.maximum(1.0, steps * (sums + vectors)))
    loads = (rows + lines * vectors) / LOADS_PER_CYCLE
    shuffles = np.where(is_paired, PAIR_SHUFFLES * rows, 0.0)
    busiest = np.maximum.reduce([sums / FMA_PER_CYCLE, (sums + shuffles) / VECTORS_PER_CYCLE, loads])
    is_spilled = sums + _factors(rows, vectors) > registers
    latency = np.where(is_spilled, STORED_SUM_LATENCY, FMA_LATENCY / tiles_under_way)
    cycles: Counts = np.maximum(busiest, latency) + LOADS_SHOWING * loads
    return cycles


def stored_cycles(rows: Counts, vectors: Counts) -> Counts:
    """Returns the least cycles of a step on too few columns of B: sums of a row that is cut are stored."""
    return np.where(np.isin(vectors, WHOLE_ROWS), 0.0, rows * vectors / STORES_PER_CYCLE)


def _factors(rows: Counts, vectors: Counts) -> Counts:
    """Counts registers of factors: a row of B and one element of A, or all rows of A and a vector of B."""
    return np.where(np.isin(vectors, WHOLE_ROWS), vectors, rows) + 1
