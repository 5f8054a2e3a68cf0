"""What accesses cost the one path to shared memory and to the first level of cache, by counting.

Every load and store of a warp goes through one queue of its multiprocessor. It takes as many passes as words
of one bank are asked for at once, loads from global memory like those from shared memory, and never less than
a floor by its width.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.float64]
Words = npt.NDArray[np.integer]  # of each lane of a warp: the first 4-byte word that it asks for

BANKS = 32
WARP_BYTES = 128.0  # that one pass moves
# Cycles of a pass: 128 bytes per cycle, 64 on Turing; white papers of TU102, GA100, GA102.
PASS_CYCLES = {75: 2.0}
# Passes that an access takes at least, by the words of a lane. Those of loads were calibrated on recorded
# kernels of sm_75 and sm_86 (CLBlast's GEMM); that of stores is their width.
LEAST_PASSES = {
    "load_shared": {1: 1.0, 2: 1.5, 4: 2.0},
    "store_shared": {1: 1.0, 2: 2.0, 4: 4.0},
    "load_global": {1: 1.5, 2: 2.0, 4: 4.0},
}


def access_cycles(kind: str, words: Words, width: int, capability: int) -> float:
    """Returns the cycles of one access of a warp to ``width`` words of each lane; 1, 2 or 4 are looked at."""
    width = max(known for known in LEAST_PASSES[kind] if known <= max(width, 1))
    least = LEAST_PASSES[kind][width]
    return PASS_CYCLES.get(capability, 1.0) * max(passes(words, width), least)


def stream_cycles(kind: str, width: int, capability: int) -> float:
    """Returns the cycles of an access to ``width`` words of each lane, all in a row."""
    return access_cycles(kind, np.arange(0, 32 * width, width), width, capability)


def passes(words: Words, width: int) -> int:
    """Returns the passes of a warp: wide accesses go by halves or quarters of its lanes.

    Parts go together where no bank is asked for two words by all of them.
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
    """Returns ``cycles(*values)`` for each row of some knobs' values; equal rows are looked at once."""
    kinds, which = np.unique(np.stack(list(columns)), axis=1, return_inverse=True)
    found = np.array([cycles(*(int(value) for value in kind)) for kind in kinds.T], np.float64)
    counted: Counts = found[which.reshape(-1)]
    return counted


def _most_of_a_bank(words: npt.NDArray[np.int64]) -> int:
    return int(np.bincount(words % BANKS).max())
