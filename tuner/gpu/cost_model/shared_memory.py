"""Cycles of a warp's accesses on the path of a multiprocessor to shared memory and L1.

All loads and stores of warps go through one queue per multiprocessor, loads from global memory like loads
from shared memory. An access takes as many passes as the largest number of distinct 4-byte words that it
needs from one bank, and at least a minimum that depends on its width.
"""

import numpy as np
import numpy.typing as npt

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


def access_cycles(access: str, words: Words, width: int, capability: int) -> float:
    """Returns how many cycles one access of a warp occupies the path to shared memory and L1.

    ``access``: a key of LEAST_PASSES; ``words``: index of the first 4-byte word of each lane; ``width``:
    words per lane, 1, 2 or 4; others are rounded down to one of LEAST_PASSES.
    """
    width = max(known for known in LEAST_PASSES[access] if known <= max(width, 1))
    least = LEAST_PASSES[access][width]
    return PASS_CYCLES.get(capability, 1.0) * max(passes(words, width), least)


def stream_cycles(access: str, width: int, capability: int) -> float:
    """Returns the cycles that the path to shared memory and L1 is occupied by an access to contiguous memory.

    ``access``: a key of LEAST_PASSES; ``width``: 4-byte words per lane.
    """
    return access_cycles(access, np.arange(0, 32 * width, width), width, capability)


def passes(words: Words, width: int) -> int:
    """Returns in how many passes the 32 banks of shared memory serve one access of a warp.

    ``words``: index of the first 4-byte word of each lane. An access of ``width`` (1, 2, 4) words per lane is
    split into as many parts of lanes; consecutive parts share a pass if each bank serves one word.
    """
    taken = 0
    held = np.zeros(0, np.int64)  # distinct words of the pass so far
    for part in np.split(words, width):
        distinct = np.unique(part[:, None] + np.arange(width))
        joined = np.union1d(held, distinct)
        if len(held) and _most_of_a_bank(joined) == 1:
            held = joined
            continue
        taken += _most_of_a_bank(distinct)
        held = distinct
    return taken


def _most_of_a_bank(words: npt.NDArray[np.int64]) -> int:
    return int(np.bincount(words % BANKS).max())
