"""A program of a dynamic size n as a Python function: it runs the static program of the next greater size."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Never

import numpy as np
import numpy.typing as npt

from tuner.core.errors import UsageError
from tuner.core.size_ladder import ladder_size
from tuner.programs.dynamic.linear_sizes import shape_at
from tuner.programs.dynamic.size_range import SizeRange
from tuner.programs.dynamic.specialization import SizedSignature, SizedType, StaticProgram
from tuner.programs.dynamic.static_sizes import MASK, SizeArgument
from tuner.programs.run.marshalling import checked_host_array, dtype_of
from tuner.runtime.process_state import thread_lock

Array = npt.NDArray[Any]
ndarray = np.ndarray
Specialize = Callable[[int], StaticProgram]  # raises UsageError for a program that has no static form
Compile = Callable[[StaticProgram], Callable[..., Any]]


class PaddedArray:
    """Memory of the static shape of an argument; what is beyond the argument of a call is 0."""

    def __init__(self, type_: SizedType, size: int) -> None:
        self._shape = type_.shape
        self._array = np.zeros(shape_at(type_.shape, size), dtype_of(type_.element))
        self._size = 0  # up to which elements may differ from 0

    def filled(self, argument: Array, size: int) -> Array:
        """Returns the array with the elements of an argument of a call of ``size``."""
        for dimension, length in enumerate(self._shape):
            if not length.is_static and size < self._size:
                beyond = [slice(None)] * len(self._shape)
                beyond[dimension] = slice(size, self._size)
                self._array[tuple(beyond)] = 0
        self._array[tuple(map(slice, argument.shape))] = argument
        self._size = size
        return self._array


class CompiledSize:
    """A compiled static program, with memory for its arguments."""

    def __init__(self, program: StaticProgram, function: Callable[..., Any]) -> None:
        self.function = function
        self._size = program.size
        self._arguments = program.added
        self._added = tuple(np.zeros(added.shape, dtype_of(added.element)) for added in program.added)
        self._said = 0  # n that the added arguments say
        self._results = program.signature.results
        self._padded: dict[int, PaddedArray] = {}  # by the number of an argument whose shape depends on n
        for number, type_ in enumerate(program.signature.arguments):
            if not type_.is_static:
                self._padded[number] = PaddedArray(type_, program.size)

    def call(self, arguments: Sequence[Array], size: int) -> Any:
        """Returns the results for arguments of the dynamic program at ``size``, as the program does."""
        if self._said != size:
            self._said = size
            for array, argument in zip(self._added, self._arguments, strict=True):
                set_size(array, argument, size)
        if size == self._size:
            return self.function(*arguments, *self._added)
        passed = list(arguments)
        for number, padded in self._padded.items():
            passed[number] = padded.filled(arguments[number], size)
        results = self.function(*passed, *self._added)
        if len(self._results) == 1:
            return cut(results, self._results[0], size)
        return tuple(cut(result, type_, size) for result, type_ in zip(results, self._results, strict=True))


def cut(array: Array, type_: SizedType, size: int) -> Array:
    """Returns the part of a static program's result that is the result at ``size``, a view."""
    if type_.is_static:
        return array
    return array[tuple(map(slice, shape_at(type_.shape, size)))]


def set_size(array: Array, argument: SizeArgument, size: int) -> None:
    """Writes what says the size n = ``size`` into an added argument of a static program."""
    number = argument.size.at(size)
    if argument.use != MASK:
        array[...] = number
        return
    array[:number] = 1
    array[number:] = 0


