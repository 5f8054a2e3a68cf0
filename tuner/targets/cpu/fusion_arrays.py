"""The arrays of a fusion, strided views between guard bands, and the results that are expected in them.

All candidates work on the same memory. What is expected is evaluated once for each draw of the inputs, in
float64, which takes longer than many calls of a kernel. Weights that are matrices have the same numbers in
all draws, packed as the code of a kernel reads them. With the cache state "weights-cold" each call reads the
next of several copies of the weights, which exceed the cache unless there are COPIES_LIMIT copies.
"""

import contextlib
from contextlib import AbstractContextManager
from functools import cached_property
from itertools import chain
from typing import final

import numpy as np
import numpy.typing as npt

from tuner.core.bounded import units_of_error
from tuner.core.errors import CandidateError, Stage
from tuner.core.numpy_types import DTYPES, wide
from tuner.core.packings import Packings
from tuner.core.problem import WEIGHTS_COLD, Problem
from tuner.core.records import Verdict
from tuner.mlir.fusions.function import fusion_arguments
from tuner.mlir.reference.fusion_reference import Expected
from tuner.payload.comparison import wrong_text
from tuner.payload.packed_weights import packed
from tuner.payload.reference import Array
from tuner.runtime.cpu.cold_caches import COPIES_LIMIT
from tuner.runtime.cpu.memory import GuardedArray, placed_copy, placed_empty
from tuner.targets.arrays import GLANCE_ELEMENTS, MARKS, KernelArrays
from tuner.targets.cpu.fusion_draws import Draw, FusionDraws, is_packed_once, view_of

COPIES_LIMIT_BYTES = 2**28  # of packed weights that are kept for later candidates
OTHER_BYTES = 64  # that a kernel never reads
# what ``ThreadTeam.watch`` writes into an element: of floats a NaN
MARK = 0x7FFF
MARK_BYTES = 2


