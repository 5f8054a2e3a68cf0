"""A compiled program of fusions as values: machine code, packed weights, results, threads of a call.

``FusedCode`` is the code, ``FusedImage`` the code with packed weights, as it is stored; a ``ResultPool``
gives the arrays for the results of a call, and a ``TeamCall`` runs the code on several threads.
"""

import ctypes
import operator
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from tuner.core.device_programs import BufferType, DeviceProgram
from tuner.core.dtypes import number_type
from tuner.core.errors import CandidateError, Stage
from tuner.core.fusions import TensorType
from tuner.core.programs import CompiledFusion
from tuner.core.serialization import decode, encode, form, left_out
from tuner.models.run.program_weights import (
    ALIGNMENT_BYTES,
    WeightPlan,
    aligned_bytes,
    known_parts,
    packed_weights,
    shared_weights,
)
from tuner.runtime.cpu.host import REFUSED, may_use_tiles, missing_sets, own_flags
from tuner.runtime.cpu.team_threads import process_team

if TYPE_CHECKING:
    from tuner.runtime.cpu.object_files import LoadedObject

# functions of the machine code
PROGRAM_ENTRY = "program"
SINGLE_ENTRY = "fusion_at"
PART_ENTRY = "program_part"  # what each thread of a program for several threads runs
# of the threads' team
MEMBER_ENTRY = "team_member"
REPEAT_ENTRY = "team_repeat"
# A part takes a pointer to its call, the thread's number and the number of threads; the call has a pointer
# to the frame, and on the next line of the cache two numbers, 0 at first: arrivals at barriers, sleepers.
PART_WORDS = 8
ARRIVALS_OFFSET = 64
CALL_BYTES = 128
Array = npt.NDArray[Any]
AMX = "amx-"  # begins the names of instruction sets that need a permission
TYPE_KEYS = form(TensorType, lambda type_: type_, lambda type_: type_, is_flat=True)
POOL_LIMIT = 4  # sets of results that are kept; a caller that holds more gets new ones


@dataclass(frozen=True)
class Fill:
    """Elements of the arena that get a value before the first call: a buffer with padding."""

    offset_bytes: int
    type: TensorType = field(metadata=TYPE_KEYS)
    value: float = field(metadata=form(str, repr, float))  # infinite, too, which JSON has not


def _fusion_document(fusion: CompiledFusion) -> dict[str, Any]:
    return {**encode(fusion), "knobs": dict(fusion.knobs)}


def _fusion_of(document: dict[str, Any]) -> CompiledFusion:
    knobs = [list(knob) for knob in dict(document["knobs"]).items()]
    return decode(CompiledFusion, {**document, "knobs": knobs}, "fusions")


FUSIONS = form(
    tuple[dict[str, Any], ...],
    lambda fusions: tuple(map(_fusion_document, fusions)),
    lambda documents: tuple(map(_fusion_of, documents)),
)


@dataclass(frozen=True, kw_only=True)
class FusedCode:
    """A program of fusions: its types, its machine code, and what the code expects in memory.

    The code takes a frame: an array of pointers to the arguments, the results, each packed weight and the
    arena, and a word. Code that ``asserts`` expects 0 there, and writes the address of the first text of a
    failing assertion; the results are then not defined.
    """

    entry: str  # name of the payload's function
    arguments: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    arena_bytes: int
    fills: tuple[Fill, ...]
    weight_bytes: tuple[int, ...]  # size of each packed weight
    needs: tuple[str, ...]  # instruction sets, as in tuner.core.processors
    compiler: str  # fingerprint
    threads: int = 1  # that the program was compiled for, or that ``tuner.load`` was given
    asserts: bool = False
    changed: tuple[int, ...] = ()  # numbers of the arguments that a call changes
    fusions: tuple[CompiledFusion, ...] = field(metadata=FUSIONS)
    object_code: bytes = field(default=b"", metadata=left_out())  # an object file of x86-64

    @property
    def weights_bytes(self) -> int:
        """Returns the size of all packed weights in bytes."""
        return sum(self.weight_bytes)

    @property
    def program(self) -> DeviceProgram:
        """Returns the entry and the types of the program as a ``DeviceProgram`` without code."""
        arguments, results = (
            tuple(BufferType(type_.element, type_.shape) for type_ in types)
            for types in (self.arguments, self.results)
        )
        written = tuple(number in self.changed for number in range(len(arguments)))
        return DeviceProgram("", self.entry, arguments, results, written)


@dataclass(frozen=True, eq=False)
class FusedImage:
    """The code of a program of fusions, with its packed weights.

    ``plan``: how the weights are packed; None for a program that was loaded from files.
    """

    code: FusedCode
    weights: tuple[Array, ...]  # of bytes; programs of a process share those of equal contents
    plan: WeightPlan | None = None

    def with_weights(self, weights: Sequence[Array]) -> Self:
        """Returns the program with other weights, which it packs; ``weights``: the arrays, in order.

        Raises ValueError for a program that was loaded from files.
        """
        if self.plan is None:
            raise ValueError("a loaded program does not say how its weights are packed")
        return replace(self, weights=packed_weights(self.plan, known_parts(dict(enumerate(weights)))))

    def with_shared_weights(self) -> Self:
        """Returns a program that came from another process, with the equal weights that this process has."""
        return replace(self, weights=shared_weights(self.weights))


