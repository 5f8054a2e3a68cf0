"""Whether a CUDA driver is installed."""

import ctypes


def has_driver() -> bool:
    """Returns whether the driver's library can be loaded; no GPU is touched."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
