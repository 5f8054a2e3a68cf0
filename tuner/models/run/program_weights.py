"""The packed weights of programs: which a program needs, and one array in a process for equal contents.

A weight that two fusions read alike is packed once, one that they read differently twice. Programs of other
numbers of rows, or that were compiled again, find the arrays that an earlier program has packed: large
weights by what they are computed from, before they are packed; others by their packed contents.
"""

import contextlib
import mmap
import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
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
from tuner.runtime.process_state import return_free_memory, thread_lock

ALIGNMENT_BYTES = 64
LARGE_PAGE_BYTES = 2 * 2**20  # of x86-64
LARGE_BYTES = 4 * 2**20  # of weights that were packed: what is free then goes back to the system
SLAB_BYTES = 4 * LARGE_PAGE_BYTES  # of memory for weights that are smaller than a large page
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


@dataclass(frozen=True)
class WeightPart:
    """Weights of a program that are computed together, on any thread."""

    numbers: tuple[int, ...]  # of the weights
    inputs: Callable[[], tuple[Array, ...]]  # returns what they are computed from
    compute: Callable[[tuple[Array, ...]], Sequence[Array]]  # returns them of the inputs, in order
    code: Hashable = ""  # equal for parts that compute equal weights of equal inputs

    def arrays(self) -> dict[int, Array]:
        """Returns the weights by number."""
        return dict(zip(self.numbers, self.compute(self.inputs()), strict=True))


def known_parts(weights: Mapping[int, Array]) -> tuple[WeightPart, ...]:
    """Returns a part for each of ``weights``, arrays by number."""
    return tuple(WeightPart((number,), partial(tuple, [array]), tuple) for number, array in weights.items())


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
    parts: Iterable[WeightPart],
    observe: CompileObserver = ignore_compile_event,
    threads: int = 1,
    content_of: Callable[[Array], Hashable] | None = None,
) -> tuple[Array, ...]:
    """Packs weights as ``plan`` says; returns read-only arrays of bytes.

    Each of ``parts`` is computed on one of ``threads`` threads, which packs its weights before it takes the
    next. ``observe``: called after each weight. An array that a program of this process holds is returned in
    place of a new one of equal contents. ``content_of``: tells what weights are computed from apart, so that
    held ones are found before they are computed and packed; None: they are found afterwards.
    """
    readers: dict[int, list[int]] = {}
    for index, planned in enumerate(plan.weights):
        readers.setdefault(planned.weight, []).append(index)
    packed: dict[int, Array] = {}
    total_bytes = sum(plan.weight_bytes)

    def pack_part(part: WeightPart) -> None:
        inputs = part.inputs()
        sources = {}
        if content_of is not None:
            sources = _sources(part, tuple(map(content_of, inputs)), plan, readers)
        known = _SHARED.arrays_from(sources)
        arrays: Sequence[Array] = ()
        if known is None:
            arrays = part.compute(inputs)
        for position, weight in enumerate(part.numbers):
            for index in readers.get(weight, ()):
                if known is None:
                    made = _packed(plan.weights[index], arrays[position])
                    packed[index] = _SHARED.array_like(made, sources.get(index), _SLABS.placed)
                else:
                    packed[index] = known[index]
                observe(WeightsPacked(sum(map(len, list(packed.values()))), total_bytes))
        is_large = sum(array.nbytes for array in arrays) >= LARGE_BYTES
        del inputs, arrays  # the last references
        if is_large:
            return_free_memory()

    with ThreadPoolExecutor(threads) as pool:  # numpy's copies run side by side
        for future in [pool.submit(pack_part, part) for part in parts]:
            future.result()
    return tuple(packed[index] for index in range(len(plan.weights)))


def _sources(
    part: WeightPart, contents: Hashable, plan: WeightPlan, readers: Mapping[int, Sequence[int]]
) -> dict[int, Hashable]:
    """Returns what each packed weight of a part is made from, by its index in the plan.

    Equal for equal packed weights: the code that computes the weight, the ``contents`` of what it is computed
    from, and how it is packed.
    """
    sources: dict[int, Hashable] = {}
    for position, weight in enumerate(part.numbers):
        for index in readers.get(weight, ()):
            planned = plan.weights[index]
            view = planned.view and replace(planned.view, buffer=0)  # whose number is the program's
            sources[index] = (part.code, contents, position, view, planned.packing)
    return sources


