"""Errors of the simulated GPU under the names of the CUDA driver."""

from tuner.core.device import DeviceError


def refused(name: str, reason: str) -> DeviceError:
    """Returns a DeviceError that a CUDA driver would raise; ``name`` is its CUresult without CUDA_ERROR_."""
    return DeviceError(f"CUDA_ERROR_{name}: {reason}", f"CUDA_ERROR_{name}")
