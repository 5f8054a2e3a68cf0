"""Views arrays in host memory, numpy's or another package's by DLPack, as numpy arrays."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.errors import UsageError
from tuner.runtime.arrays.dlpack import dlpack_device, dlpack_view
from tuner.runtime.arrays.memref import MemRef, array_of

HOST_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost; dlpack.h


def host_array(name: str, found: Any) -> npt.NDArray[Any]:
    """Views an argument; the caller keeps ``found`` as long as the view. Raises UsageError."""
    if isinstance(found, np.ma.MaskedArray):
        raise UsageError(f"{name}: found a masked array, allowed one without: its .data or .filled()")
    if isinstance(found, np.ndarray):
        return found
    if getattr(found, "__dlpack__", None) is None:
        raise UsageError(
            f"{name}: found {type(found).__name__}, allowed a numpy array, or one of host memory by DLPack"
        )
    kind = dlpack_device(name, found)
    if kind not in HOST_DEVICES:
        raise UsageError(f"{name}: found memory of DLPack device {kind}, allowed the host's: {HOST_DEVICES}")
    view = dlpack_view(name, found)
    strides = MemRef.of(0, view.shape).strides if view.strides is None else view.strides
    array = array_of(MemRef(view.address, view.address, 0, view.shape, strides), view.dtype)
    array.flags.writeable = not view.is_read_only
    return array
