"""Arrays that kernels on this host are verified and timed on, and the results that are expected in them.

``KernelArrays`` is the port: draw inputs, run a kernel, compare the outputs. ``ProblemArrays`` are the arrays
of a matmul; those of a fusion are in ``tuner.targets.cpu.fusion_arrays``.
"""

import abc
import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import numpy.typing as npt

from tuner.core.errors import CandidateError, Stage
from tuner.core.packings import Packings
from tuner.core.problem import Problem
from tuner.core.records import Verdict
from tuner.payload.comparison import changed_inputs, compare, compare_rows, compare_tile, not_finite
from tuner.payload.drawing import (
    draw,
    draw_base,
    has_narrow_bias,
    negated,
    special_draws,
    with_special_bias,
    with_special_numbers,
)
from tuner.payload.inputs import draw_extremes
from tuner.payload.reference import NUMPY_DTYPES, Array, Flip, Inputs, output_dtype
from tuner.runtime.cpu.faulting_memory import FaultingMemory
from tuner.runtime.cpu.memory import ALIGNMENT_BYTES as CACHE_LINE_BYTES
from tuner.runtime.cpu.memory import GuardedArray, placed_empty

LARGEST_FILL = 100  # exact in every type of an output, i8 and bf16 included
MARKS = 256  # random places of single-element changes, used cyclically; a power of two
A_SHARE = 0.5  # of the numbers that change; the rest are in B
COMPARED_ROWS = 64  # random rows of C that ``check_rows`` compares, some of each kind of extreme inputs
# of an array's memory
BEGIN = 0
END = -1
SLACK_BYTES = 256  # of an array's memory: offsets of up to four alignments of 64 bytes
NAN_SHARE = 0.5  # of the calls of ``overwrite_output``; else a number
GLANCE_ELEMENTS = 2**14  # compared by ``compare_some_rows``: some 0.3 ms
Compare = Callable[[Inputs, Array], tuple[Verdict, str]]  # the text describes the worst element


