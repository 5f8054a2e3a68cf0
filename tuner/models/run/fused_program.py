"""A program of fusions as a Python function."""

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Never

import numpy as np
import numpy.typing as npt

from tuner.core.device_programs import BufferType, DeviceProgram
from tuner.core.errors import UsageError
from tuner.core.fusions import TensorType
from tuner.core.typed_arguments import typed_arguments
from tuner.models.run.exported import save_program
from tuner.models.run.fused_code import (
    PROGRAM_ENTRY,
    SINGLE_ENTRY,
    ArrayType,
    FusedCode,
    ResultPool,
    TeamCall,
    numpy_type,
    require_processor,
    shared_memory,
)
from tuner.models.run.program_weights import aligned_bytes
from tuner.runtime.cpu.object_files import LoadedObject
from tuner.runtime.process_state import thread_lock
from tuner.runtime.programs.host_program import AbstractHostProgram, failed_assertion

# A program of fusions as a Python function: arrays in, arrays out, in a few microseconds.
#
# A call compares shape, type and order of each argument with those that the program takes, writes the
# addresses into a frame that was made once, and calls machine code. Whatever differs takes the slow path,
# which accepts other arrays of host memory (DLPack), or says in one line what is wrong.

Array = npt.NDArray[Any]
ndarray = np.ndarray
DATA_OFFSET_BYTES = 16  # of PyArrayObject.data: after the object's header of CPython, numpy's C API
_WORD_AT = ctypes.c_uint64.from_address
_PROBE = np.empty(1)