def shared_memory(
    starts: Sequence[int], sizes: Sequence[int], changed: Collection[int]
) -> tuple[int, int] | None:
    """Returns the numbers of an array that a call changes and of one that shares its memory; None if none.

    ``starts`` and ``sizes``: address and bytes of each array; ``changed``: numbers of those that are changed.
    """
    ends = list(map(operator.add, starts, sizes))
    last = None  # of all arrays before, the one that ends last
    last_changed = None
    for number in sorted(range(len(starts)), key=starts.__getitem__):
        if not sizes[number]:
            continue
        is_changed = number in changed
        if last_changed is not None and starts[number] < ends[last_changed]:
            return last_changed, number
        if is_changed and last is not None and starts[number] < ends[last]:
            return number, last
        if last is None or ends[number] > ends[last]:
            last = number
        if is_changed:
            last_changed = number
    return None


def require_processor(needs: tuple[str, ...], what: str) -> None:
    """Raises CandidateError(LOAD) where this processor lacks an instruction set of ``needs``.

    Asks the operating system for AMX tiles if they are needed; a refusal is an error too. ``what`` is the
    name of the program in the message.
    """
    missing = missing_sets(needs, own_flags())
    if missing:
        raise CandidateError(
            Stage.LOAD, f"{what}: needs {' and '.join(missing)}, which this processor does not have"
        )
    if any(need.startswith(AMX) for need in needs) and not may_use_tiles():
        raise CandidateError(Stage.LOAD, f"{what}: {REFUSED}")


# Arrays for the results of a program, used again when nobody holds them: fresh pages cost time.
#
# An array is in use while there is a reference to it, to a view of it, or to a tensor that shares its memory.


def numpy_type(element: str) -> "np.dtype[Any]":
    """Returns the numpy type of an MLIR element type such as "f32"; raises UsageError for an unknown type."""
    try:
        return np.dtype(number_type(element).numpy_name)
    except TypeError:  # of ml_dtypes, which programs without such types do without
        from tuner.core.numpy_types import dtype_of  # may be missing

        return dtype_of(element)


@dataclass(frozen=True)
class ArrayType:
    """Shape and numpy type of a result."""

    shape: tuple[int, ...]
    dtype: "np.dtype[Any]"


class ResultSet:
    """The arrays for the results of one call, and the frame of pointers for that call."""

    def __init__(self, types: Sequence[ArrayType], arguments: int, last: tuple[int, ...]) -> None:
        """Allocates result arrays at multiples of 64 bytes, and a frame: arguments, results, then ``last``.

        ``arguments``: number of arguments, whose pointers are set later.
        """
        # numpy makes the owners, not ``arrays``, the base of a caller's views
        owners = tuple(np.empty(_bytes(type_) + ALIGNMENT_BYTES, np.uint8) for type_ in types)
        self.arrays: tuple[Array, ...] = tuple(
            _aligned(owner, type_) for owner, type_ in zip(owners, types, strict=True)
        )
        addresses = (*[0] * arguments, *[array.ctypes.data for array in self.arrays], *last)
        self.frame = (ctypes.c_uint64 * len(addresses))(*addresses)
        self.address = ctypes.addressof(self.frame)
        self._watched = [*self.arrays, *owners]
        del owners  # which would count as a reference
        self._free_counts = [*map(sys.getrefcount, self._watched)]

    @property
    def is_free(self) -> bool:
        """Returns whether nobody else refers to the arrays or their memory: a call may use them again."""
        return [*map(sys.getrefcount, self._watched)] == self._free_counts


class ResultPool:
    """Provides arrays for the results of calls, and uses arrays again that the caller has dropped.

    The arguments are those of ``ResultSet``. Calls with the same pool must not overlap in time.
    """

    def __init__(self, types: Sequence[ArrayType], arguments: int, last: tuple[int, ...]) -> None:
        self._of = (tuple(types), arguments, last)
        self._sets: list[ResultSet] = []

    def take(self) -> ResultSet:
        """Returns results that nobody refers to, or newly allocated ones. Their contents are arbitrary."""
        for results in self._sets:
            if results.is_free:
                return results
        made = ResultSet(*self._of)
        self._sets = [made, *self._sets[: POOL_LIMIT - 1]]
        return made


def _bytes(type_: ArrayType) -> int:
    return prod(type_.shape) * type_.dtype.itemsize


def _aligned(owner: Array, type_: ArrayType) -> Array:
    start = -owner.ctypes.data % ALIGNMENT_BYTES
    return owner[start : start + _bytes(type_)].view(type_.dtype).reshape(type_.shape)


class TeamCall:
    """Calls a program on several threads: the calling thread, and threads of the process's thread team."""

    def __init__(self, loaded: "LoadedObject", threads: int) -> None:
        self._team = process_team(loaded, MEMBER_ENTRY, REPEAT_ENTRY)
        self._part = loaded.addresses[PART_ENTRY]
        self._call = aligned_bytes(CALL_BYTES)
        self._call[...] = 0
        address = self._call.ctypes.data
        self._frame = ctypes.c_uint64.from_address(address)
        # the number of threads that sleep is next to it, and 0 between calls
        self._arrivals = ctypes.c_uint64.from_address(address + ARRIVALS_OFFSET)
        self._parts = aligned_bytes(threads * PART_WORDS * 8).view(np.uint64).reshape(threads, PART_WORDS)
        self._parts[:, 0] = address
        self._parts[:, 1] = range(threads)
        self._parts[:, 2] = threads
        self._arguments = tuple(int(part.ctypes.data) for part in self._parts)
        # threads inherit the processors of the thread that starts them, and a timing pins the caller later
        with self._team.lock:
            self._team.require(threads)

    def __call__(self, frame: int) -> None:
        with self._team.lock:
            self._frame.value = frame
            self._arrivals.value = 0
            self._team.run(self._part, self._arguments)