class KernelArrays(abc.ABC):
    """The arrays that kernels of a problem are verified and timed on, and the results expected in them.

    The arrays stay at fixed addresses, except inside of the context managers ``guarded`` and
    ``unevenly_placed``.
    """

    problem: Problem

    @property
    @abc.abstractmethod
    def operands(self) -> tuple[Array, ...]:
        """Returns the arrays in the order of a kernel's arguments: inputs, then outputs."""

    @property
    @abc.abstractmethod
    def outputs(self) -> tuple[GuardedArray, ...]:
        """Returns the outputs with the guard bands around them."""

    @property
    @abc.abstractmethod
    def before(self) -> Array | None:
        """Returns the output's content before each call, for kernels that read it (C += A B); else None."""

    @abc.abstractmethod
    def copies(self, packings: Packings) -> tuple[tuple[Array, ...], ...]:
        """Returns the sets of operands that calls use in turn; the number of sets is a power of two.

        ``packings``: how a kernel reads each input; () for a matmul, whose calls all use ``operands``.
        """

    @abc.abstractmethod
    def draw_inputs(self, rng: np.random.Generator) -> None:
        """Draws random inputs in place."""

    @abc.abstractmethod
    def change_inputs(self) -> None:
        """Changes the inputs in place, such as their signs, to others whose expected result is known."""

    @abc.abstractmethod
    def draw_extremes(self, rng: np.random.Generator) -> None:
        """Draws inputs of small and large numbers and signed zeros, which ``draw_inputs`` does not draw.

        A fusion keeps usual inputs if a result would not be finite.
        """

    @property
    @abc.abstractmethod
    def special_draws(self) -> int:
        """Returns how many different sets of special numbers ``add_special_numbers`` has.

        A special number that would hide the effect of others, such as NaN in a row of A, is in a set of its
        own.
        """

    @abc.abstractmethod
    def add_special_numbers(self, rng: np.random.Generator, draw: int = 0) -> None:
        """Puts NaN, infinity and the like into the inputs; the expected results take them into account.

        ``draw``: which set of numbers, from 0 to ``special_draws`` - 1.
        """

    @abc.abstractmethod
    def guarded(self, *, at_end: bool) -> AbstractContextManager[None]:
        """Context manager: uses arrays next to an inaccessible page, so that accesses beyond that end fault.

        ``at_end``: the arrays end where the page begins; else they begin where a page ends. Without effect
        for a fusion, whose kernels may read past their inputs.
        """

    @abc.abstractmethod
    def unevenly_placed(self, rng: np.random.Generator) -> AbstractContextManager[None]:
        """Context manager: uses arrays of which no two begin at the same offset in a page.

        Without effect for a fusion, whose arrays lie at cache lines.
        """

    @abc.abstractmethod
    def marks(self, rng: np.random.Generator, calls: int) -> npt.NDArray[np.uint64]:
        """Draws which elements to change before each call, to show that every call reads and writes.

        Returns an array (MARKS, 2) of addresses, used cyclically: of a sign to flip in an input, and of an
        output element to set to NaN. ``calls``: number of calls, whose last one decides the expected result.
        """

    @abc.abstractmethod
    def compare_outputs(self) -> Verdict:
        """Compares every element of the outputs with the expected result; returns the verdict.

        Raises CandidateError(VERIFY) for a wrong element.
        """

    @abc.abstractmethod
    def compare_some_rows(self, rng: np.random.Generator) -> None:
        """Compares a part of the outputs. Raises CandidateError(VERIFY) for a wrong element."""

    @abc.abstractmethod
    def check_rows(self, rng: np.random.Generator) -> None:
        """Compares random rows of the outputs; of a fusion everything, as ``evaluate`` does.

        Raises CandidateError(VERIFY) for a wrong element, and for a matmul also for any that is not finite.
        """

    @abc.abstractmethod
    def changed_input(self) -> str:
        """Returns the name or index of an input that a kernel has changed; "" if there is none."""

    @abc.abstractmethod
    def require_same_weights(self, packings: Packings) -> None:
        """Raises CandidateError(VERIFY) if a kernel has changed a copy of its packed weights."""

    def fill(self, rng: np.random.Generator) -> None:
        """Draws random inputs in place, and calls ``poison`` to fill the outputs."""
        self.draw_inputs(rng)
        self.poison()

    def flip_signs(self) -> None:
        """Changes the inputs in place to others whose result is known, and fills the outputs with ones.

        Where kernels read the output, it gets the numbers that the expected result begins with.
        """
        self.change_inputs()
        if not self._restore_output():
            for output in self.outputs:
                output.fill_with(1)

    def fill_with_extremes(self, rng: np.random.Generator) -> None:
        """Draws small and large inputs (``draw_extremes``); fills the outputs by ``overwrite_output``."""
        self.draw_extremes(rng)
        self.overwrite_output(rng)

    def overwrite_output(self, rng: np.random.Generator) -> None:
        """Fills the outputs, at random, with NaN or with a number that looks like a result.

        The number is random, so that no kernel that adds to C can subtract it. Where kernels read the output,
        it gets the numbers that the expected result begins with.
        """
        if self._restore_output():
            return
        is_nan = rng.random() < NAN_SHARE
        for output in self.outputs:
            if is_nan:
                output.poison()
            else:
                output.fill_with(int(rng.integers(1, LARGEST_FILL + 1)))

    def poison(self) -> None:
        """Makes the outputs ready for a call: NaN (integers: the smallest number), with guard bands.

        Where kernels read the output, it gets the numbers that the expected result begins with.
        """
        if not self._restore_output():
            for output in self.outputs:
                output.poison()

    def evaluate(self) -> Verdict:
        """Compares every element of the outputs with the expected result; returns the verdict.

        Raises CandidateError(VERIFY) for a wrong element, a write outside of the outputs, or a changed input.
        """
        stray = sum(output.stray_bytes() for output in self.outputs)
        if stray:
            raise CandidateError(Stage.VERIFY, f"wrote {stray} bytes outside of its outputs")
        verdict = self.compare_outputs()
        changed = self.changed_input()
        if changed:
            raise CandidateError(Stage.VERIFY, f"changed its input {changed}")
        return verdict

    def _restore_output(self) -> bool:
        """Fills an output that kernels read with its content before a call; returns whether there is one."""
        if self.before is None:
            return False
        self.outputs[0].fill_from(self.before)
        return True


@dataclass(frozen=True, eq=False)
class PlacedArrays:
    """The arrays of a matmul problem at one set of addresses."""

    inputs: tuple[Array, ...]  # A, B and those of the epilogue
    output: GuardedArray
    # where kernels read the inputs: the same arrays, or read-only views of their bytes at other addresses, as
    # FaultingMemory maps each input twice
    seen: tuple[Array, ...]
    is_read_only: bool  # kernels fault where they write an input

    @classmethod
    def placed(cls, problem: Problem) -> "PlacedArrays":
        """Returns new writable arrays of a problem, with exactly the alignment that the problem states."""
        offset = problem.offset_bytes
        inputs = tuple(
            placed_empty(argument.shape, NUMPY_DTYPES[argument.dtype], offset)
            for argument in problem.arguments[:-1]
        )
        output = GuardedArray.placed((problem.rows, problem.sizes[1]), output_dtype(problem), offset)
        return cls(inputs, output, inputs, is_read_only=False)

    @property
    def factors(self) -> tuple[Array, Array]:
        """Returns A and B, the first two inputs."""
        a, b, *_ = self.inputs
        return a, b


