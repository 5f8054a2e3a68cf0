"""A program of a dynamic size n as a Python function: it runs the static program of the next greater size."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class CompiledSize:
    """A compiled static program, with memory for its arguments."""

    program: StaticProgram
    function: Callable[..., Any]
    padded: dict[int, PaddedArray]  # by the number of an argument whose shape depends on n
    added: tuple[Array, ...]  # the arguments that say the size

    def call(self, arguments: Sequence[Array], size: int) -> tuple[Array, ...]:
        """Returns the results for arguments of the dynamic program at ``size``."""
        for array, argument in zip(self.added, self.program.added, strict=True):
            set_size(array, argument, size)
        passed = list(arguments)
        if size != self.program.size:
            for number, padded in self.padded.items():
                passed[number] = padded.filled(arguments[number], size)
        results = self.function(*passed, *self.added)
        types = self.program.signature.results
        listed = (results,) if len(types) == 1 else results
        return tuple(
            result[tuple(map(slice, shape_at(type_.shape, size)))]
            for result, type_ in zip(listed, types, strict=True)
        )


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
        arrays, size = self._checked(arguments)
        with self._lock:
            results = self._compiled_for(size).call(arrays, size)
        if len(results) == 1:
            return results[0]
        return results

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
        at = ladder_size(self.ladder, size)
        if at not in self._compiled:
            program = self._greatest if at == self.sizes.greatest else self._specialize(at)
            padded = {}
            for number, type_ in enumerate(program.signature.arguments):
                if not type_.is_static:
                    padded[number] = PaddedArray(type_, at)
            added = tuple(np.zeros(added.shape, dtype_of(added.element)) for added in program.added)
            self._compiled[at] = CompiledSize(program, self._compile(program), padded, added)
        return self._compiled[at]

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
