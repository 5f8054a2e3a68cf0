"""Views of other packages' arrays through DLPack 1.0, with the structs of its dlpack.h."""

import contextlib
import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuner.core.errors import UsageError
from tuner.core.numpy_types import DTYPES

VERSION = (1, 0)  # the newest version that is supported
# DLDataTypeCode and bits -> numpy
FLOAT, BFLOAT, INTEGER, UNSIGNED, BOOLEAN = 2, 4, 0, 1, 6
CAPSULE, CAPSULE_OF_1 = b"dltensor", b"dltensor_versioned"
READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY


@dataclass(frozen=True, eq=False)
class DlpackView:
    """A view of an array that another package exports through DLPack: address, shape, strides, dtype.

    ``owner`` keeps the memory alive.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # elements; None: row-major
    dtype: "np.dtype[np.generic]"
    is_read_only: bool  # False where the producer does not say
    owner: object


class _Tensor(ctypes.Structure):
    """DLTensor, the first member of DLManagedTensor."""

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


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


def dlpack_device(name: str, found: Any) -> int:
    """Returns the DLDeviceType of the memory of ``found``, an array with DLPack: 1 CPU, 2 CUDA, ...

    ``name`` is the argument's, for messages. Raises UsageError where the array does not export its memory.
    """
    with _reported(name, found):
        return int(found.__dlpack_device__()[0])


def dlpack_view(name: str, found: Any, **options: Any) -> DlpackView:
    """Returns a view of the memory that ``found.__dlpack__`` exports.

    ``name`` is the argument's, for messages; ``options`` are further keyword arguments of ``__dlpack__``,
    such as ``stream``. Unsigned integers get the signed type of their size. Raises UsageError where ``found``
    does not export its memory, and for an element type that tuner does not know.
    """
    with _reported(name, found):
        try:
            capsule = found.__dlpack__(max_version=VERSION, **options)
        except TypeError:  # a producer from before 1.0
            capsule = found.__dlpack__(**options)
    tensor, is_read_only = _tensor(capsule)
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    strides = tuple(tensor.strides[axis] for axis in range(tensor.ndim)) if tensor.strides else None
    dtype = _dtype(name, tensor.code, tensor.bits, tensor.lanes)
    address = (tensor.data or 0) + tensor.byte_offset
    return DlpackView(address, shape, strides, dtype, is_read_only, (found, capsule))


@contextlib.contextmanager
def _reported(name: str, found: Any) -> Iterator[None]:
    """Raises UsageError in place of the error of a producer that does not export its memory."""
    try:
        yield
    except (BufferError, RuntimeError, ValueError) as error:
        raise UsageError(f"{name}: found {type(found).__name__} that is not handed out: {error}") from error


def _tensor(capsule: Any) -> tuple[_Tensor, bool]:
    is_valid, pointer = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
    is_valid.argtypes = pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer.restype = ctypes.c_void_p
    if not is_valid(capsule, CAPSULE_OF_1):
        return _Tensor.from_address(pointer(capsule, CAPSULE)), False
    managed = _Versioned.from_address(pointer(capsule, CAPSULE_OF_1))
    return managed.tensor, bool(managed.flags & READ_ONLY)


def _dtype(name: str, code: int, bits: int, lanes: int) -> "np.dtype[np.generic]":
    names = {FLOAT: f"f{bits}", BFLOAT: "bf16", INTEGER: f"i{bits}", UNSIGNED: f"i{bits}", BOOLEAN: "i1"}
    element = names.get(code, "")
    if lanes != 1 or element not in DTYPES:
        raise UsageError(f"{name}: found DLPack type ({code}, {bits}, {lanes}), allowed floats and integers")
    return DTYPES[element]
