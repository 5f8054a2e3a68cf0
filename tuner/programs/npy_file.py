"""Reads arrays of .npy files, whose headers are untrusted."""

from pathlib import Path

import numpy as np

from tuner.core.errors import UsageError
from tuner.payload.reference import Array

# what numpy raises for invalid headers, and for sizes that no file or machine has
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
    """Returns the array of a .npy file, memory-mapped and read-only.

    Because the file is mapped, a file that is shorter than its header claims is refused before memory is
    allocated.

    Raises UsageError, with a message that starts with ``place``, for a file that is missing or cannot be
    read, and for one that is not .npy.
    """
    try:
        with np.errstate(over="raise"):  # numpy multiplies the sizes of the header
            found = np.load(path, mmap_mode="r", allow_pickle=False)
    except UNREADABLE as error:
        line = (str(error) or type(error).__name__).splitlines()[0]
        raise UsageError(f"{place}: cannot be read as .npy: {line}") from error
    if not isinstance(found, np.ndarray):
        raise UsageError(f"{place}: several arrays in one file: save one as .npy")
    return found
