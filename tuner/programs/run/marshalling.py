"""Converts Python values to arguments of compiled code, and the code's results to Python values."""

import ctypes
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.device import AbstractHostWatch
from tuner.core.device_programs import BufferType, DeviceProgram, ScalarType, ValueType
from tuner.core.errors import UsageError
from tuner.core.numpy_types import dtype_of
from tuner.runtime.arrays import (
    DeviceArray,
    MemRef,
    array_of,
    device_array,
    dlpack_device,
    dlpack_view,
    overlap,
    word_count,
)

WORD_BYTES = 8
NO_NUMBERS = (np.flexible, np.complexfloating, np.datetime64, np.timedelta64, np.object_)
HOST_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost; dlpack.h
NOT_ALLOCATED = 0xDEADBEEF  # the allocated pointer that finalize-memref-to-llvm gives a global
Returned = tuple["MemRef | np.generic", ...]


def is_same_bits(dtype: "np.dtype[np.generic]", expected: "np.dtype[np.generic]") -> bool:
    """Returns whether an array of dtype ``dtype`` can be passed as ``expected`` without conversion.

    It can for equal types, and for unsigned integers of the same width: MLIR's integers have no sign.
    """
    if dtype == expected:
        return True
    return dtype.kind == "u" and expected.kind == "i" and dtype.itemsize == expected.itemsize


@dataclass(frozen=True, eq=False)
class PassedArgument:
    """One checked argument of a call, as bytes that compiled code takes."""

    content: bytes  # bytes of the memref descriptor, or of the number
    is_buffer: bool
    host: npt.NDArray[Any] | None  # memory that the program reads and may write
    owner: object  # object that keeps the memory alive

    @property
    def memory(self) -> range:
        """Returns the addresses of an array's bytes, in host or device memory; empty for a number."""
        if self.host is not None:
            return range(self.host.ctypes.data, self.host.ctypes.data + self.host.nbytes)
        if isinstance(self.owner, DeviceArray):
            return self.owner.memory
        return range(0)


def descriptor_of(address: int, shape: tuple[int, ...]) -> bytes:
    """Returns the bytes of the memref descriptor of a row-major array at an address."""
    return np.array(MemRef.of(address, shape).words, np.int64).tobytes()


def pass_value(
    name: str, value: object, expected: ValueType, program: DeviceProgram, stream: int
) -> PassedArgument:
    """Checks an argument and converts it to the form in which compiled code takes it; copies no array.

    ``name``: of the argument, in messages. ``stream``: handle of the stream on which the array is used.
    Raises UsageError for another type, shape, strides or kind of memory.
    """
    if isinstance(expected, ScalarType):
        return PassedArgument(_number(name, value, expected), False, None, None)
    if program.device_arguments:
        memory = device_array(name, value, stream)
        _check_type(name, memory.dtype, memory.shape, expected)
        if not memory.is_row_major:
            raise UsageError(f"{name}: found strides {memory.strides}, allowed row-major {memory.row_major}")
        return PassedArgument(descriptor_of(memory.address, memory.shape), True, None, memory)
    array = checked_host_array(name, value, expected)
    return PassedArgument(descriptor_of(array.ctypes.data, array.shape), True, array, (value, array))


def checked_host_array(name: str, value: object, expected: BufferType) -> npt.NDArray[Any]:
    """Returns an argument in host memory as a C-contiguous numpy array that shares its memory.

    ``name`` is the argument's name in messages; the caller keeps ``value`` alive. Raises UsageError for
    another element type, shape or strides, and for memory that is not the host's.
    """
    array = host_array(name, value)
    _check_type(name, array.dtype, array.shape, expected)
    if not array.flags.c_contiguous:
        raise UsageError(
            f"{name}: found strides {array.strides}, allowed a C-contiguous array; copy it: "
            "np.ascontiguousarray"
        )
    return array


def pass_arguments(
    program: DeviceProgram, arguments: tuple[object, ...], stream: int
) -> tuple[PassedArgument, ...]:
    """Checks and converts all arguments of a call; ``stream`` is the handle of the call's stream.

    Raises UsageError for another number of arguments, for an argument of another type, shape, strides or kind
    of memory, and for an array that is written and is read-only or overlaps another argument.
    """
    entry = program.entry
    expected = program.arguments
    if len(arguments) != len(expected):
        raise UsageError(f"{entry}: found {len(arguments)} arguments, allowed {len(expected)}")
    passed: list[PassedArgument] = []
    for index, (value, type_) in enumerate(zip(arguments, expected, strict=True)):
        name = f"{entry}: argument {index}"
        passed.append(pass_value(name, value, type_, program, stream))
        if program.written[index]:
            check_writable(name, passed[-1])
    check_distinct(program, tuple(passed))
    return tuple(passed)


