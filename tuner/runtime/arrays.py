"""Arrays that callers pass: views of host and device memory (DLPack), checks, memref descriptors, streams.

An ``ArrayView`` is where an array lies, whatever library made it; an ``ExpectedArray`` checks it, and
``MemRef`` is the descriptor that compiled code takes.
"""

import contextlib
import ctypes
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.device import AbstractDevice
from tuner.core.errors import DeviceError, UsageError
from tuner.core.numpy_types import DTYPES
from tuner.core.text_files import similar_file_hint

# Views of other packages' arrays through DLPack 1.0, with the structs of its dlpack.h.

VERSION = (1, 0)  # the newest version that is supported
# DLDataTypeCode
FLOAT = 2
BFLOAT = 4
INTEGER = 0
UNSIGNED = 1
BOOLEAN = 6
CAPSULE = b"dltensor"
CAPSULE_OF_1 = b"dltensor_versioned"
READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY
# Bytes per element, by CUtensorMapDataType; 13 and later are packed 4-bit and 6-bit types.
TENSOR_MAP_ELEMENT_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
HEADER_WORDS = 3  # allocated, aligned, offset
# kDLCPU, kDLCUDAHost; kDLCUDA, kDLCUDAHost, kDLCUDAManaged; dlpack.h
HOST_DEVICES = (1, 3)
CUDA_DEVICES = (2, 3, 13)
ALIGN_BYTES = 16  # of the widest load, and required by tensor maps: PTX ISA, ld; CUDA driver API
# what numpy raises for invalid headers, and for sizes that no file or machine has
UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    ArithmeticError,
    MemoryError,
    TypeError,
    KeyError,
    RecursionError,
)


class _Tensor(ctypes.Structure):
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
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


def dlpack_device(name: str, array: Any) -> int:
    """Returns the DLDeviceType (1 CPU, 2 CUDA, ...) of an array with DLPack.

    ``name``: of the argument, which begins messages. Raises UsageError if the array does not report its
    device.
    """
    with _reported(name, array):
        return int(array.__dlpack_device__()[0])


def dlpack_view(name: str, array: Any, **options: Any) -> "ArrayView":
    """Returns a view of the memory that ``array.__dlpack__(**options)`` exports; unsigned integers as signed.

    ``name``: of the argument, which begins messages. Raises UsageError if the export fails or the element
    type is not supported.
    """
    with _reported(name, array):
        try:
            capsule = array.__dlpack__(max_version=VERSION, **options)
        except TypeError:  # a producer from before 1.0
            capsule = array.__dlpack__(**options)
    tensor, is_read_only = _tensor(capsule)
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[axis] for axis in range(tensor.ndim))
    else:
        strides = None
    code = tensor.code
    bits = tensor.bits
    lanes = tensor.lanes
    names = {FLOAT: f"f{bits}", BFLOAT: "bf16", INTEGER: f"i{bits}", UNSIGNED: f"i{bits}", BOOLEAN: "i1"}
    element = names.get(code, "")
    if lanes != 1 or element not in DTYPES:
        raise UsageError(f"{name}: found DLPack type ({code}, {bits}, {lanes}), allowed floats and integers")
    address = (tensor.data or 0) + tensor.byte_offset
    return ArrayView(address, shape, strides, DTYPES[element], (array, capsule), is_read_only)


@contextlib.contextmanager
def _reported(name: str, array: Any) -> Iterator[None]:
    try:
        yield
    except (AttributeError, BufferError, RuntimeError, ValueError) as error:
        raise UsageError(f"{name}: found {type(array).__name__} that is not handed out: {error}") from error


def _tensor(capsule: Any) -> tuple[_Tensor, bool]:
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    is_valid.argtypes = pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer.restype = ctypes.c_void_p
    if not is_valid(capsule, CAPSULE_OF_1):
        return _Tensor.from_address(pointer(capsule, CAPSULE)), False
    managed = _Versioned.from_address(pointer(capsule, CAPSULE_OF_1))
    return managed.tensor, bool(managed.flags & READ_ONLY)


