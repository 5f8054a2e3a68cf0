"""Whether a CUDA driver is installed."""

import ctypes

LIBRARY = "libcuda.so.1"


def has_driver() -> bool:
    """Returns whether the driver's library can be loaded; no GPU is touched."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True