def check_writable(name: str, passed: PassedArgument) -> None:
    """Raises UsageError if an argument that the program writes is a read-only array."""
    is_read_only = passed.host is not None and not passed.host.flags.writeable
    if is_read_only or (isinstance(passed.owner, DeviceArray) and passed.owner.is_read_only):
        raise UsageError(f"{name}: is read-only, but is written to")


def check_distinct(program: DeviceProgram, passed: tuple[PassedArgument, ...]) -> None:
    """Raises UsageError where an array that the program writes shares memory with another argument.

    Each argument may have its own buffer on the device, so writes would be lost.
    """
    for (number, argument), (other, another) in itertools.permutations(enumerate(passed), 2):
        if program.written[number] and overlap(argument.memory, another.memory):
            raise UsageError(
                f"{program.entry}: argument {number}, which is written, shares memory with argument {other}"
            )


class CallFrame:
    """The memory of one call: an array of pointers to arguments, at ``address``, and space for results."""

    def __init__(
        self, arguments: tuple[PassedArgument, ...], streams: tuple[int, ...], results: tuple[ValueType, ...]
    ) -> None:
        self._layout = ResultLayout(results)
        self._storage = ctypes.create_string_buffer(max(self._layout.size_bytes, WORD_BYTES))
        self._kept: list[Any] = []
        slots: list[int] = []
        for passed in arguments:
            content = self._keep(ctypes.create_string_buffer(passed.content, len(passed.content)))
            slots.append(self._keep(ctypes.c_uint64(content)) if passed.is_buffer else content)
        slots += [self._keep(ctypes.c_uint64(stream)) for stream in streams]
        storage = ctypes.addressof(self._storage)
        if self._layout.is_struct:  # the first argument points to the struct
            slots.insert(0, self._keep(ctypes.c_uint64(storage)))
        elif results:
            slots.append(storage)
        self._slots = (ctypes.c_uint64 * max(len(slots), 1))(*slots)
        self.address = ctypes.addressof(self._slots)

    def results(self) -> tuple["MemRef | np.generic", ...]:
        """Returns the results that a call has written: numbers, and memref descriptors of buffers."""
        return self._layout.read(self._storage.raw)

    def _keep(self, value: Any) -> int:
        self._kept.append(value)
        return ctypes.addressof(value)


