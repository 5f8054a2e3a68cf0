"""Converts Python values to arguments of compiled code, and the code's results to Python values.

``pass_arguments`` checks the values of a call and gives PassedArguments, a ``CallFrame`` is the array of
pointers that compiled code takes, and a ``ResultLayout`` reads what the code returned.
"""

import ctypes
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.device import AbstractHostWatch
from tuner.core.device_programs import BufferType, DeviceProgram, ScalarType, ValueType
from tuner.core.errors import UsageError
from tuner.core.numpy_types import dtype_of
from tuner.runtime.arrays import (
    ArrayView,
    ExpectedArray,
    MemRef,
    array_of,
    device_array,
    overlap,
    require_distinct,
    require_writable,
    word_count,
)

WORD_BYTES = 8
NO_NUMBERS = (np.flexible, np.complexfloating, np.datetime64, np.timedelta64, np.object_)
NOT_ALLOCATED = 0xDEADBEEF  # the allocated pointer that finalize-memref-to-llvm gives a global
Returned = tuple["MemRef | np.generic", ...]


@dataclass(frozen=True, eq=False)
class PassedArgument:
    """One checked argument of a call, as bytes that compiled code takes."""

    content: bytes  # bytes of the memref descriptor, or of the number
    is_buffer: bool
    view: ArrayView | None = None  # memory that the program reads and may write; None: a number
    is_on_host: bool = False  # the memory is the host's

    @property
    def memory(self) -> range:
        """Returns the addresses of an array's bytes, in host or device memory; empty for a number."""
        return range(0) if self.view is None else self.view.memory


def descriptor_of(address: int, shape: tuple[int, ...]) -> bytes:
    """Returns the bytes of the memref descriptor of a row-major array at an address."""
    return np.array(MemRef.of(address, shape).words, np.int64).tobytes()


def expected_array(entry: str, index: int, type_: BufferType) -> ExpectedArray:
    """Returns what is expected of the array that the program ``entry`` takes as argument ``index``."""
    return ExpectedArray(f"argument {index}", type_.shape, dtype_of(type_.element), entry)


def checked_host_arrays(
    entry: str, types: Sequence[BufferType], arguments: Sequence[object]
) -> tuple[npt.NDArray[Any], ...]:
    """Returns the arguments of a call as C-contiguous numpy arrays that share their memory.

    ``entry`` is the name of the program, in messages; the caller keeps ``arguments`` alive. Raises UsageError
    for another number of arguments, another element type, shape or strides, and for memory that is not the
    host's.
    """
    require_count(entry, len(types), len(arguments))
    pairs = zip(types, arguments, strict=True)
    return tuple(
        expected_array(entry, index, type_).checked(value) for index, (type_, value) in enumerate(pairs)
    )


def require_count(entry: str, expected: int, found: int) -> None:
    """Raises UsageError if a call has ``found`` arguments and the program ``entry`` takes another number."""
    if found != expected:
        raise UsageError(f"{entry}: found {found} arguments, allowed {expected}")


def pass_value(program: DeviceProgram, index: int, value: object, stream: int) -> PassedArgument:
    """Checks argument ``index`` of a call; returns it in the form that compiled code takes, without a copy.

    ``stream``: handle of the stream on which the array is used. Raises UsageError for another type, shape,
    strides or kind of memory, and for a read-only array that the program writes.
    """
    type_ = program.arguments[index]
    if isinstance(type_, ScalarType):
        return PassedArgument(_number(f"{program.entry}: argument {index}", value, type_), False)
    expected = expected_array(program.entry, index, type_)
    if program.device_arguments:
        view = expected.checked_view(device_array(expected.subject, value, stream))
    else:
        array = expected.checked(value)
        is_read_only = not array.flags.writeable
        view = ArrayView(array.ctypes.data, array.shape, None, array.dtype, (value, array), is_read_only)
    if program.written[index]:
        require_writable(expected.subject, is_read_only=view.is_read_only)
    content = descriptor_of(view.address, view.shape)
    return PassedArgument(content, True, view, is_on_host=not program.device_arguments)


def pass_arguments(
    program: DeviceProgram, arguments: tuple[object, ...], stream: int
) -> tuple[PassedArgument, ...]:
    """Checks and converts all arguments of a call; ``stream`` is the handle of the call's stream.

    Raises UsageError for another number of arguments, as ``pass_value`` does, and for an array that is
    written and overlaps another argument: each may have its own buffer on the device, so writes would be
    lost.
    """
    require_count(program.entry, len(program.arguments), len(arguments))
    passed = tuple(pass_value(program, index, value, stream) for index, value in enumerate(arguments))
    for (index, argument), (other, another) in itertools.permutations(enumerate(passed), 2):
        is_shared = program.written[index] and overlap(argument.memory, another.memory)
        require_distinct(f"{program.entry}: argument {index}", f"argument {other}", is_shared=is_shared)
    return passed


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
    mine = {argument.memory.start for argument in passed if argument.is_on_host}
    addresses = {result.allocated for result in returned if isinstance(result, MemRef)}
    return addresses - mine - {NOT_ALLOCATED}


def notify_after_call(
    passed: tuple[PassedArgument, ...], program: DeviceProgram, watch: AbstractHostWatch | None
) -> None:
    """Notifies ``watch`` that the caller may read written arguments and overwrite others after a call.

    ``watch`` belongs to a device that checks host accesses; None: does nothing.
    """
    for argument, is_written in zip(passed, program.written, strict=True):
        if watch is not None and argument.is_on_host and argument.memory:
            # the caller may now read what the call has written, and overwrite what the call has read: work on
            # the array that is not done yet is reported as a race with that
            note = watch.host_reads if is_written else watch.host_writes
            note(argument.memory.start, len(argument.memory))