@final
class FusionArrays(KernelArrays):
    """The arrays that kernels of a fusion are verified and timed on."""

    def __init__(self, problem: Problem, rng: np.random.Generator, evicting_bytes: int) -> None:
        """Allocates the arrays and draws inputs.

        ``evicting_bytes``: size of the other weights that drive a weight out of the cache. Raises
        CandidateError(VERIFY) for a fusion without a reference.
        """
        self.problem = problem
        self._arguments = fusion_arguments(problem.text)
        self._inputs = [argument for argument in self._arguments if not argument.is_output]
        self._arrays = tuple(
            GuardedArray.placed(argument.shape, DTYPES[argument.element], strides=argument.strides)
            for argument in self._arguments
        )
        self._evicting_bytes = evicting_bytes if problem.cache == WEIGHTS_COLD else 0
        self._weights = [index for index, argument in enumerate(self._inputs) if argument.is_weight]
        self._copies: dict[Packings, tuple[tuple[Array, ...], ...]] = {}
        self._other = np.zeros(OTHER_BYTES, np.uint8)
        self._reads_output = problem.after_product.reads_output
        self._draws = FusionDraws(problem, rng)
        self._draw_now = self._draws.first
        self.fill(rng)

    @property
    def operands(self) -> tuple[Array, ...]:
        return tuple(array.elements for array in self._arrays)

    @property
    def outputs(self) -> tuple[GuardedArray, ...]:
        return self._arrays[len(self._inputs) :]

    @property
    def before(self) -> Array | None:
        return self._draw_now.inputs[-1] if self._reads_output else None

    def copies(self, packings: Packings) -> tuple[tuple[Array, ...], ...]:
        """Returns the operands with each copy of the weights, packed as ``packings`` say per input."""
        if packings not in self._copies:
            first = self._laid_out(packings)
            weight_bytes = self._weight_bytes(first)
            count = 1
            if 0 < weight_bytes < self._evicting_bytes:  # else one copy is evicted anyway, or caches are warm
                others = -(-self._evicting_bytes // weight_bytes)
                count = min(COPIES_LIMIT, 1 << others.bit_length())  # a power of two
            kept = chain.from_iterable(self._copies.values())
            if weight_bytes * count + sum(map(self._weight_bytes, kept)) > COPIES_LIMIT_BYTES:
                self._copies.clear()  # calls that were made keep theirs
            self._copies[packings] = (first, *(self._copied(first) for _ in range(count - 1)))
        return self._copies[packings]

    def draw_inputs(self, rng: np.random.Generator) -> None:
        self._use(self._draws.usual[int(rng.integers(2))])

    def change_inputs(self) -> None:
        self._use(next(draw for draw in self._draws.usual if draw is not self._draw_now))

    def guarded(self, *, at_end: bool) -> AbstractContextManager[None]:
        """Returns a context manager without effect: kernels of fusions may read some elements past inputs."""
        return contextlib.nullcontext()

    def unevenly_placed(self, rng: np.random.Generator) -> AbstractContextManager[None]:
        """Returns a context manager without effect: a program places its buffers at cache lines."""
        return contextlib.nullcontext()

    @property
    def special_draws(self) -> int:
        return len(self._draws.special)

    def add_special_numbers(self, rng: np.random.Generator, draw: int = 0) -> None:
        """Uses inputs with NaN, infinity, extreme bytes and other numbers whose result is defined."""
        self._use(self._draws.special[draw])

    def draw_extremes(self, rng: np.random.Generator) -> None:
        self._use(self._draws.extreme(rng))

    def check_rows(self, rng: np.random.Generator) -> None:
        self.evaluate()

    @property
    def _drawn(self) -> tuple[Array, ...]:
        """Returns the memory of each input as drawn, without C."""
        return self._draw_now.inputs[: len(self._inputs)]

    def marks(self, rng: np.random.Generator, calls: int) -> npt.NDArray[np.uint64]:
        """Returns (256, 2) addresses for ``ThreadTeam.watch``; ``calls`` is not used.

        Column 0: memory that no kernel reads, so that no input changes. Column 1: the two highest bytes of
        a random output element. Raises CandidateError(VERIFY) if no element can be marked.
        """
        addresses = np.empty((MARKS, 2), np.uint64)
        addresses[:, 0] = self._other.ctypes.data
        places = self._number_places
        chosen = rng.integers(len(places), size=MARKS)
        for output_index, (output, index) in enumerate(places):
            array = self.outputs[output]
            marks = np.flatnonzero(chosen == output_index)
            view = np.atleast_1d(array.array)  # numpy finds no elements of a scalar by their indices
            elements = np.unravel_index(rng.choice(index, len(marks)), view.shape)
            offsets = sum(at * step for at, step in zip(elements, view.strides, strict=True))
            addresses[marks, 1] = view.ctypes.data + offsets + max(view.itemsize - MARK_BYTES, 0)
        return addresses

    def compare_some_rows(self, rng: np.random.Generator) -> None:
        for output, (guarded, expected) in enumerate(zip(self.outputs, self._draw_now.expected, strict=True)):
            array = np.atleast_1d(guarded.array)
            rows = len(array)
            some = min(rows, max(1, GLANCE_ELEMENTS * rows // max(1, array.size)))
            first = int(rng.integers(rows - some + 1))
            part = slice(first, first + some)
            value = np.atleast_1d(expected.value)[part]
            tolerance = np.atleast_1d(expected.tolerance)[part]
            _require_equal(f"output {output}", Expected(value, tolerance), array[part])

    def compare_outputs(self) -> Verdict:
        worst = 0.0
        elements = 0
        for output, (array, expected) in enumerate(zip(self.outputs, self._draw_now.expected, strict=True)):
            worst = max(worst, _require_equal(f"output {output}", expected, array.array))
            elements += array.array.size
        return Verdict(worst, elements)

    def changed_input(self) -> str:
        for index, (array, drawn) in enumerate(zip(self._arrays, self._drawn, strict=False)):
            if array.band_bytes() or not _are_same_bytes(array.elements, drawn):
                return str(index)
        return ""

    def require_same_weights(self, packings: Packings) -> None:
        """Raises CandidateError(VERIFY) if a kernel has changed a copy of its packed weights."""
        as_drawn = self._laid_out(packings)
        for operands in self.copies(packings):
            for weight in self._weights:
                if not _are_same_bytes(operands[weight], as_drawn[weight]):
                    raise CandidateError(Stage.VERIFY, "changed its weights")

    @cached_property
    def _number_places(self) -> list[tuple[int, npt.NDArray[np.int64]]]:
        places = []
        for output, array in enumerate(self.outputs):
            can = [_can_be_marked(draw.expected[output].value, array.array) for draw in self._draws.usual]
            index = np.flatnonzero(np.all(can, axis=0))
            if len(index):
                places.append((output, index))
        if not places:
            why = "fusion: no element of the result is finite for random inputs, or has a byte next to it"
            raise CandidateError(Stage.VERIFY, why)
        return places

    def _use(self, draw: Draw) -> None:
        self._draw_now = draw
        for array, memory in zip(self._arrays, self._drawn, strict=False):
            array.elements[...] = memory
        for packings, copies in self._copies.items():
            for operands in copies:
                for weight in self._weights:  # as biases, which differ from draw to draw
                    if packings[weight] is None and not is_packed_once(self._inputs[weight]):
                        operands[weight][...] = self._drawn[weight]
        self._restore_output()

    def _laid_out(self, packings: Packings) -> tuple[Array, ...]:
        """Returns the operands, with new memory for the weights, packed as ``packings`` say."""
        operands = list(self.operands)
        for index, (argument, memory, packing) in enumerate(
            zip(self._inputs, self._drawn, packings, strict=True)
        ):
            assert argument.is_weight or packing is None, "only weights are packed"
            if packing is not None:
                operands[index] = packed(view_of(memory, argument), packing, placed_empty)
            elif argument.is_weight:
                operands[index] = placed_copy(memory)
        return tuple(operands)

    def _copied(self, operands: tuple[Array, ...]) -> tuple[Array, ...]:
        """Returns the operands with new memory for the weights, which have the same contents."""
        copies = list(operands)
        for weight in self._weights:
            copies[weight] = placed_copy(operands[weight])
        return tuple(copies)

    def _weight_bytes(self, operands: tuple[Array, ...]) -> int:
        return sum(operands[weight].nbytes for weight in self._weights)


def _are_same_bytes(a: Array, b: Array) -> bool:
    return np.array_equal(a.view(np.uint8), b.view(np.uint8))  # NaN is equal, too


def _can_be_marked(expected: npt.NDArray[np.float64], view: Array) -> npt.NDArray[np.bool_]:
    """Returns which elements can be marked: their right values differ from ``ThreadTeam.watch``'s mark."""
    finite = np.isfinite(expected)
    if view.dtype.kind not in "iub":
        return finite
    numbers = np.where(finite, expected, 0).astype(np.int64)
    if view.itemsize >= MARK_BYTES:
        is_other: npt.NDArray[np.bool_] = numbers >> (8 * (view.itemsize - MARK_BYTES)) != MARK
        return finite & is_other
    can = np.zeros(view.shape, np.bool_)
    if view.ndim and view.strides[-1] == 1:
        first = numbers[..., :-1]
        second = numbers[..., 1:]
        # as bytes, the mark is -1 and the greatest number; a result may be off by one
        can[..., :-1] = (np.abs(first + 1) > 1) | (second < np.iinfo(np.int8).max - 1)
    return can


def _require_equal(name: str, expected: Expected, found: Array) -> float:
    error = units_of_error(found, expected.value, expected.tolerance)
    worst = float(error.max(initial=0.0))
    if worst <= 1.0:
        return worst
    index = np.unravel_index(int(np.argmax(error)), error.shape)
    wrong = int(np.count_nonzero(error > 1.0))
    line = wrong_text(wrong, f"{error.size} elements", index, wide(found)[index], expected.value[index])
    raise CandidateError(Stage.VERIFY, f"{name}: {line}")
