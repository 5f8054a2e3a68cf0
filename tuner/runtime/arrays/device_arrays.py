"""Views of other packages' arrays in device memory, through DLPack or ``__cuda_array_interface__``."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuner.core.device import AbstractDevice
from tuner.core.errors import UsageError
from tuner.runtime.arrays.dlpack import dlpack_device, dlpack_view
from tuner.runtime.arrays.memref import MemRef

CUDA_DEVICES = (2, 3, 13)  # kDLCUDA, kDLCUDAHost, kDLCUDAManaged; dlpack.h
ALIGN_BYTES = 16  # of the widest load, and required by tensor maps: PTX ISA, ld; CUDA driver API


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """A view of another package's array in device memory: address, shape, strides, dtype.

    ``owner`` keeps the memory alive; ``stream`` is the one on which the contents may still be computed.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # elements; None: row-major
    dtype: "np.dtype[np.generic]"
    owner: object
    is_read_only: bool = False
    stream: int | None = None  # on which the contents may still be computed; None: the contents are ready

    @property
    def memory(self) -> range:
        """Returns the byte addresses that the array occupies if it has no gaps between its elements.

        For an array with gaps (strides) the range is too short.
        """
        return range(self.address, self.address + math.prod(self.shape) * self.dtype.itemsize)

    @property
    def row_major(self) -> tuple[int, ...]:
        """Returns the strides, in elements, that a row-major array of this shape without gaps has."""
        return MemRef.of(0, self.shape).strides

    @property
    def is_row_major(self) -> bool:
        """Returns whether the array is row-major without gaps between its elements.

        Strides of dimensions of size 1, and of empty arrays, do not matter.
        """
        if self.strides is None or 0 in self.shape:
            return True
        steps = zip(self.shape, self.strides, self.row_major, strict=True)
        return all(size == 1 or stride == wanted for size, stride, wanted in steps)


def device_array(name: str, found: Any, stream: int) -> DeviceArray:
    """Returns a view of ``found``, an array of another package in CUDA memory.

    It is read through DLPack or ``__cuda_array_interface__``; ``name`` is the argument's, for messages. A
    DLPack producer makes work on ``stream`` wait for the contents; for the other protocol see
    ``wait_for_producers``. Raises UsageError for an object with neither protocol, a numpy array, memory that
    DLPack says is not CUDA memory, memory not aligned to 16 bytes, and a masked array.
    """
    if isinstance(found, DeviceArray):
        return _require_aligned(name, found)
    if getattr(found, "__dlpack__", None) is not None and not isinstance(found, np.ndarray):
        return _require_aligned(name, _of_dlpack(name, found, stream))
    if getattr(found, "__cuda_array_interface__", None) is not None:
        return _require_aligned(name, _of_interface(name, found))
    raise UsageError(f"{name}: found {type(found).__name__}, allowed DLPack or __cuda_array_interface__")


def wait_for_producers(device: AbstractDevice, arrays: Iterable[DeviceArray], stream: int | None) -> None:
    """Makes later work on ``stream`` wait for the streams on which ``arrays`` may still be computed.

    ``stream`` None: the host waits, before this function returns.
    """
    for producer in {array.stream for array in arrays} - {None, stream}:
        assert producer is not None
        if stream is None:
            device.synchronize_stream(producer)
            continue
        event = device.create_event()
        device.record_event(event, producer)
        device.wait_event(stream, event)
        device.destroy_event(event)


def _of_interface(name: str, found: Any) -> DeviceArray:
    fields = found.__cuda_array_interface__
    try:
        dtype, shape = np.dtype(fields["typestr"]), tuple(int(size) for size in fields["shape"])
        address, is_read_only = fields["data"]
        strides, stream = fields.get("strides"), fields.get("stream")
        steps = None if strides is None else tuple(stride // dtype.itemsize for stride in strides)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{name}: found a __cuda_array_interface__ that is none: {error!r}") from error
    if fields.get("mask") is not None:
        raise UsageError(f"{name}: masked arrays are not supported")
    if strides is not None and any(stride % dtype.itemsize for stride in strides):
        raise UsageError(f"{name}: found strides of {strides} bytes, allowed multiples of {dtype.itemsize}")
    return DeviceArray(int(address or 0), shape, steps, dtype, found, bool(is_read_only), stream)


def _of_dlpack(name: str, found: Any, stream: int) -> DeviceArray:
    kind = dlpack_device(name, found)
    if kind not in CUDA_DEVICES:
        raise UsageError(f"{name}: found memory of DLPack device {kind}, allowed CUDA: {CUDA_DEVICES}")
    view = dlpack_view(name, found, stream=stream or 1)  # 1: the default stream in DLPack's protocol
    return DeviceArray(view.address, view.shape, view.strides, view.dtype, view.owner, view.is_read_only)


def _require_aligned(name: str, array: DeviceArray) -> DeviceArray:
    if 0 not in array.shape and array.address % ALIGN_BYTES:
        found = f"memory {array.address % ALIGN_BYTES} bytes past a multiple of {ALIGN_BYTES}"
        raise UsageError(
            f"{name}: found {found}, allowed a multiple: kernels read {ALIGN_BYTES} bytes at once"
        )
    return array


def overlap(one: range, other: range) -> bool:
    """Returns whether two ranges of byte addresses have an address in common."""
    return max(one.start, other.start) < min(one.stop, other.stop)
