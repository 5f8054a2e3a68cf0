"""How the simulated GPU refuses a call: under the name that a CUDA driver would give."""

from tuner.device import DeviceError


def refused(name: str, reason: str) -> DeviceError:
    """Returns the error of a CUresult; ``name`` is without its CUDA_ERROR_."""
    return DeviceError(f"CUDA_ERROR_{name}: {reason}", f"CUDA_ERROR_{name}")
