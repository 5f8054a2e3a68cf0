"""Errors of the simulated GPU, under the names that a CUDA driver gives them."""

from tuner.core.device import DeviceError


def refused(name: str, reason: str) -> DeviceError:
    """Returns the error for a CUresult; ``name`` is its name without CUDA_ERROR_."""
    return DeviceError(f"CUDA_ERROR_{name}: {reason}", f"CUDA_ERROR_{name}")