def unpacked_weights(numbers: Sequence[int], parts: Iterable[WeightPart]) -> tuple[Array, ...]:
    """Returns copies of the weights ``numbers``, row by row, as read-only arrays of bytes.

    ``parts``: as of ``packed_weights``. Arrays are shared as those of ``packed_weights``.
    """
    copies: dict[int, Array] = {}
    for part in parts:
        for number, array in part.arrays().items():
            if number in numbers:
                content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
                copies[number] = _SHARED.array_like(content, place=_SLABS.placed)
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
    some MB few: it begins anywhere. What is left after whole large pages is on small ones; so is a smaller
    weight; ``Slabs`` puts those together.
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


def aligned(array: Array) -> Array:
    """Returns an array of bytes itself where it begins as a weight has to, else a copy."""
    return array if _is_placed(array) else aligned_copy(array)


class Slabs:
    """Memory on large pages for weights that are smaller than one, one after the other.

    A call of a convolutional network reads some 100 weights of some KB to 2 MB: on small pages they have more
    addresses than a processor remembers. A slab is freed with the last array in it.
    """

    def __init__(self) -> None:
        self._lock = thread_lock()
        self._slab = np.empty(0, np.uint8)
        self._used = 0  # bytes of it

    def placed(self, array: Array) -> Array:
        """Returns a copy of an array of bytes on a slab; of a large one what ``aligned`` returns."""
        if array.size >= LARGE_PAGE_BYTES:
            return aligned(array)
        with self._lock:
            if self._used + array.size > self._slab.size:
                self._slab, self._used = weight_memory(SLAB_BYTES), 0
            copy = self._slab[self._used : self._used + array.size]
            self._used += aligned_size(array.size)
        copy[...] = array
        return copy


class SharedWeights:
    """Arrays that programs hold, to be found by their contents; an array that nobody holds is freed.

    Arrays are found by a checksum, and compared as a whole: no two weights are mistaken for each other. Those
    whose source is given are found by it, too, which the caller makes differ for different contents.
    """

    def __init__(self) -> None:
        self._lock = thread_lock()
        self._known: WeakValueDictionary[tuple[int, int], Array] = WeakValueDictionary()
        self._by_source: WeakValueDictionary[Hashable, Array] = WeakValueDictionary()

    def arrays_from(self, sources: Mapping[int, Hashable]) -> dict[int, Array] | None:
        """Returns the arrays that somebody holds, made from ``sources``; None where one of them is missing.

        Also None if ``sources`` is empty.
        """
        found = {}
        for index, source in sources.items():
            with self._lock:
                array = self._by_source.get(source)
            if array is None:
                return None
            found[index] = array
        return found or None

    def array_like(
        self, array: Array, source: Hashable = None, place: Callable[[Array], Array] = aligned
    ) -> Array:
        """Returns the array of these contents that somebody holds; else ``place(array)``, found from now on.

        ``array``: of bytes; ``source``: by which ``arrays_from`` finds it, too; None: by none; ``place``:
        returns the array or a copy that begins at a multiple of 64 bytes. The result is read-only.
        """
        shared = self._of_contents(array, place)
        if source is not None:
            with self._lock:
                self._by_source[source] = shared
        return shared

    def _of_contents(self, array: Array, place: Callable[[Array], Array]) -> Array:
        key = (array.size, checksum(array))
        with self._lock:
            known = self._known.get(key)
        if known is not None and np.array_equal(known, array):
            return known
        own = place(array)
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
_SLABS = Slabs()


def shared_weights(arrays: Iterable[Array]) -> tuple[Array, ...]:
    """Returns, for each array of bytes, the array of equal contents that this process shares.

    Results are read-only and begin at multiples of 64 bytes; an array that is new is shared from now on,
    itself or as an aligned copy. ``arrays`` is read one by one: of a generator, an array whose contents were
    known is freed before the next one is made.
    """
    return tuple(map(_SHARED.array_like, arrays))
