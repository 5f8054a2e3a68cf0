"""The arrays of a fusion, strided views between guard bands, and the results that are expected in them.

All candidates work on the same memory. What is expected is evaluated once for each draw of the inputs, in
float64, which takes longer than many calls of a kernel. Weights that are matrices have the same numbers in
all draws, packed as the code of a kernel reads them. With the cache state "weights-cold" each call reads the
next of several copies of the weights, which exceed the cache unless there are COPIES_LIMIT copies.
"""

import contextlib
from collections.abc import Iterator
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from tuner.core.errors import CandidateError, Stage
from tuner.core.numpy_types import DTYPES
from tuner.core.packings import WeightPacking
from tuner.core.problem import WEIGHTS_COLD
from tuner.core.problem_classes import TextProblem
from tuner.core.records import Verdict
from tuner.mlir.fusions.function import FusionArgument, fusion_arguments
from tuner.mlir.reference.fusion_reference import Expected, worst_error
from tuner.payload.packed_weights import pack, packed_shape
from tuner.payload.reference import Array
from tuner.runtime.cpu.cold_caches import COPIES_LIMIT, RotatedCalls
from tuner.runtime.cpu.jit import PackedArguments
from tuner.runtime.cpu.memory import GuardedArray, placed_empty
from tuner.targets.arrays import number_like_a_result
from tuner.targets.cpu.fusion_draws import DRAWS, Draw, FusionDraws, is_packed_once, view_of
from tuner.targets.cpu.timing_checks import PartitionCalls

BLOCKS_LIMIT_BYTES = 2**28  # of packed weights that are kept for later candidates
MARKS = 256  # random places of marked elements, used cyclically; a power of two
NAN_SHARE = 0.5  # of the calls of ``overwrite_output``; else a number
SOME_ELEMENTS = 2**14  # compared by ``compare_some_rows``
OTHER_BYTES = 64  # that a kernel never reads
# what ``ThreadTeam.watch`` writes into an element: of floats a NaN
MARK = 0x7FFF
MARK_BYTES = 2
Packings = tuple[WeightPacking | None, ...]


class StridedArray:
    """An array of a fusion: a strided view between guard bands.

    The bytes between its rows are checked too.
    """

    def __init__(self, argument: FusionArgument) -> None:
        """Allocates the memory of an argument, filled as by ``poison``."""
        self._guarded = GuardedArray.placed((argument.span,), DTYPES[argument.element])
        self.memory = self._guarded.array  # all elements from the first to the last one
        self.view = view_of(self.memory, argument)
        self._before = self.memory
        self._has_gaps = self.view.size < self.memory.size

    @property
    def address(self) -> int:
        """Returns the address of the first element of the view."""
        return self.memory.ctypes.data

    def poison(self) -> None:
        """Fills the memory with NaN (integers: the smallest number), and restores the guard bands."""
        self._guarded.poison()
        self._keep()

    def fill_with(self, number: int) -> None:
        """Fills the memory with a number, and the guard bands with their pattern."""
        self._guarded.fill_with(number)
        self._keep()

    def fill_from(self, numbers: Array) -> None:
        """Copies numbers of the memory's shape to it, and fills the guard bands with their pattern."""
        self._guarded.fill_from(numbers)
        self._keep()

    def stray_bytes(self) -> int:
        """Returns how many bytes outside of the view, guard bands included, changed since it was filled."""
        stray = self.guard_bytes()
        if self._has_gaps:
            was = self._before.view(np.uint8)
            now = self._without_view().view(np.uint8)
            stray += int(np.count_nonzero(was != now))
        return stray

    def guard_bytes(self) -> int:
        """Returns how many bytes of the guard bands changed since they were filled."""
        return self._guarded.stray_bytes()

    def _keep(self) -> None:
        if self._has_gaps:
            self._before = self._without_view()

    def _without_view(self) -> Array:
        copy = self.memory.copy()
        strides = self.view.strides
        np.lib.stride_tricks.as_strided(copy, self.view.shape, strides)[...] = np.ones((), copy.dtype)
        return copy


