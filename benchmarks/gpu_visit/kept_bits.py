"""How many bits a sum keeps inside of the tensor core, from the sums 1 + factor 2^-r of 64 rows r."""

import numpy as np
import numpy.typing as npt

BITS_PREFIX = "bits_"  # of the names of the micro-kernels
ROWS = 64  # of A that one wgmma multiplies
BIT_COLUMNS = 8
SIGNS = np.array([1.0, -1.0, 1.5, -1.5, 1.0, -1.0, 1.5, -1.5])  # of the small product, by columns


def kept_bits(sums: npt.NDArray[np.float32]) -> dict[str, int]:
    """Returns, by the small product's factor, the largest r with which 1 + factor 2^-r is not 1; -1: none."""
    changed = sums.reshape(ROWS, BIT_COLUMNS) != 1.0
    kept = {}
    for column in range(4):
        rows = np.flatnonzero(changed[:, column])
        kept[f"{SIGNS[column]:+g}"] = int(rows.max()) if len(rows) else -1
    return kept