@final
class ProblemArrays(KernelArrays):
    """The host arrays of a matmul problem: inputs, and C between guard bands, with the expected C."""

    def __init__(self, problem: Problem, rng: np.random.Generator, compare: Compare = compare) -> None:
        """Allocates the arrays and draws inputs; the float64 product is computed when C is first compared.

        ``compare``: function that compares C with the expected result.
        """
        self.problem = problem
        self._compare = compare
        self._base = draw_base(problem, rng)
        self._current = PlacedArrays.placed(problem)
        self._extreme_rows: Array | None = None  # of C, that are compared on extreme inputs
        self.fill(rng)

    @property
    def operands(self) -> tuple[Array, ...]:
        return (*self._current.seen, self._current.output.array)

    @property
    def allocations(self) -> tuple[Array, ...]:
        """Returns the inputs, and C with its guard bands as bytes, for copies to a device."""
        return (*self.operands[:-1], self._current.output.memory)

    def guarded(self, *, at_end: bool) -> AbstractContextManager[None]:
        return self._moved(self._guarded[at_end])

    def unevenly_placed(self, rng: np.random.Generator) -> AbstractContextManager[None]:
        places = len(self._templates)
        steps = max(places, CACHE_LINE_BYTES // self._alignment(self._current.inputs[0]))
        return self._moved(self._in_faulting_memory(tuple(rng.permutation(steps)[:places].tolist())))

    @contextlib.contextmanager
    def _moved(self, at: PlacedArrays) -> Iterator[None]:
        """Context manager: all methods use the arrays ``at`` in place of the usual ones."""
        timed = self._current
        self._current = at
        try:
            yield
        finally:
            self._current = timed

    @functools.cached_property
    def _guarded(self) -> tuple[PlacedArrays, PlacedArrays]:
        places = len(self._templates)
        return self._in_faulting_memory((BEGIN,) * places), self._in_faulting_memory((END,) * places)

    @functools.cached_property
    def _memories(self) -> tuple[FaultingMemory, ...]:
        """Returns memory for each array, SLACK_BYTES larger, so that it can begin at several offsets."""
        *inputs, c = self._templates
        return (
            *(FaultingMemory(input_.nbytes + SLACK_BYTES, is_read_only=True) for input_ in inputs),
            FaultingMemory(c.nbytes + SLACK_BYTES, is_read_only=False),
        )

    @property
    def _templates(self) -> tuple[Array, ...]:
        return (*self._current.inputs, self._current.output.array)

    def _alignment(self, array: Array) -> int:
        if self.problem.align == "any":
            return array.itemsize
        return int(self.problem.align)

    def _in_faulting_memory(self, steps: tuple[int, ...]) -> PlacedArrays:
        """Returns arrays of the problem in faulting memory, at an offset of each.

        ``steps``: per array, its offset from the beginning of its memory in alignments of the problem; END:
        the array ends where its memory does.
        """

        def view(of: Array, like: Array, start: int) -> Array:
            return np.ndarray(like.shape, like.dtype, of, start)

        places = []
        for memory, like, step in zip(self._memories, self._templates, steps, strict=True):
            alignment = self._alignment(like)
            start = step * alignment
            if step < 0:
                start = memory.start(like.nbytes, alignment, at_end=True)
            places.append((memory, like, start))
        *inputs, (of_output, c, at_output) = places
        # memory of inputs is mapped twice: ``written`` is drawn into, ``seen`` is what kernels read
        written = tuple(view(memory.written, like, start) for memory, like, start in inputs)
        seen = tuple(view(memory.seen, like, start) for memory, like, start in inputs)
        output = GuardedArray(of_output.seen, at_output, c.shape, c.dtype)
        return PlacedArrays(written, output, seen, is_read_only=True)

    @property
    def outputs(self) -> tuple[GuardedArray, ...]:
        return (self._current.output,)

    @property
    def before(self) -> Array | None:
        return self._inputs.before

    def copies(self, packings: Packings) -> tuple[tuple[Array, ...], ...]:
        return (self.operands,)

    def draw_inputs(self, rng: np.random.Generator) -> None:
        self._extreme_rows = None
        self._inputs = draw(self.problem, self._base, rng, self._current.factors)
        self._write_extra()

    def _write_extra(self) -> None:
        for array, drawn in zip(self._current.inputs[2:], self._inputs.arrays[2:], strict=True):
            array[...] = drawn

    def draw_extremes(self, rng: np.random.Generator) -> None:
        self._extreme_rows = self._some_rows(rng)
        self._inputs = draw_extremes(self.problem, rng, self._extreme_rows)
        for array, drawn in zip(self._current.inputs, self._inputs.arrays, strict=True):
            array[...] = drawn

    def check_rows(self, rng: np.random.Generator) -> None:
        """Compares COMPARED_ROWS random rows of C with the expected ones.

        On extreme inputs it compares the same rows at each call. Raises CandidateError(VERIFY) for a wrong
        element, and if any element of C is not finite.
        """
        m = self.problem.rows
        n = self.problem.sizes[1]
        c = self._current.output.array
        unwritten = not_finite(c)
        if unwritten:
            raise CandidateError(Stage.VERIFY, f"{unwritten} of {m * n} elements are NaN or infinite")
        rows = self._extreme_rows
        if rows is None:
            rows = self._some_rows(rng)
        _accepted(compare_tile(self._inputs, c, rows, slice(0, n), "elements looked at"))

    def _some_rows(self, rng: np.random.Generator) -> Array:
        return np.sort(rng.permutation(self.problem.rows)[:COMPARED_ROWS])

    def change_inputs(self) -> None:
        self._inputs = negated(self._inputs, self._current.factors)
        self._write_extra()

    @property
    def special_draws(self) -> int:
        return special_draws(self.problem) + has_narrow_bias(self.problem)

    def add_special_numbers(self, rng: np.random.Generator, draw: int = 0) -> None:
        if draw < special_draws(self.problem):
            self._inputs = with_special_numbers(self._inputs, rng, draw)
        else:
            self._inputs = with_special_bias(self._inputs, rng)
        self._write_extra()

    def marks(self, rng: np.random.Generator, calls: int) -> npt.NDArray[np.uint64]:
        """Returns (MARKS, 2) addresses for ``ThreadTeam.watch``: per call an element of A or B, and one of C.

        ``calls``: number of calls; C is then expected as after the last call's change of A or B.
        """
        is_a = rng.random(MARKS) < A_SHARE
        a, b = self._current.factors
        of_a = rng.integers(a.size, size=MARKS)
        of_b = rng.integers(b.size, size=MARKS)
        nans = rng.integers(self._current.output.array.size, size=MARKS)
        last = (calls - 1) % MARKS
        flip = self._flip(int(of_b[last]), is_a=False)
        if is_a[last]:
            flip = self._flip(int(of_a[last]), is_a=True)
        self._inputs = replace(self._inputs, flip=flip)
        # the sign is in the highest byte, NaN is written to the highest two
        signs = np.where(is_a, _highest_bytes(a, of_a, 1), _highest_bytes(b, of_b, 1))
        return np.stack((signs, _highest_bytes(self._current.output.array, nans, 2)), axis=1)

    def expect_flip(self, rng: np.random.Generator) -> tuple[int, int]:
        """Draws an element of A or B; from now on C is expected as if its sign bit were flipped.

        Returns (0 for A or 1 for B, flat index of the element).
        """
        which = int(rng.random() >= A_SHARE)
        index = int(rng.integers(self._current.factors[which].size))
        self._inputs = replace(self._inputs, flip=self._flip(index, is_a=which == 0))
        return which, index

    def expect_no_flip(self) -> None:
        """Ends the effect of ``expect_flip`` and ``marks``: C is expected for the inputs as drawn."""
        self._inputs = replace(self._inputs, flip=None)

    def _flip(self, index: int, *, is_a: bool) -> Flip:
        a, b = self._current.factors
        array, transposed_in = (a, "tn") if is_a else (b, "nt")
        *matrix, row, column = map(int, np.unravel_index(index, array.shape))
        if self.problem.layout == transposed_in:
            row, column = column, row
        return Flip("A" if is_a else "B", row, column, *matrix)

    def compare_some_rows(self, rng: np.random.Generator) -> None:
        m = self.problem.rows
        n = self.problem.sizes[1]
        rows = min(m, max(1, GLANCE_ELEMENTS // n))
        first = int(rng.integers(m - rows + 1))
        _accepted(compare_rows(self._inputs, self._current.output.array, first, first + rows))

    def compare_outputs(self) -> Verdict:
        return _accepted(self._compare(self._inputs, self._current.output.array))

    def changed_input(self) -> str:
        """Returns the name of an input that a kernel has changed; "" if there is none.

        "" also if the inputs are read-only or contain special numbers: then they are not compared.
        """
        if self._current.is_read_only or self._inputs.special is not None:
            return ""
        return changed_inputs(self._inputs, self.operands[:-1])

    def require_same_weights(self, packings: Packings) -> None:
        """Does nothing: a matmul packs no weights ahead."""


def _accepted(compared: tuple[Verdict, str]) -> Verdict:
    """Returns the verdict of a comparison; raises CandidateError(VERIFY) for a wrong element."""
    verdict, worst = compared
    if not verdict.max_error <= 1.0:
        raise CandidateError(Stage.VERIFY, worst)
    return verdict


def _highest_bytes(array: Array, indices: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.uint64]:
    """Returns the addresses of the ``count`` highest bytes, which come last, of elements by flat index."""
    addresses = array.ctypes.data + (indices + 1) * array.itemsize - count
    return addresses.astype(np.uint64)
