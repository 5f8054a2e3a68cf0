"""Cycles of accesses on the path of a multiprocessor to shared memory and L1.

All loads and stores of warps go through one queue per multiprocessor, loads from global memory like loads
from shared memory. An access takes as many passes as the largest number of distinct 4-byte words that it
needs from one bank, and at least a minimum that depends on its width.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.float64]
Words = npt.NDArray[np.integer]  # per lane of a warp: index of the first 4-byte word that it accesses

BANKS = 32
WARP_BYTES = 128.0  # moved per pass
# Cycles of a pass: 128 bytes per cycle, 64 on Turing; white papers of TU102, GA100, GA102.
PASS_CYCLES = {75: 2.0}
# Minimum passes of an access, by the words per lane. The values of loads were calibrated on recorded
# kernels of sm_75 and sm_86 (CLBlast's GEMM); a store's value is its width.
LEAST_PASSES = {
    "load_shared": {1: 1.0, 2: 1.5, 4: 2.0},
    "store_shared": {1: 1.0, 2: 2.0, 4: 4.0},
    "load_global": {1: 1.5, 2: 2.0, 4: 4.0},
}


def access_cycles(kind: str, words: Words, width: int, capability: int) -> float:
    """Returns how many cycles one access of a warp occupies the path to shared memory and L1.

    Args:
        kind: "load_shared", "store_shared" or "load_global".
        words: per lane of the warp, the index of the first 4-byte word that the lane accesses.
        width: number of consecutive 4-byte words per lane; rounded down to 1, 2 or 4.
        capability: compute capability of the chip: 75 for sm_75.
    """
    width = max(known for known in LEAST_PASSES[kind] if known <= max(width, 1))
    least = LEAST_PASSES[kind][width]
    return PASS_CYCLES.get(capability, 1.0) * max(passes(words, width), least)


def stream_cycles(kind: str, width: int, capability: int) -> float:
    """Returns the cycles of one access of a warp whose 32 lanes access one contiguous piece of memory.

    ``kind`` is "load_shared", "store_shared" or "load_global", ``width`` the number of 4-byte words per lane,
    and ``capability`` the compute capability of the chip (75 for sm_75).
    """
    return access_cycles(kind, np.arange(0, 32 * width, width), width, capability)


def passes(words: Words, width: int) -> int:
    """Returns in how many passes the 32 banks of shared memory serve one access of a warp.

    ``words`` is the index of the first 4-byte word of each lane. An access of ``width`` (1, 2 or 4)
    consecutive words per lane is split into that many parts of the lanes. Consecutive parts share a pass
    where together they need at most one word of each bank.
    """
    taken, held = 0, np.zeros(0, np.int64)
    for part in np.split(words, width):
        asked = np.unique(part[:, None] + np.arange(width))
        joined = np.union1d(held, asked)
        if len(held) and _most_of_a_bank(joined) == 1:
            held = joined
            continue
        taken += _most_of_a_bank(asked)
        held = asked
    return taken


def by_kind(columns: Iterable[Counts], cycles: Callable[..., float]) -> Counts:
    """Returns ``cycles(*values)`` for each configuration; equal values are computed only once.

    ``columns`` has one array per argument of ``cycles``, with one value per configuration. Values are
    truncated to integers.
    """
    kinds, which = np.unique(np.stack(list(columns)), axis=1, return_inverse=True)
    found = np.array([cycles(*(int(value) for value in kind)) for kind in kinds.T], np.float64)
    counted: Counts = found[which.reshape(-1)]
    return counted


def _most_of_a_bank(words: npt.NDArray[np.int64]) -> int:
    return int(np.bincount(words % BANKS).max())