class ResultLayout:
    """Where compiled code writes its results: a single number is returned; everything else is in a struct."""

    def __init__(self, results: tuple[ValueType, ...]) -> None:
        self._results = results
        self._starts: list[int] = []
        self.size_bytes = 0
        for result in results:
            size, alignment = _extent(result)
            start = -(-self.size_bytes // alignment) * alignment
            self._starts.append(start)
            self.size_bytes = start + size

    @property
    def is_struct(self) -> bool:
        """Returns whether the results are in a struct, whose address is the first argument of the call."""
        return len(self._results) > 1 or any(isinstance(result, BufferType) for result in self._results)

    def read(self, content: bytes) -> tuple["MemRef | np.generic", ...]:
        """Returns the results from the bytes that a call has written: numbers and memref descriptors."""
        values: list[MemRef | np.generic] = []
        for result, start in zip(self._results, self._starts, strict=True):
            if isinstance(result, BufferType):
                words = np.frombuffer(content, np.int64, word_count(len(result.shape)), start)
                values.append(MemRef.of_words(tuple(words.tolist())))
            else:
                values.append(np.frombuffer(content, dtype_of(result.element), 1, start)[0])
        return tuple(values)


def view_of(view: MemRef, result: BufferType) -> npt.NDArray[Any]:
    """Returns a numpy array on the result buffer in host memory that a memref descriptor describes."""
    return array_of(view, dtype_of(result.element))


def _extent(result: ValueType) -> tuple[int, int]:
    # size and alignment in bytes, in LLVM's struct layout on x86-64
    if isinstance(result, BufferType):
        return word_count(len(result.shape)) * WORD_BYTES, WORD_BYTES
    size = dtype_of(result.element).itemsize
    return size, size


def _number(name: str, value: Any, expected: ScalarType) -> bytes:
    if not isinstance(value, int | float | np.generic) or isinstance(value, NO_NUMBERS):
        raise UsageError(f"{name}: found {type(value).__name__}, allowed a number of type {expected.element}")
    dtype = dtype_of(expected.element)
    is_whole = dtype.kind in "ib"
    refusal = UsageError(f"{name}: found {value}, allowed a number of type {expected.element}")
    try:
        with np.errstate(over="ignore"):
            content: Any = np.array([int(value) if is_whole else value], dtype)  # rounds floats
    except (OverflowError, ValueError):  # int(nan) raises ValueError
        raise refusal from None
    if is_whole:
        is_kept = int(content[0]) == value
    else:
        is_kept = math.isfinite(content[0]) or not math.isfinite(value)
    if not is_kept:
        raise refusal
    return bytes(content.tobytes())


def _check_type(
    name: str, dtype: "np.dtype[np.generic]", shape: tuple[int, ...], expected: BufferType
) -> None:
    wanted = dtype_of(expected.element)
    is_shape = len(shape) == len(expected.shape) and all(
        allowed is None or size == allowed for size, allowed in zip(shape, expected.shape, strict=True)
    )
    if not is_shape or not is_same_bits(dtype, wanted):
        allowed = "x".join("?" if size is None else str(size) for size in expected.shape)
        remedy = f"; convert it: .astype({str(wanted)!r})" if is_shape else ""
        raise UsageError(
            f"{name}: found {dtype} of shape {'x'.join(map(str, shape))}, "
            f"allowed {wanted} of shape {allowed}{remedy}"
        )


def host_array(name: str, value: Any) -> npt.NDArray[Any]:
    """Returns an argument in host memory as a numpy array that shares its memory; the caller keeps it alive.

    ``name``: of the argument, in messages. Raises UsageError for masked arrays, for memory that is not the
    host's, and for objects that are not arrays.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise UsageError(f"{name}: masked arrays are not supported: pass its .data or .filled()")
    if isinstance(value, np.ndarray):
        return value
    if getattr(value, "__dlpack__", None) is None:
        raise UsageError(
            f"{name}: found {type(value).__name__}, allowed a numpy array, or one of host memory by DLPack"
        )
    kind = dlpack_device(name, value)
    if kind not in HOST_DEVICES:
        raise UsageError(f"{name}: found memory of DLPack device {kind}, allowed the host's: {HOST_DEVICES}")
    view = dlpack_view(name, value)
    strides = MemRef.of(0, view.shape).strides if view.strides is None else view.strides
    array = array_of(MemRef(view.address, view.address, 0, view.shape, strides), view.dtype)
    array.flags.writeable = not view.is_read_only
    return array


def copied(returned: Returned, program: DeviceProgram, watch: AbstractHostWatch | None) -> tuple[Any, ...]:
    """Returns the results of a call as numbers and as numpy arrays with copies of the returned buffers.

    ``watch``, if given, is notified of the host's reads of these buffers.
    """
    for value, type_ in zip(returned, program.results, strict=True):
        if watch is not None and isinstance(value, MemRef):
            item_bytes = dtype_of(type_.element).itemsize
            watch.host_reads(value.address(item_bytes), value.extent_bytes(item_bytes))
    return tuple(
        result.copy() if isinstance(result, np.ndarray) else result for result in viewed(returned, program)
    )


def viewed(returned: Returned, program: DeviceProgram) -> tuple[Any, ...]:
    """Returns the results of a call as numbers, and as numpy arrays on the returned buffers, not copied."""
    return tuple(
        view_of(value, type_) if isinstance(value, MemRef) and isinstance(type_, BufferType) else value
        for value, type_ in zip(returned, program.results, strict=True)
    )


def allocated_for_results(returned: Returned, passed: tuple[PassedArgument, ...]) -> set[int]:
    """Returns the addresses of result buffers that the caller of the program has to free.

    Results that are arguments or constants are not among them.
    """
    mine = {argument.host.ctypes.data for argument in passed if argument.host is not None}
    addresses = {result.allocated for result in returned if isinstance(result, MemRef)}
    return addresses - mine - {NOT_ALLOCATED}


def notify_after_call(
    passed: tuple[PassedArgument, ...], program: DeviceProgram, watch: AbstractHostWatch | None
) -> None:
    """Notifies ``watch`` that the caller may read written arguments and overwrite others after a call.

    ``watch`` belongs to a device that checks host accesses; None: does nothing.
    """
    for argument, is_written in zip(passed, program.written, strict=True):
        if watch is not None and argument.host is not None and argument.host.nbytes:
            # the caller may now read what the call has written, and overwrite what the call has read: work on
            # the array that is not done yet is reported as a race with that
            note = watch.host_reads if is_written else watch.host_writes
            note(argument.host.ctypes.data, argument.host.nbytes)
