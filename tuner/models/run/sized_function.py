"""A program of a dynamic size as a Python function: it runs the static program of the next greater size.

``SizedFunction`` is the function; a ``SizedMember`` is one static program, compiled when a call needs it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tuner.core.dynamic_sizes import (
    NAMES,
    LinearSize,
    SizeRange,
    Sizes,
    compiled_sizes_for,
    numbers_of,
    shape_at,
    shape_text,
    sizes_of,
    sizes_text,
)
from tuner.core.errors import UsageError
from tuner.core.typed_arguments import typed_arguments
from tuner.models.run.exported_sizes import SizedCode, SizedImage, save_sizes
from tuner.models.run.fused_code import numpy_type
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.sized_types import PaddedArray, SizeArgument, SizedSignature, cut, set_size
from tuner.runtime.process_state import thread_lock

if TYPE_CHECKING:
    from tuner.models.run.host_function import HostFunction

Array = npt.NDArray[Any]
Shapes = tuple[tuple[int, ...], ...]
KEPT_SHAPES = 1 << 12
ndarray = np.ndarray


@dataclass(frozen=True, eq=False)
class SizedMember:
    """A static program that runs calls of n up to ``size``.

    ``added``: arguments that tell it n, after the arguments of the program of the dynamic size.
    """

    size: Sizes
    added: tuple[SizeArgument, ...]
    function: "FusedFunction | HostFunction"


MemberOf = Callable[[Sizes], SizedMember]  # of a size of the ladder


class _ReadyMember:
    """A static program, with memory for its arguments."""

    def __init__(self, member: SizedMember, signature: SizedSignature) -> None:
        self.member = member
        self._function = member.function
        self._size = member.size
        self._arguments = member.added
        self._added = tuple(map(_zeros, member.added))
        self._said: Sizes = 0  # n that the added arguments say
        self._reads = signature.reads
        self._results = tuple(zip(signature.returns, signature.results, strict=True))
        self._padded: dict[int, PaddedArray] = {}  # by place among the arguments of the static program
        for place, number in enumerate(signature.reads):
            type_ = signature.arguments[number]
            if not type_.is_static:
                self._padded[place] = PaddedArray(type_, member.size, numpy_type(type_.element))

    def call(self, arguments: Sequence[Array], size: Sizes) -> Any:
        """Returns the results of the dynamic program at n = ``size``, computed by this static program."""
        if self._said != size:
            self._said = size
            for array, argument in zip(self._added, self._arguments, strict=True):
                set_size(array, argument, size)
        passed = [arguments[number] for number in self._reads]
        if size != self._size:
            for place, padded in self._padded.items():
                passed[place] = padded.filled(passed[place], size)
        made = self._function(*passed, *self._added)
        listed = made if isinstance(made, tuple) else (made,)
        results = [listed[number] for number, _ in self._results]
        if size != self._size:
            results = [
                cut(result, type_, size) for result, (_, type_) in zip(results, self._results, strict=True)
            ]
        if len(results) == 1:
            return results[0]
        return tuple(results)


def _zeros(argument: SizeArgument) -> Array:
    return np.zeros(argument.shape, numpy_type(argument.element))


class SizedFunction:
    """A program of a dynamic size n, called with arrays of any n of a range.

    The first call of a size compiles the static program that serves it; ``prepare`` does so before. Calls
    from several threads run one after the other.
    """

    def __init__(
        self, signature: SizedSignature, sizes: SizeRange, ladder: Sequence[Sizes], member_of: MemberOf
    ) -> None:
        """Takes a program's types; makes no static program yet.

        Args:
            signature: types, of which an argument has a size that depends on n.
            sizes: the range of n.
            ladder: sizes of the static programs, ascending, of which the last is the greatest n.
            member_of: compiles or loads the static program of a size of the ladder.
        """
        self.signature = signature
        self.sizes = sizes
        self.ladder = tuple(ladder)
        self._member_of = member_of
        self._compiled: dict[Sizes, _ReadyMember] = {}
        self._of_shapes: dict[Shapes, Sizes] = {}  # of arguments of some calls
        self._at: dict[Sizes, Sizes] = {}  # n -> the size that serves it
        self._expected = [(numpy_type(type_.element), type_.shape) for type_ in signature.arguments]
        self._places = _places_of(signature, len(numbers_of(sizes.least)))
        self._lock = thread_lock()

    def __repr__(self) -> str:
        """Returns one line: the program, its sizes, and how many programs are compiled."""
        counts = f"{len(self._compiled)} of {len(self.ladder)} programs compiled"
        return f"SizedFunction({self.signature.entry}, {self.sizes.named_text}; {counts})"

    @property
    def compiled_sizes(self) -> tuple[Sizes, ...]:
        """Returns the sizes of the static programs that are compiled so far, ascending: n, or (n, m)."""
        return tuple(sorted(self._compiled, key=numbers_of))

    def __call__(self, *arguments: Any) -> Any:
        """Calls the program.

        Args:
            arguments: C-contiguous numpy arrays, or other arrays in host memory (DLPack); all dimensions that
                are dynamic have one size n of the range, or sizes n and m.

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

    def prepare(self, *sizes: Sizes) -> None:
        """Compiles the static programs that serve ``sizes``, or all of the range without an argument.

        ``sizes``: values of n, or pairs (n, m).

        Raises UsageError for a size out of the range, CandidateError where a program cannot be compiled.
        """
        with self._lock:
            for size in sizes or self.ladder:
                self._compiled_for(size)

    def static(self, size: Sizes) -> "FusedFunction | HostFunction":
        """Returns the static program that serves ``size``; it takes arrays of the size that it has."""
        with self._lock:
            return self._compiled_for(size).member.function

    @typed_arguments
    def export(self, folder: str | Path) -> None:
        """Writes the program into a folder, for ``tuner.load(folder)``; compiles all sizes of the ladder.

        Args:
            folder: path of a folder that is new, or has an exported program.

        Returns:
            None.

        Raises:
            UsageError: the folder has other files or cannot be written, or a static program is not one of
                fusions.
            CandidateError: a static program cannot be compiled.

        Example:
            >>> import tempfile
            >>> import numpy as np
            >>> import tuner
            >>> twice = "func.func @twice(%x: !t) -> !t { %y = arith.addf %x, %x : !t return %y : !t }"
            >>> program = tuner.compile_program(f"!t = tensor<?xf32> {twice}", "cpu", sizes="1..2")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     program.export(f"{folder}/twice")
            ...     loaded = tuner.load(f"{folder}/twice")
            >>> loaded(np.ones(2, np.float32))
            array([2., 2.], dtype=float32)
        """
        self.save(self.signature, Path(folder))

    def save(self, signature: SizedSignature, folder: Path) -> None:
        """Writes the program as ``export`` does, for calls by another signature.

        ``signature`` may have arguments and results in another order, and say which the static programs take.
        """
        self.prepare()
        members = [self._compiled[size].member for size in self.ladder]
        programs = tuple(_exported(member, self.signature.entry) for member in members)
        save_sizes(SizedImage(signature, self.sizes, programs), folder)

    def close(self) -> None:
        """Frees the static programs; the next call compiles again."""
        with self._lock:
            self._compiled.clear()

    def _compiled_for(self, size: Sizes) -> _ReadyMember:
        at = self._at.get(size)
        if at is None:
            at = compiled_sizes_for(self.ladder, size)
            self._at[size] = at
        if at not in self._compiled:
            self._compiled[at] = _ReadyMember(self._member_of(at), self.signature)
        return self._compiled[at]

    def _size_of_plain(self, arguments: tuple[Any, ...]) -> Sizes:
        """Returns n, or n and m, of arguments that are numpy arrays and fit; 0 for all other arguments."""
        if len(arguments) != len(self._expected):
            return 0
        for argument, (dtype, shape) in zip(arguments, self._expected, strict=True):
            is_plain = (
                argument.__class__ is ndarray and argument.dtype == dtype and argument.flags.c_contiguous
            )
            if not is_plain or len(argument.shape) != len(shape):
                return 0
        shapes = tuple([argument.shape for argument in arguments])  # in half the time of a generator
        sizes = self._of_shapes.get(shapes, 0)
        if not sizes and self._are_of(shapes, self._sizes_by_places(arguments)):
            sizes = self._sizes_by_places(arguments)
            if len(self._of_shapes) < KEPT_SHAPES:
                self._of_shapes[shapes] = sizes
        return sizes

    def _are_of(self, shapes: Shapes, sizes: Sizes) -> bool:
        """Returns whether arguments of these shapes fit sizes, which are in the range."""
        expected = [shape_at(shape, sizes) for _, shape in self._expected]
        return sizes in self.sizes and list(shapes) == expected

    def _sizes_by_places(self, arrays: Sequence[Array]) -> Sizes:
        """Returns n, or n and m, that the first dimensions say which depend on one of them alone."""
        numbers = []
        for argument, dimension, length in self._places:
            numbers.append(length.size_for(arrays[argument].shape[dimension]))
        return sizes_of(numbers)

    def _checked(self, arguments: tuple[Any, ...]) -> tuple[tuple[Array, ...], Sizes]:
        from tuner.runtime.programs.marshalling import checked_host_arrays  # not at start-up

        entry = self.signature.entry
        arrays = checked_host_arrays(entry, [type_.buffer for type_ in self.signature.arguments], arguments)
        sizes = self._sizes_by_places(arrays)
        for index, (array, (_, shape)) in enumerate(zip(arrays, self._expected, strict=True)):
            expected = shape_at(shape, sizes)
            if array.shape != expected:
                raise UsageError(self._wrong_shape(index, array.shape, sizes))
        if sizes not in self.sizes:
            raise UsageError(f"{entry}: found n = {sizes_text(sizes)}, allowed {self.sizes.text}")
        return arrays, sizes

    def _wrong_shape(self, index: int, shape: tuple[int, ...], sizes: Sizes) -> str:
        known = ", ".join(
            f"{name} = {number} of argument {place[0]}"
            for name, number, place in zip(NAMES, numbers_of(sizes), self._places, strict=False)
        )
        expected = shape_text(self.signature.arguments[index].shape)
        found = " x ".join(map(str, shape))
        return f"{self.signature.entry}: found {found} for {expected} of argument {index}, with {known}"


def _places_of(signature: SizedSignature, count: int) -> tuple[tuple[int, int, LinearSize], ...]:
    """Returns where n, and m of two sizes, are read: argument, dimension, and what its size is.

    Raises UsageError for a size on which no dimension depends alone.
    """
    places = []
    for name in NAMES[:count]:
        for index, type_ in enumerate(signature.arguments):
            found = [at for at, length in enumerate(type_.shape) if length.is_of(name)]
            if found:
                places.append((index, found[0], type_.shape[found[0]]))
                break
        else:
            raise UsageError(f"{signature.entry}: no dimension of an argument says {name}")
    return tuple(places)


def _exported(member: SizedMember, entry: str) -> SizedCode:
    function = member.function
    if not isinstance(function, FusedFunction):
        line = f"{entry} at n = {member.size}: only a program of fusions is exported"
        raise UsageError(f"{line}: {function.why_no_fusions}")
    return SizedCode(member.size, member.added, function.code, function.weights)
