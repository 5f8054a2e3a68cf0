"""Arrays in device memory of other packages, by DLPack or __cuda_array_interface__."""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuner.errors import UsageError
from tuner.runtime.elements import DTYPES
from tuner.runtime.memref import MemRef

CUDA_DEVICES = (2, 3, 13)  # kDLCUDA, kDLCUDAHost, kDLCUDAManaged; dlpack.h
# DLDataTypeCode and bits -> numpy
FLOAT, BFLOAT, INTEGER, UNSIGNED, BOOLEAN = 2, 4, 0, 1, 6
CAPSULE = b"dltensor"


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """A view of device memory; ``owner`` keeps it alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # elements; None: row-major
    dtype: "np.dtype[np.generic]"
    owner: object

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


class _Tensor(ctypes.Structure):
    """DLTensor, the first member of DLManagedTensor; dlpack.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def device_array(name: str, found: Any, stream: int) -> DeviceArray:
    """Views an argument; its producer orders the data before what comes on the stream. Raises UsageError."""
    if isinstance(found, DeviceArray):
        return found
    if getattr(found, "__dlpack__", None) is not None and not isinstance(found, np.ndarray):
        return _of_dlpack(name, found, stream)
    if getattr(found, "__cuda_array_interface__", None) is not None:
        return _of_interface(found)
    raise UsageError(f"{name}: found {type(found).__name__}, allowed DLPack or __cuda_array_interface__")


def _of_interface(found: Any) -> DeviceArray:
    fields = found.__cuda_array_interface__
    dtype = np.dtype(fields["typestr"])
    strides = fields.get("strides")
    steps = None if strides is None else tuple(stride // dtype.itemsize for stride in strides)
    return DeviceArray(int(fields["data"][0]), tuple(fields["shape"]), steps, dtype, found)


def _of_dlpack(name: str, found: Any, stream: int) -> DeviceArray:
    kind = int(found.__dlpack_device__()[0])
    if kind not in CUDA_DEVICES:
        raise UsageError(f"{name}: found memory of DLPack device {kind}, allowed CUDA: {CUDA_DEVICES}")
    capsule = found.__dlpack__(stream=stream or 1)  # 1: the default stream, in the protocol's words
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(pointer(capsule, CAPSULE))
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    strides = tuple(tensor.strides[axis] for axis in range(tensor.ndim)) if tensor.strides else None
    dtype = _dtype(name, tensor.code, tensor.bits, tensor.lanes)
    return DeviceArray((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, (found, capsule))


def _dtype(name: str, code: int, bits: int, lanes: int) -> "np.dtype[np.generic]":
    names = {FLOAT: f"f{bits}", BFLOAT: "bf16", INTEGER: f"i{bits}", UNSIGNED: f"i{bits}", BOOLEAN: "i1"}
    element = names.get(code, "")
    if lanes != 1 or element not in DTYPES:
        raise UsageError(f"{name}: found DLPack type ({code}, {bits}, {lanes}), allowed floats and integers")
    return DTYPES[element]