@dataclass(frozen=True)
class MemRef:
    """MLIR's descriptor of a ranked memref: a row of 8-byte words. Offset and strides are in elements."""

    allocated: int  # address of the allocation
    aligned: int  # address from which ``offset`` counts
    offset: int  # elements
    sizes: tuple[int, ...]
    strides: tuple[int, ...]  # elements

    @classmethod
    def at(cls, descriptor: int, rank: int) -> "MemRef":
        """Returns the memref descriptor of rank ``rank`` that is stored at the address ``descriptor``."""
        return cls.of_words(tuple((ctypes.c_int64 * word_count(rank)).from_address(descriptor)))

    @classmethod
    def of_words(cls, words: tuple[int, ...]) -> "MemRef":
        """Returns the memref descriptor made of these 64-bit words: the inverse of ``MemRef.words``."""
        after_sizes = (HEADER_WORDS + len(words)) // 2
        return cls(words[0], words[1], words[2], words[HEADER_WORDS:after_sizes], words[after_sizes:])

    @classmethod
    def of(cls, address: int, shape: tuple[int, ...]) -> "MemRef":
        """Returns the memref descriptor of a row-major array of ``shape``, without gaps, at ``address``."""
        strides = []
        step = 1
        for size in reversed(shape):
            strides.append(step)
            step *= size
        return cls(address, address, 0, shape, tuple(reversed(strides)))

    @property
    def words(self) -> tuple[int, ...]:
        """Returns the descriptor as 64-bit words: allocated, aligned, offset, sizes, strides."""
        return (self.allocated, self.aligned, self.offset, *self.sizes, *self.strides)

    def address(self, item_bytes: int) -> int:
        """Returns the byte address of the first element; ``item_bytes``: bytes of an element."""
        return self.aligned + self.offset * item_bytes

    def extent_bytes(self, item_bytes: int) -> int:
        """Returns the bytes from the first element's start to the last one's end, gaps included."""
        if 0 in self.sizes:
            return 0
        last = sum((size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True))
        return (last + 1) * item_bytes


def word_count(rank: int) -> int:
    """Returns the number of 64-bit words of a memref descriptor of rank ``rank``."""
    return HEADER_WORDS + 2 * rank


def array_of(view: MemRef, dtype: "np.dtype[np.generic]") -> npt.NDArray[Any]:
    """Returns a numpy array that shares the memory of a memref; the memory has to outlive the array."""
    size_bytes = view.extent_bytes(dtype.itemsize)
    if size_bytes == 0:
        return np.empty(view.sizes, dtype)
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * size_bytes).from_address(view.address(dtype.itemsize)))
    strides = tuple(stride * dtype.itemsize for stride in view.strides)
    return np.ndarray(view.sizes, dtype, memory, strides=strides)


def element_bytes_of_tensor_map(dtype: int) -> int:
    """Returns the bytes per element of a CUtensorMapDataType. Raises DeviceError for an unknown type."""
    if not 0 <= dtype < len(TENSOR_MAP_ELEMENT_BYTES):
        raise DeviceError(f"tensor map: found type {dtype}, allowed 0 to {len(TENSOR_MAP_ELEMENT_BYTES) - 1}")
    return TENSOR_MAP_ELEMENT_BYTES[dtype]