class FusedFunction(AbstractHostProgram):
    """A compiled program of fusions; it runs on ``code.threads`` threads."""

    load_again = "tuner.compile_program(payload), or tuner.load(folder)"
    why_no_fusions = ""

    def __init__(self, code: FusedCode, weights: tuple[Array, ...]) -> None:
        """Loads a program's code; ``weights``: its packed weights, arrays of bytes that must not change.

        Raises CandidateError(LOAD) where the code cannot be loaded or this processor cannot run it.
        """
        require_processor(code.needs, code.entry)
        self.code = code
        self.weights = weights
        self._loaded = LoadedObject(code.object_code)
        self._arena = _arena(code)
        self._function: Any = _entry(self._loaded, code.threads)
        self._single: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)(
            self._loaded.addresses[SINGLE_ENTRY]
        )
        types = list(map(_array_type, code.arguments))
        self._expected = tuple((type_.shape, type_.dtype, True) for type_ in types)
        self._sizes_bytes = tuple(type_.bytes for type_ in code.arguments)
        constants = (*weights, self._arena)
        last = (*[array.ctypes.data for array in constants], 0)
        if code.asserts:
            word = len(code.arguments) + len(code.results) + len(last) - 1
            self._function, self._single = (
                AssertingCode(function, word * 8) for function in (self._function, self._single)
            )
        self._pool = ResultPool(tuple(map(_array_type, code.results)), len(types), last)
        self._lock = thread_lock()

    def __repr__(self) -> str:
        """Returns one line: the function with its types, the number of fusions and of threads."""
        count = len(self.code.fusions)
        threads = self.code.threads
        return f"FusedFunction({self.program.signature}; fusions: {count}, threads: {threads})"

    def __call__(self, *arguments: Any, stream: object = None) -> Any:
        if stream is not None:
            raise UsageError(f"{self.code.entry}: takes no stream: the program runs on the host")
        self._lock.acquire()
        try:
            results = self._pool.take()
            if not self._fill(results.frame, arguments):
                arguments = self._checked(arguments)
                results.frame[: len(arguments)] = [argument.ctypes.data for argument in arguments]
            if self.code.changed:
                self._require_changeable(arguments)
            self._function(results.address)
            if len(results.arrays) == 1:
                return results.arrays[0]
            return tuple([*results.arrays]) or None  # noqa: C409 - a new tuple: the pool counts references
        finally:
            self._lock.release()

    def run(self, addresses: Sequence[int]) -> list[Array]:
        """Calls the code on arguments at addresses that are not checked: a wrong one ends the process.

        Args:
            addresses: where the arguments begin, C-contiguous memory that the caller keeps alive.

        Returns:
            The arrays of the results.

        Raises:
            CandidateError: an assertion of the program failed (stage RUN); it is an IndexError, too, where an
                index is out of range.

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> twice = "func.func @twice(%x: !t) -> !t { %y = arith.addf %x, %x : !t return %y : !t }"
            >>> payload = f"!t = tensor<4xf32> {twice}"
            >>> program = tuner.compile_program(payload, target="cpu")
            >>> x = np.ones(4, np.float32)
            >>> program.run([x.ctypes.data])
            [array([2., 2., 2., 2.], dtype=float32)]
        """
        with self._lock:
            results = self._pool.take()
            results.frame[: len(addresses)] = [*addresses]
            self._function(results.address)
            return [*results.arrays]  # references, before another thread looks for free results

    def run_into(self, arguments: Sequence[int], results: Sequence[int], weights: Sequence[int]) -> None:
        """Calls the code on arguments, results and packed weights at addresses that are not checked.

        Args:
            arguments: where the arguments begin, C-contiguous memory; the caller keeps all memory alive.
            results: where the results are written.
            weights: where weights begin that are packed as the program's own, which they replace.

        Returns:
            None.

        Raises:
            CandidateError: an assertion of the program failed (stage RUN); it is an IndexError, too, where an
                index is out of range.

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> twice = "func.func @twice(%x: !t) -> !t { %y = arith.addf %x, %x : !t return %y : !t }"
            >>> payload = f"!t = tensor<4xf32> {twice}"
            >>> program = tuner.compile_program(payload, target="cpu")
            >>> x = np.ones(4, np.float32)
            >>> program.run_into([x.ctypes.data], [x.ctypes.data], [])
            >>> x
            array([2., 2., 2., 2.], dtype=float32)
        """
        addresses = (*arguments, *results, *weights, self._arena.ctypes.data, 0)
        frame = (ctypes.c_uint64 * len(addresses))(*addresses)
        with self._lock:
            self._function(ctypes.addressof(frame))

    def _fill(self, frame: "ctypes.Array[ctypes.c_uint64]", arguments: tuple[Any, ...]) -> bool:
        if len(arguments) != len(self._expected):
            return False
        for index, (argument, expected) in enumerate(zip(arguments, self._expected, strict=True)):
            if argument.__class__ is not ndarray:
                return False
            if (argument.shape, argument.dtype, argument.flags.c_contiguous) != expected:
                return False
            frame[index] = address_of(argument)
        return True

    def prepare(self, *arguments: Any) -> "PreparedFusedCall":
        arrays = self._checked(arguments)
        self._require_changeable(arrays)
        return PreparedFusedCall(arrays, arguments)

    def repeat(self, call: "PreparedFusedCall", times: int) -> None:
        self._repeated(call, self._function, times)

    def repeat_fusion(self, call: "PreparedFusedCall", number: int, times: int) -> None:
        """Runs one fusion ``times`` times on the calling thread, for timing; its results are not returned.

        It reads what the last whole call has left in the arena: call ``repeat(call, 1)`` first.

        Args:
            call: what ``prepare`` returned.
            number: of the fusion, from 0, in the order of ``code.fusions``.
            times: number of calls.

        Returns:
            None.

        Raises:
            IndexError: there is no fusion of this number.
            CandidateError: an assertion of the program failed (stage RUN); it is an IndexError, too, where an
                index is out of range.

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> twice = "func.func @twice(%x: !t) -> !t { %y = arith.addf %x, %x : !t return %y : !t }"
            >>> payload = f"!t = tensor<4xf32> {twice}"
            >>> program = tuner.compile_program(payload, target="cpu")
            >>> call = program.prepare(np.ones(4, np.float32))
            >>> program.repeat(call, 1)
            >>> program.repeat_fusion(call, 0, 3)
        """
        if not 0 <= number < len(self.code.fusions):
            raise IndexError(
                f"fusion {number}: found no such fusion, allowed 0 to {len(self.code.fusions) - 1}"
            )
        self._repeated(call, lambda frame: self._single(frame, number), times)

    @typed_arguments
    def export(self, folder: str | Path, weights_of: str | Path | None = None) -> None:
        """Writes the program into a folder, for ``tuner.load(folder)``.

        Args:
            folder: path of a folder that is new, or has an exported program.
            weights_of: folder of another exported program, whose file this one reads equal weights from; keep
                both folders at the same place from one another. None: all weights are written.

        Returns:
            None.

        Raises:
            UsageError: the folder has other files or cannot be written, or ``weights_of`` has no program of
                static sizes, or one that reads another's weights.

        Example:
            >>> import tempfile
            >>> from pathlib import Path
            >>> import tuner
            >>> twice = "func.func @twice(%x: !t) -> !t { %y = arith.addf %x, %x : !t return %y : !t }"
            >>> payload = f"!t = tensor<4xf32> {twice}"
            >>> program = tuner.compile_program(payload, target="cpu")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     program.export(f"{folder}/twice")
            ...     sorted(each.name for each in Path(folder, "twice").iterdir())
            ['code.o', 'program.json', 'weights.npy']
        """
        save_program(self.code, self.weights, Path(folder), None if weights_of is None else Path(weights_of))

    def as_graph(self, *_arguments: object) -> Never:
        raise UsageError(
            f"{self.code.entry}: the program runs on the host: only a program on a GPU has a graph"
        )

    def close(self) -> None:
        pass  # the code is freed with this object

    @property
    def arguments(self) -> tuple[ArrayType, ...]:
        """Returns shape and numpy type of each array that a call takes, such as a cache that it writes.

        Returns:
            The types, in the order of the arguments.

        Raises:
            Nothing.

        Example:
            >>> import tuner
            >>> twice = "func.func @twice(%x: !t) -> !t { %y = arith.addf %x, %x : !t return %y : !t }"
            >>> program = tuner.compile_program(f"!t = tensor<4xf32> {twice}", target="cpu")
            >>> [(argument.shape, str(argument.dtype)) for argument in program.arguments]
            [((4,), 'float32')]
        """
        return tuple(map(_array_type, self.code.arguments))

    @property
    def program(self) -> "DeviceProgram":
        """Returns the entry and the types of the program as a ``DeviceProgram`` without code."""
        return self.code.program

    @property
    def allocations(self) -> int:
        """Returns 0: memory of the program is allocated once, and none is left by a call."""
        return 0

    def _repeated(self, call: "PreparedFusedCall", function: Callable[[int], None], times: int) -> None:
        with self._lock:
            results = self._pool.take()
            results.frame[: len(call.addresses)] = [*call.addresses]
            for _ in range(times):
                function(results.address)

    def _require_changeable(self, arrays: Sequence[Array]) -> None:
        """Raises UsageError where an array that a call changes is read-only or shares another's memory."""
        entry = self.code.entry
        for number in self.code.changed:
            if not arrays[number].flags.writeable:
                raise UsageError(f"{entry}: argument {number}: is read-only, but is written to")
        pair = shared_memory([*map(address_of, arrays)], self._sizes_bytes, self.code.changed)
        if pair is not None:
            raise UsageError(
                f"{entry}: argument {pair[0]}: is written to, but shares memory with argument {pair[1]}"
            )

    def _checked(self, arguments: tuple[Any, ...]) -> tuple[Array, ...]:
        from tuner.runtime.programs.marshalling import checked_host_arrays  # not at start-up

        types = [BufferType(type_.element, type_.shape) for type_ in self.code.arguments]
        return checked_host_arrays(self.code.entry, types, arguments)


