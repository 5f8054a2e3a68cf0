"""The packed weights of programs: which a program needs, and one array in a process for equal contents.

A weight that two fusions read alike is packed once, one that they read differently twice. Programs of other
numbers of rows, or that were compiled again, find the arrays that an earlier program has packed.
"""

import contextlib
import mmap
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from tuner.core.dtypes import number_type
from tuner.core.fusions import WEIGHT, FusedProgram, View
from tuner.core.packings import FusionCode, WeightPacking
from tuner.core.progress import CompileObserver, WeightsPacked, ignore_compile_event
from tuner.payload.packed_weights import pack, packed_shape
from tuner.runtime.process_state import thread_lock

ALIGNMENT_BYTES = 64
LARGE_PAGE_BYTES = 2 * 2**20  # of x86-64
ROW_WORDS = 1024  # of a checksum, each of 64 bits
BLOCK_ROWS = 64  # that are read twice, half a MB: a second level of cache keeps them
Array = npt.NDArray[Any]
Key = tuple[int, View | None, WeightPacking | None]  # index of the buffer; the view only of a packed one


@dataclass(frozen=True)
class PlannedWeight:
    """A weight as fusions read it.

    Which weight of the program, which part of its buffer, how it is packed.
    """

    weight: int  # which of the program's weights
    bytes: int
    view: View | None = None  # of the weight's buffer, where a part of it is packed
    packing: WeightPacking | None = None  # None: the buffer as it is


@dataclass(frozen=True)
class WeightPlan:
    """The packed weights of a program, in the order of their pointers in the frame."""

    weights: tuple[PlannedWeight, ...]
    by_key: tuple[tuple[Key, int], ...]  # -> index into ``weights``

    @property
    def weight_bytes(self) -> tuple[int, ...]:
        """Returns the size of each packed weight."""
        return tuple(planned.bytes for planned in self.weights)

    def place(self, view: View, packing: WeightPacking | None) -> tuple[int, int]:
        """Returns which of ``weights`` a fusion reads, and the offset in bytes of the first element it reads.

        ``view``: the weight's view that the fusion reads; ``packing``: None for a weight that is not packed.
        """
        inside = 0 if packing else view.offset * number_type(view.type.element).bytes
        return self._indices[_key(view, packing)], inside

    @cached_property
    def _indices(self) -> dict[Key, int]:
        return dict(self.by_key)


def weight_plan(program: FusedProgram, codes: Sequence[FusionCode]) -> WeightPlan:
    """Returns the packed weights of a program, each once per packing.

    ``codes``: the code of each of ``program.fusions``, in order. Raises ValueError for a packed view that is
    not a matrix.
    """
    planned: dict[Key, PlannedWeight] = {}
    for fusion, code in zip(program.fusions, codes, strict=True):
        for view, packing in zip(fusion.inputs, code.packings, strict=True):
            buffer = program.buffers[view.buffer]
            key = _key(view, packing)
            if buffer.owner != WEIGHT or key in planned:
                continue
            size = packed_bytes(view, packing) if packing else buffer.type.bytes
            _, packed_view, _ = key
            planned[key] = PlannedWeight(buffer.number, size, packed_view, packing)
    by_key = tuple((key, index) for index, key in enumerate(planned))
    return WeightPlan(tuple(planned.values()), by_key)


def packed_bytes(view: View, packing: WeightPacking) -> int:
    """Returns the number of bytes of a packed weight. Raises ValueError for a view that is not a matrix."""
    return prod(packed_shape(view.type.shape, packing)) * number_type(view.type.element).bytes


def packed_weights(
    plan: WeightPlan,
    parts: Iterable[Callable[[], Mapping[int, Array]]],
    observe: CompileObserver = ignore_compile_event,
    threads: int = 1,
) -> tuple[Array, ...]:
    """Packs weights as ``plan`` says; returns read-only arrays of bytes.

    ``parts``: calls that return weights by number, some each. Each is called on one of ``threads`` threads,
    which packs its weights before it calls the next. ``observe``: called after each weight. An array that a
    program of this process holds is returned in place of a new one of equal contents.
    """
    readers: dict[int, list[int]] = {}
    for index, planned in enumerate(plan.weights):
        readers.setdefault(planned.weight, []).append(index)
    packed: dict[int, Array] = {}
    total_bytes = sum(plan.weight_bytes)

    def pack_part(part: Callable[[], Mapping[int, Array]]) -> None:
        for weight, array in part().items():
            for index in readers.get(weight, ()):
                packed[index] = _SHARED.array_like(_packed(plan.weights[index], array))
                observe(WeightsPacked(sum(map(len, list(packed.values()))), total_bytes))

    with ThreadPoolExecutor(threads) as pool:  # numpy's copies run side by side
        for future in [pool.submit(pack_part, part) for part in parts]:
            future.result()
    return tuple(packed[index] for index in range(len(plan.weights)))


def unpacked_weights(
    numbers: Sequence[int], parts: Iterable[Callable[[], Mapping[int, Array]]]
) -> tuple[Array, ...]:
    """Returns copies of the weights ``numbers``, row by row, as read-only arrays of bytes.

    ``parts``: as of ``packed_weights``. Arrays are shared as those of ``packed_weights``.
    """
    copies: dict[int, Array] = {}
    for part in parts:
        for number, array in part().items():
            if number in numbers:
                content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
                copies[number] = _SHARED.array_like(aligned_copy(content))
    return tuple(copies[number] for number in numbers)