@dataclass(frozen=True, eq=False)
class ArrayView:
    """A view of a caller's array in host or device memory; ``owner`` keeps the memory alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # elements; None: row-major
    dtype: "np.dtype[np.generic]"
    owner: object
    is_read_only: bool = False  # also False where the producer does not say
    stream: int | None = None  # on which the contents may still be computed; None: the contents are ready

    @property
    def memory(self) -> range:
        """Returns the range of byte addresses of the array; right only for an array without gaps."""
        return range(self.address, self.address + math.prod(self.shape) * self.dtype.itemsize)


@dataclass(frozen=True)
class ExpectedArray:
    """Shape and type of one array argument of a kernel or program, and checks of the value that is passed.

    A program also takes other packages' arrays in host memory (DLPack), and unsigned integers: MLIR's
    integers have no sign.
    """

    name: str  # "a", "argument 0"
    shape: tuple[int | None, ...]  # None: any size
    dtype: "np.dtype[Any]"
    program: str = ""  # that takes the array; "": a kernel, which is tuned for one shape and layout

    @property
    def subject(self) -> str:
        """Returns how messages begin: ``a``, or ``main: argument 0``."""
        if self.program:
            return f"{self.program}: {self.name}"
        return self.name

    def fits(self, array: Any) -> bool:
        """Returns whether an object is a C-contiguous numpy array of this shape and type, a fast check."""
        return (
            array.__class__ is np.ndarray
            and array.shape == self.shape
            and array.dtype == self.dtype
            and array.flags.c_contiguous
        )

    def checked(self, value: Any) -> npt.NDArray[Any]:
        """Returns an argument in host memory as a C-contiguous numpy array that shares its memory.

        The caller keeps ``value`` alive. Raises UsageError for another type, shape or strides, for masked
        arrays, which would be read without their masks, and for memory that is not the host's.
        """
        array = self.in_host_memory(value)
        if self.fits(array):
            return array
        self.require_type(array.shape, array.dtype)
        if not array.flags.c_contiguous:
            remedy = f"copy it: np.ascontiguousarray({self._variable})"
            if self.name == "out":
                remedy = f"make it: np.empty({self.shape}, {str(self.dtype)!r})"
            found = f"found strides {array.strides}, allowed a C-contiguous array"
            raise UsageError(f"{self.subject}: {found}; {remedy}")
        return array

    def checked_view(self, view: ArrayView) -> ArrayView:
        """Returns a view of an array in device memory; raises UsageError for another type, shape or order."""
        self.require_type(view.shape, view.dtype)
        row_major = MemRef.of(0, view.shape).strides
        if view.strides is not None and 0 not in view.shape:
            for size, stride, allowed in zip(view.shape, view.strides, row_major, strict=True):
                if size != 1 and stride != allowed:
                    found = f"found strides {view.strides}, allowed row-major {row_major}"
                    raise UsageError(f"{self.subject}: {found}")
        return view

    def in_host_memory(self, value: Any) -> npt.NDArray[Any]:
        """Returns an argument, of any shape and type, as a numpy array that shares its memory.

        Raises UsageError as ``checked`` does.
        """
        if isinstance(value, np.ma.MaskedArray):
            raise UsageError(f"{self.subject}: masked arrays are not supported: pass its .data or .filled()")
        if isinstance(value, np.ndarray):
            return value
        if not self.program or getattr(value, "__dlpack__", None) is None:
            allowed = "a numpy array"
            if self.program:
                allowed += ", or one of host memory by DLPack"
            remedy = f"convert it: np.asarray({self._variable}, {str(self.dtype)!r})"
            raise UsageError(f"{self.subject}: found {type(value).__name__}, allowed {allowed}; {remedy}")
        kind = dlpack_device(self.subject, value)
        if kind not in HOST_DEVICES:
            found = f"found memory of DLPack device {kind}, allowed the host's: {HOST_DEVICES}"
            raise UsageError(f"{self.subject}: {found}")
        view = dlpack_view(self.subject, value)
        strides = MemRef.of(0, view.shape).strides if view.strides is None else view.strides
        array = array_of(MemRef(view.address, view.address, 0, view.shape, strides), view.dtype)
        array.flags.writeable = not view.is_read_only
        return array

    def require_type(self, shape: tuple[int, ...], dtype: "np.dtype[Any]") -> None:
        """Raises UsageError, with a remedy, for another shape or type than expected."""
        is_shape = len(shape) == len(self.shape) and all(
            allowed in (None, size) for size, allowed in zip(shape, self.shape, strict=True)
        )
        is_type = dtype == self.dtype or (bool(self.program) and is_unsigned_form(dtype, self.dtype))
        if is_shape and is_type:
            return
        remedy = ""
        if is_shape:
            remedy = f"; convert it: {self._variable}.astype({str(self.dtype)!r})"
        elif not self.program:
            remedy = f"; {self._shape_remedy(shape)}"
        allowed = type_text(self.dtype, self.shape)
        raise UsageError(f"{self.subject}: found {type_text(dtype, shape)}, allowed {allowed}{remedy}")

    @property
    def _variable(self) -> str:
        """Returns the Python name of the array in the remedy that a message suggests."""
        return self.name if self.name.isidentifier() else "array"

    def _shape_remedy(self, shape: tuple[int, ...]) -> str:
        if shape != (*self.shape[:-2], *self.shape[:-3:-1]):
            return "a kernel is of one shape: load the best of this one"
        transposed = f"{self.name}.T" if len(shape) == 2 else f"{self.name}.swapaxes(-1, -2)"
        return f"transpose it: np.ascontiguousarray({transposed}), or tune a layout that stores it so"


def type_text(dtype: object, shape: Sequence[int | None]) -> str:
    """Returns the type of an array for messages: ``float32 of shape (4, ?)``, with ? for any size."""
    sizes = ", ".join("?" if size is None else str(size) for size in shape)
    if len(shape) == 1:
        sizes += ","
    return f"{dtype} of shape ({sizes})"


def require_writable(subject: str, *, is_read_only: bool) -> None:
    """Raises UsageError if the array that is passed as ``subject`` is read-only; it is written to."""
    if is_read_only:
        raise UsageError(f"{subject}: is read-only, but is written to")


def require_distinct(subject: str, other: str, *, is_shared: bool) -> None:
    """Raises UsageError if the written array ``subject`` has memory in common with the array ``other``."""
    if is_shared:
        raise UsageError(f"{subject}: is written to, but shares memory with {other}")


def is_unsigned_form(dtype: "np.dtype[Any]", expected: "np.dtype[Any]") -> bool:
    """Returns whether ``dtype`` is of unsigned integers as wide as the signed ones of ``expected``."""
    return dtype.kind == "u" and expected.kind == "i" and dtype.itemsize == expected.itemsize


def device_array(name: str, array: Any, stream: int) -> ArrayView:
    """Returns a view of an array in CUDA memory, exported by DLPack or ``__cuda_array_interface__``.

    ``name``: of the argument, which begins messages; ``stream``: on which the array will be read. Raises
    UsageError for an array that is not in CUDA memory, a masked one, and an address that is not a multiple of
    16.
    """
    if isinstance(array, ArrayView):
        return _require_aligned(name, array)
    if getattr(array, "__dlpack__", None) is not None and not isinstance(array, np.ndarray):
        device_type = dlpack_device(name, array)
        if device_type not in CUDA_DEVICES:
            raise UsageError(
                f"{name}: found memory of DLPack device {device_type}, allowed CUDA: {CUDA_DEVICES}"
            )
        view = dlpack_view(name, array, stream=stream or 1)  # 1: the default stream in DLPack's protocol
        return _require_aligned(name, view)
    if getattr(array, "__cuda_array_interface__", None) is not None:
        return _require_aligned(name, _of_interface(name, array))
    raise UsageError(f"{name}: found {type(array).__name__}, allowed DLPack or __cuda_array_interface__")


def wait_for_producers(device: AbstractDevice, arrays: Iterable[ArrayView], stream: int | None) -> None:
    """Makes ``stream`` (None: the host) wait for streams on which ``arrays`` may still be computed."""
    for producer in {array.stream for array in arrays} - {None, stream}:
        assert producer is not None
        if stream is None:
            device.synchronize_stream(producer)
            continue
        event = device.create_event()
        device.record_event(event, producer)
        device.wait_event(stream, event)
        device.destroy_event(event)


def _of_interface(name: str, array: Any) -> ArrayView:
    fields = array.__cuda_array_interface__
    try:
        dtype = np.dtype(fields["typestr"])
        shape = tuple(map(int, fields["shape"]))
        address, is_read_only = fields["data"]
        strides = fields.get("strides")
        stream = fields.get("stream")
        steps = None if strides is None else tuple(stride // dtype.itemsize for stride in strides)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{name}: found a __cuda_array_interface__ that is not valid: {error!r}") from error
    if fields.get("mask") is not None:
        raise UsageError(f"{name}: masked arrays are not supported")
    if strides is not None and any(stride % dtype.itemsize for stride in strides):
        raise UsageError(f"{name}: found strides of {strides} bytes, allowed multiples of {dtype.itemsize}")
    return ArrayView(int(address or 0), shape, steps, dtype, array, bool(is_read_only), stream)


def _require_aligned(name: str, array: ArrayView) -> ArrayView:
    if 0 not in array.shape and array.address % ALIGN_BYTES:
        position = f"memory {array.address % ALIGN_BYTES} bytes past a multiple of {ALIGN_BYTES}"
        raise UsageError(
            f"{name}: found {position}, allowed a multiple: kernels read {ALIGN_BYTES} bytes at once"
        )
    return array


def overlap(first: range, other: range) -> bool:
    """Returns whether two ranges of byte addresses have an address in common."""
    return max(first.start, other.start) < min(first.stop, other.stop)


def stream_handle(stream: Any) -> int:
    """Returns the CUstream handle of a stream: an integer, or an object of PyTorch, CuPy or CUDA Python.

    Raises UsageError for an object without ``__cuda_stream__``, ``cuda_stream`` or ``ptr``.
    """
    if isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int(protocol()[1])  # (version, handle)
    for name in ("cuda_stream", "ptr"):
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    raise UsageError(
        f"stream: found {type(stream).__name__}, allowed a handle or an object with __cuda_stream__,"
        " cuda_stream or ptr"
    )


def read_npy(path: Path, subject: str) -> npt.NDArray[Any]:
    """Returns the array of a .npy file, read-only and memory-mapped: a wrong header allocates nothing.

    Raises UsageError for a file that is missing, unreadable or not .npy; its message starts with ``subject``.
    """
    try:
        with np.errstate(over="raise"):  # numpy multiplies the sizes of the header
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except UNREADABLE as error:
        line = (str(error) or type(error).__name__).splitlines()[0]
        raise UsageError(f"{subject}: cannot be read as .npy: {line}", similar_file_hint(path)) from error
    if not isinstance(array, np.ndarray):
        raise UsageError(f"{subject}: several arrays in one file: save one as .npy")
    return array
