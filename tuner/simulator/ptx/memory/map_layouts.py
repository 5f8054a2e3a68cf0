"""Tensor maps for the simulator from arguments of cuTensorMapEncodeTiled: a layout over bytes of memory."""

import ml_dtypes
import numpy as np

from tuner.core.device import TensorMapLayout
from tuner.core.errors import UsageError
from tuner.simulator.ptx.dtypes import Array
from tuner.simulator.ptx.memory.tensor_map import TensorMap

TFLOAT32 = 11
# CUtensorMapDataType -> element type; 12, TFLOAT32_FTZ, flushes subnormals and is not supported
DTYPES = {
    **{number: np.dtype(name) for number, name in enumerate(("u1", "u2", "u4", "i4", "u8", "i8", "f2"))},
    7: np.dtype("f4"),
    8: np.dtype("f8"),
    9: np.dtype(ml_dtypes.bfloat16),
    TFLOAT32: np.dtype("f4"),
}
SWIZZLES_BYTES = (0, 32, 64, 128)  # index: CUtensorMapSwizzle


def extent_bytes(layout: TensorMapLayout) -> int:
    """Returns the bytes from the first to the last element of the tensor of ``layout``, both included.

    Raises KeyError for an element type that is not in ``DTYPES``.
    """
    item_bytes = int(DTYPES[layout.dtype].itemsize)
    strides = (item_bytes, *layout.strides_bytes)
    return item_bytes + sum((size - 1) * stride for size, stride in zip(layout.sizes, strides, strict=True))


def tensor_of(layout: TensorMapLayout, memory: Array, offset_bytes: int = 0) -> TensorMap:
    """Returns the tensor map of ``layout`` over ``memory``, an array of bytes, from ``offset_bytes`` on.

    Raises UsageError for a tensor that is not contiguous, and as ``TensorMap`` does; KeyError for an element
    type that is not in ``DTYPES``.
    """
    dtype, shape = DTYPES[layout.dtype], tuple(reversed(layout.sizes))
    strides = (*reversed(layout.strides_bytes), dtype.itemsize)
    array: Array = np.ndarray(shape, dtype, memory, offset_bytes, strides)
    if not array.flags.c_contiguous:
        raise UsageError(f"tensor map: found strides {strides}, allowed a contiguous tensor in the simulator")
    return TensorMap(
        array, tuple(reversed(layout.box)), SWIZZLES_BYTES[layout.swizzle], layout.dtype == TFLOAT32
    )
