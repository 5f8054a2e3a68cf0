"""Arrays of .npy files, whose headers may claim anything."""

from pathlib import Path

import numpy as np

from tuner.core.errors import UsageError
from tuner.payload.reference import Array

# numpy's, for headers of other kinds and for sizes that no file or machine has
UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    ArithmeticError,
    MemoryError,
    TypeError,
    KeyError,
    RecursionError,
)


def read_npy(path: Path, place: str) -> Array:
    """Returns a file's array. Raises UsageError, beginning with ``place``, for a file that is none.

    The file is mapped: one that holds less than its header claims is refused before memory is asked for.
    """
    try:
        with np.errstate(over="raise"):  # numpy multiplies the sizes
            found = np.load(path, mmap_mode="r", allow_pickle=False)
    except UNREADABLE as error:
        line = (str(error) or type(error).__name__).splitlines()[0]
        raise UsageError(f"{place}: cannot be read as .npy: {line}") from error
    if not isinstance(found, np.ndarray):
        raise UsageError(f"{place}: found several arrays, allowed one: .npy")
    return found