class FusionArrays:
    """The arrays that kernels of a fusion are verified and timed on."""

    def __init__(self, problem: TextProblem, rng: np.random.Generator, evicting_bytes: int) -> None:
        """Allocates the arrays and draws inputs.

        ``evicting_bytes``: size of the other weights that drive a weight out of the cache. Raises
        CandidateError(VERIFY) for a fusion without a reference.
        """
        self.problem = problem
        self._arguments = fusion_arguments(problem.text)
        self._inputs = [argument for argument in self._arguments if not argument.is_output]
        self._arrays = list(map(StridedArray, self._arguments))
        self._evicting_bytes = evicting_bytes if problem.cache == WEIGHTS_COLD else 0
        self._blocks: dict[Packings, list[tuple[Array, ...]]] = {}
        self._other = np.zeros(OTHER_BYTES, np.uint8)
        self._reads_output = problem.after_product.reads_output
        read = tuple(self._inputs)
        if self._reads_output:
            read = self._arguments
        self._draws = FusionDraws(problem, read, rng)
        self._draw_now = self._draws.usual[0]
        self.fill(rng)

    @property
    def operands(self) -> tuple[Array, ...]:
        return tuple(array.memory for array in self._arrays)

    def calls(self, function: int, packings: Packings, threads: int = 1) -> PartitionCalls:
        """Returns the calls, one per thread, of a fusion's function at the address ``function``.

        Each call reads the next copy of the weights, packed as ``packings`` say per input. A function of
        several threads also takes a thread's number and the number of threads.
        """
        blocks = self._packed(packings)
        weights = tuple(chain.from_iterable(blocks))
        calls = []
        keeps = []
        for thread in range(threads):
            share = (thread, threads) if threads > 1 else ()
            arguments = tuple(PackedArguments(*self._addresses(block), *share) for block in blocks)
            rotated = RotatedCalls(function, arguments) if len(arguments) > 1 else None
            calls.append(rotated.call if rotated else (function, arguments[0].address))
            keeps.append((arguments, rotated))
        return PartitionCalls(tuple(calls), (), (self._arrays, blocks, keeps), weights)

    def fill(self, rng: np.random.Generator) -> None:
        self._use(self._draws.usual[int(rng.integers(DRAWS))])
        self.poison()

    def flip_signs(self) -> None:
        self._use(next(draw for draw in self._draws.usual if draw is not self._draw_now))
        if not self._restored():
            for output in self._outputs:
                output.fill_with(1)

    @contextlib.contextmanager
    def guarded(self, *, at_end: bool) -> Iterator[None]:
        """Context manager without effect: kernels of fusions may read some elements past their inputs."""
        yield

    @contextlib.contextmanager
    def unevenly_placed(self, rng: np.random.Generator) -> Iterator[None]:
        """Context manager without effect: a program places the buffers of its fusions at cache lines."""
        yield

    @property
    def special_draws(self) -> int:
        return len(self._draws.special)

    def add_special_numbers(self, rng: np.random.Generator, draw: int = 0) -> None:
        """Uses inputs with NaN, infinity, extreme bytes and other numbers whose result is defined."""
        self._use(self._draws.special[draw])

    def fill_with_extremes(self, rng: np.random.Generator) -> None:
        """Uses inputs of small and large numbers and signed zeros; usual ones if a result is not finite then.

        Then overwrites the outputs.
        """
        self._use(self._draws.extreme(rng))
        self.overwrite_output(rng)

    def check_rows(self, rng: np.random.Generator) -> None:
        self.evaluate()

    def overwrite_output(self, rng: np.random.Generator) -> None:
        if self._restored():
            return
        if rng.random() < NAN_SHARE:
            self.poison()
        else:
            for output in self._outputs:
                output.fill_with(number_like_a_result(rng))

    def poison(self) -> None:
        """Fills the outputs with NaN (integers: the smallest number), and guard bands with their pattern.

        Where kernels read C, it gets what C is to hold before a call in place of NaN.
        """
        if not self._restored():
            for output in self._outputs:
                output.poison()

    def _restored(self) -> bool:
        """Returns whether kernels read C, which then holds what it is to hold before a call."""
        if not self._reads_output:
            return False
        self._outputs[0].fill_from(self._draw_now.inputs[-1])
        return True

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
            array = self._outputs[output]
            marks = np.flatnonzero(chosen == output_index)
            view = np.atleast_1d(array.view)  # numpy finds no elements of a scalar by their indices
            elements = np.unravel_index(rng.choice(index, len(marks)), view.shape)
            offsets = sum(at * step for at, step in zip(elements, view.strides, strict=True))
            addresses[marks, 1] = array.address + offsets + max(view.itemsize - MARK_BYTES, 0)
        return addresses

    def compare_some_rows(self, rng: np.random.Generator) -> None:
        for output, (array, expected) in enumerate(zip(self._outputs, self._draw_now.expected, strict=True)):
            rows = array.view.shape[0] if array.view.ndim else 1
            some = min(rows, max(1, SOME_ELEMENTS * rows // max(1, array.view.size)))
            first = int(rng.integers(rows - some + 1))
            part = np.s_[first : first + some] if array.view.ndim else np.s_[...]
            wanted = Expected(expected.value[part], expected.tolerance[part])
            _require_equal(f"output {output}", wanted, array.view[part])

    def evaluate(self) -> Verdict:
        stray = sum(output.stray_bytes() for output in self._outputs)
        if stray:
            raise CandidateError(Stage.VERIFY, f"wrote {stray} bytes outside of its outputs")
        worst = 0.0
        elements = 0
        for output, (array, expected) in enumerate(zip(self._outputs, self._draw_now.expected, strict=True)):
            worst = max(worst, _require_equal(f"output {output}", expected, array.view))
            elements += array.view.size
        pairs = zip(self._arrays, self._drawn, strict=False)
        for index, (array, drawn) in enumerate(pairs):
            if array.guard_bytes() or not _are_same_bytes(array.memory, drawn):
                raise CandidateError(Stage.VERIFY, f"changed its input {index}")
        return Verdict(worst, elements)

    def require_same_weights(self, packings: Packings) -> None:
        """Raises CandidateError(VERIFY) if a kernel has changed a copy of its packed weights."""
        as_drawn = self._laid_out(packings)
        for block in self._packed(packings):
            if not all(map(_are_same_bytes, block, as_drawn)):
                raise CandidateError(Stage.VERIFY, "changed its weights")

    @property
    def _outputs(self) -> list[StridedArray]:
        return self._arrays[len(self._inputs) :]

    @cached_property
    def _number_places(self) -> list[tuple[int, npt.NDArray[np.int64]]]:
        places = []
        for output, array in enumerate(self._outputs):
            can = [_can_be_marked(draw.expected[output].value, array.view) for draw in self._draws.usual]
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
            array.memory[...] = memory
        for packings, blocks in self._blocks.items():
            for block in blocks:
                self._write_vectors(block, packings)
        self._restored()

    def _write_vectors(self, block: tuple[Array, ...], packings: Packings) -> None:
        """Writes the weights that differ from draw to draw, as biases, into a copy of the weights."""
        places = iter(block)
        for argument, memory, packing in zip(self._inputs, self._drawn, packings, strict=True):
            if argument.is_weight or packing is not None:
                copy = next(places)
                if packing is None and not is_packed_once(argument):
                    copy[...] = memory

    def _packed(self, packings: Packings) -> list[tuple[Array, ...]]:
        if packings not in self._blocks:
            first = self._laid_out(packings)
            weight_bytes = sum(weight.nbytes for weight in first)
            copies = 1
            if 0 < weight_bytes < self._evicting_bytes:  # else one copy is evicted anyway, or caches are warm
                others = -(-self._evicting_bytes // weight_bytes)
                copies = min(COPIES_LIMIT, 1 << others.bit_length())  # a power of two
            if weight_bytes * copies + self._kept_bytes > BLOCKS_LIMIT_BYTES:
                self._blocks.clear()  # calls that were made keep theirs
            self._blocks[packings] = [first, *(tuple(map(_copied, first)) for _ in range(copies - 1))]
        return self._blocks[packings]

    @property
    def _kept_bytes(self) -> int:
        blocks = chain.from_iterable(self._blocks.values())
        return sum(weight.nbytes for weight in chain.from_iterable(blocks))

    def _laid_out(self, packings: Packings) -> tuple[Array, ...]:
        triples = zip(self._inputs, self._drawn, packings, strict=True)
        return tuple(_laid_out(*triple) for triple in triples if triple[0].is_weight or triple[2] is not None)

    def _addresses(self, weights: tuple[Array, ...]) -> list[int]:
        left = list(weights)
        addresses = [
            left.pop(0).ctypes.data if argument.is_weight else array.address
            for argument, array in zip(self._arguments, self._arrays, strict=True)
        ]
        assert not left, "only weights are packed"
        return addresses


def _laid_out(argument: FusionArgument, memory: Array, packing: WeightPacking | None) -> Array:
    if packing is None:
        return _copied(memory)
    shape = packed_shape(argument.shape, packing)
    packed = placed_empty((int(np.prod(shape)),), memory.dtype)
    pack(view_of(memory, argument), packing, packed)
    return packed


def _copied(array: Array) -> Array:
    copy = placed_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


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
    worst = worst_error(expected, found)
    if worst <= 1.0:
        return worst
    wide = found.astype(np.float64)
    with np.errstate(all="ignore"):
        error = np.abs(wide - expected.value) / np.maximum(expected.tolerance, np.finfo(np.float64).tiny)
    is_same = (wide == expected.value) | (np.isnan(wide) & np.isnan(expected.value))
    error = np.where(np.isnan(error), np.inf, error)
    error[is_same | (expected.tolerance == np.inf)] = 0.0
    index = np.unravel_index(int(np.nanargmax(error)), error.shape)
    wrong = int(np.count_nonzero(error > 1.0))
    at = ", ".join(map(str, map(int, index)))
    line = f"worst at [{at}]: found {wide[index]:.9g}, expected {expected.value[index]:.9g}"
    raise CandidateError(Stage.VERIFY, f"{name}: {wrong} of {wide.size} elements are wrong; {line}")
