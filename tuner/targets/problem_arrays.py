"""The arrays of a problem at fixed addresses: all candidates are verified and timed on the same memory."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tuner.core.errors import CandidateError, Stage
from tuner.core.problem import Problem
from tuner.core.record import Verdict
from tuner.payload.extreme_draw import draw_extremes
from tuner.payload.reference import (
    Array,
    Flip,
    Inputs,
    changed_inputs,
    compare,
    compare_rows,
    compare_tile,
    draw,
    draw_base,
    negated,
    output_dtype,
    with_special_numbers,
)
from tuner.payload.sampled_reference import not_finite
from tuner.runtime.cpu.guarded_arrays import FaultingMemory, GuardedArray, placed_empty
from tuner.targets.kernel_arrays import number_like_a_result

MARKS = 256  # random places of single-element changes, used cyclically; a power of two
A_SHARE = 0.5  # of the numbers that change; the rest are in B
COMPARED_ROWS = 64  # on extreme inputs: some of each kind of row
NAN_SHARE = 0.5  # of the calls of ``overwrite_output``; else a number
GLANCE_ELEMENTS = 2**14  # compared by ``compare_some_rows``: some 0.3 ms
Compare = Callable[[Inputs, Array], tuple[Verdict, str]]  # the text describes the worst element


@dataclass(frozen=True, eq=False)
class PlacedArrays:
    """The arrays of a problem in one place in memory."""

    a: Array
    b: Array
    bias: Array
    output: GuardedArray
    seen: tuple[Array, ...]  # A, B, bias where kernels read them
    is_read_only: bool  # kernels fault where they write A, B or bias

    @classmethod
    def placed(cls, a: Array, b: Array, problem: Problem) -> "PlacedArrays":
        """Returns arrays like ``a`` and ``b``, with the problem's alignment and no more, that can be written.

        With 16, each lies 16 bytes past a cache line.
        """
        offset, dtype = problem.offset_bytes, output_dtype(problem)
        a, b = (placed_empty(each.shape, each.dtype, offset) for each in (a, b))
        bias = placed_empty((problem.sizes[1],), dtype, offset)
        output = GuardedArray.placed((problem.rows, problem.sizes[1]), dtype, offset)
        return cls(a, b, bias, output, (a, b, bias), is_read_only=False)


class ProblemArrays:
    """The host arrays of a problem at fixed addresses: A, B[, bias], and C between guard bands.

    Kernels are timed on them; ``guarded`` has others, between pages that fault, for verification. C is
    compared with a float64 reference. A C of integers gets their smallest number instead of NaN.
    """

    def __init__(self, problem: Problem, rng: np.random.Generator, compare: Compare = compare) -> None:
        """Allocates and draws; the float64 product is computed once, when C is first compared."""
        self.problem = problem
        self._compare = compare
        self._base = draw_base(problem, rng)
        self._at = PlacedArrays.placed(self._base.a, self._base.b, problem)
        self.fill(rng)

    @property
    def operands(self) -> tuple[Array, ...]:
        """Returns the arrays A, B[, bias], C that a kernel is called with.

        C of a batch has the shape (rows of all matrices, n).
        """
        inputs = self._at.seen if self.problem.epilogue == "bias_relu" else self._at.seen[:2]
        return (*inputs, self._at.output.array)

    @property
    def allocations(self) -> tuple[Array, ...]:
        """Returns A, B[, bias], and the bytes of C with its guard bands, for a copy on a device."""
        return (*self.operands[:-1], self._at.output.memory)

    @contextlib.contextmanager
    def guarded(self, *, at_end: bool) -> Iterator[None]:
        """Works, within the block, on arrays between pages that fault; kernels fault where they write inputs.

        Each array lies right before such pages (``at_end``), as near as the problem's alignment allows, or
        right after them.
        """
        timed, self._at = self._at, self._guarded[at_end]
        try:
            yield
        finally:
            self._at = timed

    @functools.cached_property
    def _guarded(self) -> tuple[PlacedArrays, PlacedArrays]:
        """Returns the arrays right after faulting pages, and right before such pages, in the same memory."""
        timed = self._at
        inputs = (timed.a, timed.b, timed.bias)
        memories = [FaultingMemory(each.nbytes, is_read_only=True) for each in inputs]
        output = FaultingMemory(timed.output.array.nbytes, is_read_only=False)
        after, before = (self._operands_in(memories, output, at_end=at_end) for at_end in (False, True))
        return after, before

    def _operands_in(
        self, memories: list[FaultingMemory], of_output: FaultingMemory, *, at_end: bool
    ) -> PlacedArrays:
        def view(memory: FaultingMemory, of: Array, like: Array) -> Array:
            least = like.itemsize if self.problem.align == "any" else int(self.problem.align)
            start = memory.start(like.nbytes, least, at_end=at_end)
            return of[start : start + like.nbytes].view(like.dtype).reshape(like.shape)

        timed = (self._at.a, self._at.b, self._at.bias)
        pairs = list(zip(memories, timed, strict=True))
        a, b, bias = (view(memory, memory.written, like) for memory, like in pairs)
        seen = tuple(view(memory, memory.seen, like) for memory, like in pairs)
        c = view(of_output, of_output.seen, self._at.output.array)
        return PlacedArrays(a, b, bias, GuardedArray(of_output.seen, c), seen, is_read_only=True)

    def fill(self, rng: np.random.Generator) -> None:
        """Draws new inputs in place, and fills C with NaN (integers: the smallest number)."""
        self._inputs = draw(self.problem, self._base, rng, (self._at.a, self._at.b))
        if self._inputs.bias is not None:
            self._at.bias[...] = self._inputs.bias
        self.poison()

    def fill_with_extremes(self, rng: np.random.Generator) -> None:
        """Draws inputs of extreme numbers, such as signed zeros, and fills C with NaN or a number.

        Integers get their smallest number instead of NaN. Overwrites all arrays. See ``draw_extremes``.
        """
        self._inputs = draw_extremes(self.problem, rng)
        operands = zip((self._at.a, self._at.b, self._at.bias), self._inputs.arrays, strict=False)
        for array, drawn in operands:
            array[...] = drawn
        self.overwrite_output(rng)

    def check_rows(self, rng: np.random.Generator) -> None:
        """Compares random rows of C with the reference; all of C must be finite.

        Takes COMPARED_ROWS (64) rows, and computes no other rows of the reference. Raises
        CandidateError(VERIFY) for a wrong or a non-finite element.
        """
        m, n = self.problem.rows, self.problem.sizes[1]
        c = self._at.output.array
        unwritten = not_finite(c)
        if unwritten:
            raise CandidateError(Stage.VERIFY, f"{unwritten} of {m * n} elements are NaN or infinite")
        rows = np.sort(rng.permutation(m)[:COMPARED_ROWS])
        verdict, worst = compare_tile(self._inputs, c, rows, slice(0, n), "elements looked at")
        if not verdict.max_error <= 1.0:
            raise CandidateError(Stage.VERIFY, worst)

    def flip_signs(self) -> None:
        """Negates A and B in place, and fills C with ones."""
        self._inputs = negated(self._inputs, (self._at.a, self._at.b))
        if self._inputs.bias is not None:
            self._at.bias[...] = self._inputs.bias
        self._at.output.fill_with(1)

    def add_special_numbers(self, rng: np.random.Generator) -> None:
        """Puts NaN, infinity, unit vectors or -128 into A and B in place, see ``SpecialNumbers``."""
        self._inputs = with_special_numbers(self._inputs, rng)

    def marks(self, rng: np.random.Generator, calls: int) -> npt.NDArray[np.uint64]:
        """Draws which element of the inputs and which of C to change before each call; changes no array.

        Returns addresses of shape (256, 2), for ``ThreadTeam.watch``: the highest byte of a number of A or B,
        whose sign is to be flipped, and the highest two bytes of an element of C, to become NaN. From then on
        C is compared with the result for the inputs of the last of ``calls`` calls.
        """
        is_a = rng.random(MARKS) < A_SHARE
        flips = [rng.integers(array.size, size=MARKS) for array in (self._at.a, self._at.b)]
        nans = rng.integers(self._at.output.array.size, size=MARKS)
        last = (calls - 1) % MARKS
        self._inputs = replace(self._inputs, flip=self._flip(int(flips[1 - is_a[last]][last]), is_a[last]))
        numbers = np.where(is_a, _ends(self._at.a, flips[0], 1), _ends(self._at.b, flips[1], 1))
        return np.stack((numbers, _ends(self._at.output.array, nans, 2)), axis=1)

    def expect_flip(self, rng: np.random.Generator) -> tuple[int, int]:
        """Chooses a random number of A or B, and from then on compares C as if its top bit were flipped.

        Changes no array: the caller flips the bit, the sign of a float (an i8 changes by 128). Returns where
        the number is: (0 for A or 1 for B, flat index).
        """
        which = int(rng.random() >= A_SHARE)
        index = int(rng.integers((self._at.a, self._at.b)[which].size))
        self._inputs = replace(self._inputs, flip=self._flip(index, which == 0))
        return which, index

    def expect_no_flip(self) -> None:
        """Ends the effect of ``expect_flip`` and ``marks``: C is compared for the inputs as drawn."""
        self._inputs = replace(self._inputs, flip=None)

    def _flip(self, index: int, is_a: bool) -> Flip:
        array, stored_flipped = (self._at.a, "tn") if is_a else (self._at.b, "nt")
        place = tuple(int(each) for each in np.unravel_index(index, array.shape))
        *matrix, row, column = place
        if self.problem.layout == stored_flipped:
            row, column = column, row
        return Flip("A" if is_a else "B", row, column, *matrix)

    def compare_some_rows(self, rng: np.random.Generator) -> None:
        """Compares some consecutive rows of C, at a random place, with the reference.

        Some GLANCE_ELEMENTS (2**14) elements, at least one row. Raises CandidateError(VERIFY) for a wrong
        element.
        """
        m, n = self.problem.rows, self.problem.sizes[1]
        rows = min(m, max(1, GLANCE_ELEMENTS // n))
        first = int(rng.integers(m - rows + 1))
        verdict, worst = compare_rows(self._inputs, self._at.output.array, first, first + rows)
        if not verdict.max_error <= 1.0:
            raise CandidateError(Stage.VERIFY, worst)

    def overwrite_output(self, rng: np.random.Generator) -> None:
        """Overwrites C, at random with NaN (integers: the smallest number) or a number like a result."""
        if rng.random() < NAN_SHARE:
            self.poison()
        else:
            self._at.output.fill_with(number_like_a_result(rng))

    def poison(self) -> None:
        """Fills C with NaN (integers: the smallest number), and its guard bands with their pattern."""
        self._at.output.poison()

    def evaluate(self) -> Verdict:
        """Compares every element of C with the reference; checks that guard bands and inputs are unchanged.

        Returns the verdict. Raises CandidateError(VERIFY) for the first check that fails.
        """
        stray = self._at.output.stray_bytes()
        if stray:
            raise CandidateError(Stage.VERIFY, f"wrote {stray} bytes outside of C")
        verdict, worst = self._compare(self._inputs, self._at.output.array)
        if not verdict.max_error <= 1.0:
            raise CandidateError(Stage.VERIFY, worst)
        changed = "" if self._at.is_read_only else changed_inputs(self._inputs, self.operands[:-1])
        if changed:
            raise CandidateError(Stage.VERIFY, f"changed its input {changed}")
        return verdict


def _ends(array: Array, indices: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.uint64]:
    """Returns the addresses of the ``count`` highest bytes of the elements at flat ``indices``."""
    addresses = array.ctypes.data + (indices + 1) * array.itemsize - count
    return addresses.astype(np.uint64)
