"""Arrays in device memory of other packages, by DLPack or __cuda_array_interface__."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tuner.errors import UsageError
from tuner.runtime.dlpack import dlpack_device, dlpack_view
from tuner.runtime.memref import MemRef

CUDA_DEVICES = (2, 3, 13)  # kDLCUDA, kDLCUDAHost, kDLCUDAManaged; dlpack.h
ALIGN_BYTES = 16  # the widest load, and what a tensor map asks for: PTX ISA, ld; CUDA driver API


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """A view of device memory; ``owner`` keeps it alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # elements; None: row-major
    dtype: "np.dtype[np.generic]"
    owner: object
    is_read_only: bool = False

    @property
    def row_major(self) -> tuple[int, ...]:
        """Returns the strides that an array without gaps has, the last dimension densest."""
        return MemRef.of(0, self.shape).strides

    @property
    def is_row_major(self) -> bool:
        """Tells whether it lies so; the stride of a single row, or of none, means nothing."""
        if self.strides is None or 0 in self.shape:
            return True
        steps = zip(self.shape, self.strides, self.row_major, strict=True)
        return all(size == 1 or stride == wanted for size, stride, wanted in steps)


def device_array(name: str, found: Any, stream: int) -> DeviceArray:
    """Views an argument; its producer orders the data before what comes on the stream. Raises UsageError."""
    if isinstance(found, DeviceArray):
        return _require_aligned(name, found)
    if getattr(found, "__dlpack__", None) is not None and not isinstance(found, np.ndarray):
        return _require_aligned(name, _of_dlpack(name, found, stream))
    if getattr(found, "__cuda_array_interface__", None) is not None:
        return _require_aligned(name, _of_interface(found))
    raise UsageError(f"{name}: found {type(found).__name__}, allowed DLPack or __cuda_array_interface__")


def _of_interface(found: Any) -> DeviceArray:
    fields = found.__cuda_array_interface__
    dtype = np.dtype(fields["typestr"])
    strides = fields.get("strides")
    steps = None if strides is None else tuple(stride // dtype.itemsize for stride in strides)
    address, is_read_only = fields["data"]
    return DeviceArray(int(address), tuple(fields["shape"]), steps, dtype, found, bool(is_read_only))


def _of_dlpack(name: str, found: Any, stream: int) -> DeviceArray:
    kind = dlpack_device(name, found)
    if kind not in CUDA_DEVICES:
        raise UsageError(f"{name}: found memory of DLPack device {kind}, allowed CUDA: {CUDA_DEVICES}")
    view = dlpack_view(name, found, stream=stream or 1)  # 1: the default stream, in the protocol's words
    return DeviceArray(view.address, view.shape, view.strides, view.dtype, view.owner, view.is_read_only)


def _require_aligned(name: str, array: DeviceArray) -> DeviceArray:
    if 0 not in array.shape and array.address % ALIGN_BYTES:
        found = f"memory {array.address % ALIGN_BYTES} bytes behind a multiple of {ALIGN_BYTES}"
        raise UsageError(
            f"{name}: found {found}, allowed a multiple: kernels read {ALIGN_BYTES} bytes at once"
        )
    return array