class AssertingCode:
    """A function that calls compiled code with a frame, and raises if an assertion of the code fails.

    The code writes the address of the assertion's text into the frame, ``offset_bytes`` from its beginning.
    """

    def __init__(self, function: Any, offset_bytes: int) -> None:
        self._function = function
        self._offset_bytes = offset_bytes

    def __call__(self, frame: int, *more: int) -> None:
        failed = _WORD_AT(frame + self._offset_bytes)
        failed.value = 0
        self._function(frame, *more)
        if failed.value:
            raise failed_assertion(ctypes.string_at(failed.value).decode(errors="replace"))


class PreparedFusedCall:
    """The checked arguments of one call of a ``FusedFunction``, for repeated calls."""

    def __init__(self, arrays: tuple[Array, ...], owners: tuple[Any, ...]) -> None:
        self.arrays = arrays
        self._owners = owners  # of the memory of arrays that came by DLPack
        self.addresses = tuple(array.ctypes.data for array in arrays)


def _entry(loaded: LoadedObject, threads: int) -> Callable[[int], None]:
    if threads > 1:
        return TeamCall(loaded, threads)
    function: Callable[[int], None] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.addresses[PROGRAM_ENTRY])
    return function


def _arena(code: FusedCode) -> Array:
    arena = aligned_bytes(code.arena_bytes)
    arena[...] = 0
    for fill in code.fills:
        type_ = _array_type(fill.type)
        part = arena[fill.offset_bytes : fill.offset_bytes + fill.type.bytes].view(type_.dtype)
        part[...] = fill.value
    return arena


def _array_type(type_: TensorType) -> ArrayType:
    return ArrayType(type_.shape, numpy_type(type_.element))


def _fast_address(array: Array) -> int:
    return _WORD_AT(id(array) + DATA_OFFSET_BYTES).value


# ``ctypes.data`` takes 2 us; a Python whose objects have another header does it the slow way
IS_FAST = _fast_address(_PROBE) == _PROBE.ctypes.data
address_of: Callable[[Array], int] = _fast_address if IS_FAST else lambda array: array.ctypes.data