class SizedFunction:
    """A program of a dynamic size n, called with arrays of any n of a range.

    The first call of a size compiles the static program that serves it; ``prepare`` does so before. Calls
    from several threads run one after the other.
    """

    def __init__(self, sizes: SizeRange, specialize: Specialize, compile_static: Compile) -> None:
        """Reads the program at its greatest size; compiles nothing yet.

        Raises UsageError for a program that cannot run at padded sizes.
        """
        self.sizes = sizes
        self.ladder = sizes.ladder
        self._specialize = specialize
        self._compile = compile_static
        self._greatest = specialize(sizes.greatest)
        self._compiled: dict[int, CompiledSize] = {}
        self._at: dict[int, int] = {}  # n -> the size that serves it
        buffers = [type_.buffer for type_ in self._greatest.signature.arguments]
        self._expected = [(dtype_of(buffer.element), buffer.shape) for buffer in buffers]
        self._lock = thread_lock()

    def __repr__(self) -> str:
        """Returns one line: the program, its sizes, and how many programs are compiled."""
        counts = f"{len(self._compiled)} of {len(self.ladder)} programs compiled"
        return f"SizedFunction({self.signature.entry}, n = {self.sizes.text}; {counts})"

    @property
    def signature(self) -> SizedSignature:
        """Returns name, arguments and results, whose shapes are in n."""
        return self._greatest.signature

    @property
    def compiled_sizes(self) -> tuple[int, ...]:
        """Returns the sizes of the static programs that are compiled so far, ascending."""
        return tuple(sorted(self._compiled))

    def __call__(self, *arguments: Any) -> Any:
        """Calls the program.

        Args:
            arguments: C-contiguous numpy arrays, or other arrays in host memory (DLPack); all dimensions that
                are dynamic have one size n of the range.

        Returns:
            The result; a tuple of several results. A result may be a view of a greater array.

        Raises:
            UsageError: arguments of another number, type or shape, or a size out of the range.
            CandidateError: the static program cannot be compiled, or an assertion of it failed.

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> twice = "func.func @twice(%x: !t) -> !t { %y = arith.addf %x, %x : !t return %y : !t }"
            >>> program = tuner.compile_program(f"!t = tensor<?xf32> {twice}", "cpu", sizes="1..8")
            >>> program(np.ones(3, np.float32))
            array([2., 2., 2.], dtype=float32)
        """
        size = self._size_of_plain(arguments)
        arrays: Sequence[Array] = arguments
        if not size:  # what is slow to check, or wrong
            arrays, size = self._checked(arguments)
        with self._lock:
            return self._compiled_for(size).call(arrays, size)

    def prepare(self, *sizes: int) -> None:
        """Compiles the static programs that serve ``sizes``, or all of the range without an argument.

        Raises UsageError for a size out of the range, CandidateError where a program cannot be compiled.
        """
        with self._lock:
            for size in sizes or self.ladder:
                self._compiled_for(size)

    def static(self, size: int) -> Callable[..., Any]:
        """Returns the static program that serves ``size``; it takes arrays of the size that it has."""
        with self._lock:
            return self._compiled_for(size).function

    def export(self, folder: str | Path) -> Never:
        """Raises UsageError: a folder has one program, and one of a dynamic size is several."""
        raise UsageError(
            f"{folder}: {self.signature.entry}: a program of a dynamic size cannot be exported",
            "replace each ? of the file by a number, and export that program",
        )

    def close(self) -> None:
        """Frees the static programs; the next call compiles again."""
        with self._lock:
            self._compiled.clear()

    def _compiled_for(self, size: int) -> CompiledSize:
        at = self._at.get(size)
        if at is None:
            at = ladder_size(self.ladder, size)
            self._at[size] = at
        if at not in self._compiled:
            program = self._greatest if at == self.sizes.greatest else self._specialize(at)
            self._compiled[at] = CompiledSize(program, self._compile(program))
        return self._compiled[at]

    def _size_of_plain(self, arguments: tuple[Any, ...]) -> int:
        """Returns n of arguments that are numpy arrays and fit; 0 for all other arguments."""
        if len(arguments) != len(self._expected):
            return 0
        size = 0
        for argument, (dtype, shape) in zip(arguments, self._expected, strict=True):
            is_plain = (
                argument.__class__ is ndarray and argument.dtype == dtype and argument.flags.c_contiguous
            )
            if not is_plain or len(argument.shape) != len(shape):
                return 0
            for length, expected in zip(argument.shape, shape, strict=True):
                if expected is None and size in (0, length):
                    size = length
                elif expected != length:
                    return 0
        if self.sizes.least <= size <= self.sizes.greatest:
            return size
        return 0

    def _checked(self, arguments: tuple[Any, ...]) -> tuple[list[Array], int]:
        entry = self.signature.entry
        types = self.signature.arguments
        if len(arguments) != len(types):
            raise UsageError(f"{entry}: found {len(arguments)} arguments, allowed {len(types)}")
        arrays = [
            checked_host_array(f"{entry}: argument {number}", value, type_.buffer)
            for number, (value, type_) in enumerate(zip(arguments, types, strict=True))
        ]
        size = self._size_of(arrays)
        if not self.sizes.least <= size <= self.sizes.greatest:
            raise UsageError(f"{entry}: found n = {size}, allowed {self.sizes.text}")
        return arrays, size

    def _size_of(self, arrays: Sequence[Array]) -> int:
        sizes: dict[int, int] = {}  # n -> the number of the argument that has it
        for number, (array, type_) in enumerate(zip(arrays, self.signature.arguments, strict=True)):
            for length, known in zip(array.shape, type_.shape, strict=True):
                if not known.is_static:
                    sizes.setdefault(length, number)
        if len(sizes) > 1:
            listed = ", ".join(f"{size} of argument {number}" for size, number in sizes.items())
            raise UsageError(f"{self.signature.entry}: found sizes {listed}; allowed one size n for all")
        return next(iter(sizes))