def _packed(planned: PlannedWeight, weight: Array) -> Array:
    packed = weight_memory(planned.bytes)
    target = packed.view(weight.dtype)
    if planned.packing is None or planned.view is None:
        target.reshape(weight.shape)[...] = weight
        return packed
    pack(_viewed(weight, planned.view), planned.packing, target)
    return packed


def _viewed(weight: Array, view: View) -> Array:
    """Returns the elements of a view of a weight's buffer; of the whole buffer the weight itself.

    ``view``: of the buffer, which has the elements of ``weight`` in row-major order.
    """
    shape = view.type.shape
    in_order = tuple(prod(shape[dimension + 1 :]) for dimension in range(len(shape)))
    if weight.shape == shape and not view.offset and view.strides == in_order:
        return weight
    flat = np.ascontiguousarray(weight).reshape(-1)
    strides = [stride * weight.itemsize for stride in view.strides]
    return np.lib.stride_tricks.as_strided(flat[view.offset :], shape, strides, writeable=False)


def checksum(content: Array) -> int:
    """Returns 32 bits that differ for bytes that were changed by accident, computed by numpy alone.

    ``content``: an array of bytes. Its words are a matrix, of which rows and columns are added modulo 2**64;
    the result is the CRC-32 of these sums, and of the bytes that are left. That reads 4 GB/s, a CRC-32 of all
    bytes 0.4 to 1.
    """
    whole = content.size - content.size % (ROW_WORDS * 8)
    words = content[:whole].view(np.uint64).reshape(-1, ROW_WORDS)
    rows = np.empty(len(words), np.uint64)
    columns = np.zeros(ROW_WORDS, np.uint64)
    for first in range(0, len(words), BLOCK_ROWS):
        block = words[first : first + BLOCK_ROWS]
        np.add.reduce(block, axis=1, out=rows[first : first + BLOCK_ROWS])
        columns += np.add.reduce(block, axis=0)
    return zlib.crc32(content[whole:].data, zlib.crc32(rows.data, zlib.crc32(columns.data)))


def aligned_size(size: int) -> int:
    """Returns the next multiple of 64 bytes from ``size`` on."""
    return -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def aligned_bytes(size: int) -> Array:
    """Returns an uninitialized array of bytes that begins at a multiple of 64 bytes."""
    owner = np.empty(size + ALIGNMENT_BYTES, np.uint8)
    start = -owner.ctypes.data % ALIGNMENT_BYTES
    return owner[start : start + size]


def weight_memory(size: int) -> Array:
    """Returns an array of bytes for a weight that begins at a multiple of 64 bytes, on large pages if it can.

    A weight that is read once per call is read faster from large pages, of which malloc gives a weight of
    some MB few: it begins anywhere. What is left after whole large pages is on small ones.
    """
    if size < LARGE_PAGE_BYTES or not hasattr(mmap, "MADV_HUGEPAGE"):
        return aligned_bytes(size)
    memory = mmap.mmap(-1, size + LARGE_PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    owner = np.frombuffer(memory, np.uint8)
    start = -owner.ctypes.data % LARGE_PAGE_BYTES
    with contextlib.suppress(OSError):  # a kernel without large pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)  # else a system that gives them unasked adds one for the rest
        memory.madvise(mmap.MADV_HUGEPAGE, start, size - size % LARGE_PAGE_BYTES)
    return owner[start : start + size]


def aligned_copy(array: Array) -> Array:
    """Returns a copy of an array of bytes, in memory for a weight."""
    copy = weight_memory(array.size)
    copy[...] = array
    return copy


def _key(view: View, packing: WeightPacking | None) -> Key:
    return (view.buffer, view if packing else None, packing)


class SharedWeights:
    """Arrays that programs hold, to be found by their contents; an array that nobody holds is freed.

    Arrays are found by a checksum, and compared as a whole: no two weights are mistaken for each other.
    """

    def __init__(self) -> None:
        self._lock = thread_lock()
        self._known: WeakValueDictionary[tuple[int, int], Array] = WeakValueDictionary()

    def array_like(self, array: Array) -> Array:
        """Returns the array of these contents that somebody holds; else ``array``, to be found from now on.

        ``array``: of bytes. The result is read-only, and begins at a multiple of 64 bytes.
        """
        key = (array.size, checksum(array))
        with self._lock:
            known = self._known.get(key)
        if known is not None and np.array_equal(known, array):
            return known
        own = array
        if not _is_placed(array):
            own = aligned_copy(array)
        own.flags.writeable = False
        if known is not None:  # another weight of this checksum keeps its place
            return own
        with self._lock:
            first = self._known.setdefault(key, own)
        if first is own or np.array_equal(first, own):
            return first
        return own  # another thread was faster, with another weight of this checksum


def _is_placed(array: Array) -> bool:
    if array.size >= LARGE_PAGE_BYTES and array.ctypes.data % LARGE_PAGE_BYTES:
        return False
    return bool(array.ctypes.data % ALIGNMENT_BYTES == 0)


# process-wide on purpose: programs of one process share their weights
_SHARED = SharedWeights()


def shared_weights(arrays: Iterable[Array]) -> tuple[Array, ...]:
    """Returns, for each array of bytes, the array of equal contents that this process shares.

    Results are read-only and begin at multiples of 64 bytes; an array that is new is shared from now on,
    itself or as an aligned copy. ``arrays`` is read one by one: of a generator, an array whose contents were
    known is freed before the next one is made.
    """
    return tuple(map(_SHARED.array_like, arrays))
