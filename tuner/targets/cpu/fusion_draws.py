"""Inputs of a fusion, usual, special and extreme ones, with the outputs that a correct kernel computes.

A draw is one set of random inputs with the outputs expected for them. Outputs are evaluated once per draw, in
float64, which takes longer than many calls of a kernel. So most lines that a contraction reads are those of
the first draw, or multiples: their product is known (``KnownProduct``). Weights that are matrices have the
same numbers in all draws, as a program's do: they are packed once. Special draws have

  - NaN and infinity of either sign, one of each in each input, far apart (quantized matmuls: a NaN in A);
  - zeros, subnormal, large and tiny numbers, in fusions of sums, products and exact operations only;
  - bytes of -128, with some of 127 where the sum is long; some lines of the weights are like that, too.

Where they make too much of the result NaN or infinite, each input, and at last each number, has a draw of its
own: a NaN in the only row of A hides what a kernel makes of the bias.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tuner.core.bounded import FROM_FLOAT
from tuner.core.dtypes import FLOATS
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.fusion_facts import VISIBLE
from tuner.core.numpy_types import DTYPES
from tuner.core.problem import Problem
from tuner.core.quantization import CONSTANT
from tuner.mlir.fusions.function import FusionArgument, fusion_arguments
from tuner.mlir.fusions.hidden_keys import attention_mask
from tuner.mlir.reference.fusion_reference import (
    Expected,
    FusionReference,
    as_marked,
    multiplied_arguments,
    takes_any_size,
)
from tuner.payload.reference import Array
from tuner.payload.special_numbers import other_places

SCALED = 0.5  # the second draw has -0.5 times the numbers that a contraction reads in the first draw
EXTREME_SCALES = (0.01, 30.0)  # of inputs
ZEROS = 0.05  # share of an input's elements that are zeros of either sign in extreme draws
LEAST_POSITIVE = 0.1  # where an input has to be positive
# among special numbers: their fourth powers, and those of their inverses, are in the range of the type
LARGE_NUMBERS = {"f32": 2.0**30, "f64": 2.0**200, "f16": 8.0}
I4_RANGE = (-8, 8)  # of weights of 4 bits, as below
I8_RANGE = (-128, 128)  # the least of all numbers, and one more than the greatest
LIKE_SUMS = 2**17  # magnitude of sums of products of bytes, for usual K
WIDE_SHARE = 0.5  # of integers that are added to such sums: numbers of any size
FEW_LINES = 4  # along shorter dimensions no line of a weight gets limits: too few would be left as drawn
SHOWN = 0.5  # share of a result that must be finite or, with special numbers in one input only, not NaN
HIDING = (np.nan, np.inf, -np.inf)


@dataclass(frozen=True, eq=False)
class Draw:
    """Random inputs of a fusion, and the outputs that a correct kernel computes from these inputs."""

    inputs: tuple[Array, ...]  # the memory of each input, one-dimensional; of C last, where kernels read it
    expected: tuple[Expected, ...]  # for each output


@dataclass(frozen=True)
class PlacedNumbers:
    """Special numbers that are put into random elements of one input of a fusion."""

    index: int  # of the input
    numbers: tuple[float, ...]


Placements = tuple[PlacedNumbers, ...]


class FusionDraws:
    """Draws inputs of a fusion, and evaluates the outputs expected for them."""

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        """Draws weights and the first inputs; positive numbers only, if others give NaN or infinity.

        Raises CandidateError(VERIFY) for a fusion that no reference can evaluate.
        """
        self._problem = problem
        arguments = fusion_arguments(problem.text)
        # kernels may read C, the last argument
        self._inputs = tuple(
            argument for argument in arguments if not argument.is_output or problem.after_product.reads_output
        )
        self._is_positive = False
        # Remembers the products of the first inputs that it evaluates. Inputs that are not multiples of
        # these, positive or extreme ones, are evaluated by another reference.
        self._reference = FusionReference(problem.text)
        self._rng_of_second = rng.spawn(1)[0]
        weights = {
            index: self._weight(argument, rng)
            for index, argument in enumerate(self._inputs)
            if argument.is_weight
        }
        self.first = self._draw(weights, rng)
        if not all(np.isfinite(output.value).all() for output in self.first.expected):  # a negative variance
            self._is_positive = True
            self._reference = FusionReference(problem.text)
            positive = {index: _positive(weight) for index, weight in weights.items()}
            self.first = self._draw(positive, rng)

    @cached_property
    def usual(self) -> tuple[Draw, Draw]:
        """Returns two draws of usual numbers, equal for all candidates."""
        multiplied = multiplied_arguments(self._problem.text)
        drawn = []
        for index, (argument, memory) in enumerate(zip(self._inputs, self.first.inputs, strict=True)):
            if argument.is_weight:
                drawn.append(memory)
            elif index in multiplied and argument.element in FLOATS:
                factor = -SCALED
                if self._is_positive:
                    factor = SCALED
                drawn.append(memory * memory.dtype.type(factor))
            else:
                drawn.append(self._drawn(argument, self._rng_of_second))
        return self.first, self._evaluated(self._marked(tuple(drawn)))

    @cached_property
    def special(self) -> tuple[Draw, ...]:
        """Returns the draws with NaN, infinity and other special numbers, at least one.

        Equal for all candidates.
        """
        if self._problem.weights not in ("", CONSTANT):
            return tuple(self._quantized())
        draws = tuple(self._separated(self._placements())) or (self._with(()),)
        self._reference = FusionReference(self._problem.text)  # the old one's products take memory
        return draws

    def extreme(self, rng: np.random.Generator) -> Draw:
        """Returns a draw of small or large numbers and zeros; a usual draw if a result is not finite then."""
        drawn = []
        for argument, memory in zip(self._inputs, self.first.inputs, strict=True):
            drawn.append(memory if argument.is_weight else _extreme(memory, rng))
        inputs = self._marked(tuple(drawn))
        expected = FusionReference(self._problem.text).evaluate(self._views(inputs))
        is_finite = all(np.isfinite(output.value).all() for output in expected)
        if is_finite:
            return Draw(inputs, expected)
        return self.first

    def _draw(self, weights: Mapping[int, Array], rng: np.random.Generator) -> Draw:
        drawn = []
        for index, argument in enumerate(self._inputs):
            drawn.append(weights[index] if index in weights else self._drawn(argument, rng))
        return self._evaluated(self._marked(tuple(drawn)))

    def _weight(self, argument: FusionArgument, rng: np.random.Generator) -> Array:
        memory = self._drawn(argument, rng)
        if argument.element == "i8":
            low, high = I4_RANGE if argument.bits == 4 else I8_RANGE
            _put_limit_lines(view_of(memory, argument), low, high - 1)
        return memory

    def _drawn(self, argument: FusionArgument, rng: np.random.Generator) -> Array:
        if argument.element == "i8":
            low, high = I4_RANGE if argument.bits == 4 else I8_RANGE
            return rng.integers(low, high, argument.span).astype(np.int8)
        if argument.element == "i1":
            return rng.integers(0, 2, argument.span).astype(np.bool_)
        if argument.element == "i32" and self._problem.multiplied_dtype == "i8":
            return self._like_sums(argument, rng)
        numbers: Array = rng.standard_normal(argument.span).astype(DTYPES[argument.element])
        if self._is_positive:
            return _positive(numbers)
        return numbers

    def _like_sums(self, argument: FusionArgument, rng: np.random.Generator) -> Array:
        """Returns integers to be added to sums of products of bytes: like such sums, and half of any size.

        No sum overflows. Where results become floats and then bytes, none is of any size: these would be
        clamped, or undefined.
        """
        sums = self._problem.sizes[2] * I8_RANGE[0] ** 2
        addends = sum(other.element == "i32" for other in self._inputs)
        largest = max(0, (np.iinfo(np.int32).max - sums) // addends)
        usual = min(largest, LIKE_SUMS)
        numbers = rng.integers(-usual, usual + 1, argument.span)
        if not any(name in self._problem.text for name in FROM_FLOAT):
            is_wide = rng.random(argument.span) < WIDE_SHARE
            numbers[is_wide] = rng.integers(-largest, largest + 1, int(np.count_nonzero(is_wide)))
        return numbers.astype(np.int32)

    def _marked(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        """Returns inputs with what the fusion's marks promise of them."""
        views = self._views(inputs)
        for view, marked in zip(views, as_marked(self._problem.text, views), strict=True):
            if marked is not view:
                view[...] = marked
        return inputs

    def _views(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(map(view_of, inputs, self._inputs))

    def _evaluated(self, inputs: tuple[Array, ...]) -> Draw:
        try:
            return Draw(inputs, self._reference.evaluate(self._views(inputs)))
        except UsageError as error:
            raise CandidateError(Stage.VERIFY, f"no reference: {error.message}") from error

    def _placements(self) -> Placements:
        """Returns what is put into the inputs.

        Nothing where numbers become integers: LLVM leaves open which integer NaN and infinity become. Nothing
        into what a mask may hide: with NaN there, a program computes the attention without this mark.
        """
        text = self._problem.text
        if any(name in text for name in FROM_FLOAT):
            return ()
        mask = attention_mask(text) if VISIBLE in text else None
        kept = (mask.argument, *mask.guarded) if mask else ()
        any_size = takes_any_size(text) and not self._is_positive
        placements = []
        for index, argument in enumerate(self._inputs):
            if is_packed_once(argument) or argument.element not in FLOATS or index in kept:
                continue
            numbers: tuple[float, ...] = HIDING[:2] if self._is_positive else HIDING
            if any_size and argument.element in LARGE_NUMBERS:
                numbers += _numbers_of_any_size(argument)
            elements = int(np.prod(argument.shape, dtype=np.int64))
            # up to half of the elements, NaN first
            if elements > 1:
                placements.append(PlacedNumbers(index, numbers[: elements // 2]))
        return tuple(placements)

    def _separated(self, placements: Placements) -> Iterator[Draw]:
        """Yields draws with these numbers: one, or several if much of a result would be NaN or infinite."""
        if not placements:
            return
        draw = self._with(placements)
        parts = _parts(placements)
        if len(parts) == 1 or _shows(draw, is_alone=len(placements) == 1):
            yield draw
            return
        for part in parts:
            yield from self._separated((part,))

    def _with(self, placements: Placements) -> Draw:
        seed = 0
        if self._inputs:
            seed = self._inputs[0].span
        rng = np.random.default_rng(seed)
        inputs = list(self.first.inputs)
        for index, argument in enumerate(self._inputs):
            if argument.element == "i8" and not argument.is_weight:
                inputs[index] = inputs[index].copy()
                _fill_with_two(view_of(inputs[index], argument), I8_RANGE[0], I8_RANGE[1] - 1)
        for order, placed in enumerate(placements):
            memory = inputs[placed.index] = inputs[placed.index].copy()
            view = view_of(memory, self._inputs[placed.index])
            _put(view, placed.numbers, rng, which=order, inputs=len(placements))
        marked = self._marked(tuple(inputs))
        # with a seed, two more evaluations on perturbed results find the elements for which rounding decides
        # whether they are finite: any number is right there
        return Draw(marked, self._reference.evaluate(self._views(marked), seed))

    def _quantized(self) -> Iterator[Draw]:
        """Yields draws of a quantized matmul with a NaN in A; for products of i8 a row has one magnitude.

        A single row is also drawn without NaN. No infinity: a kernel may subtract zero points from sums.
        """
        activations = self._inputs[0]
        rng = np.random.default_rng(activations.span)
        rows = self.first.inputs[0].copy()
        has_bytes = self._problem.multiplied_dtype == "i8"
        if has_bytes:
            sizes = np.abs(rng.standard_normal((activations.shape[0], 1))) + LEAST_POSITIVE
            signs = np.ones(activations.shape)
            _fill_with_two(signs, -1, 1)
            view_of(rows, activations)[...] = (signs * sizes).astype(rows.dtype)
        with_nan = rows.copy()
        _put(view_of(with_nan, activations), HIDING[:1], rng)
        nan_fills_result = has_bytes and activations.shape[0] == 1
        for memory in (rows, with_nan) if nan_fills_result else (with_nan,):
            yield self._evaluated((memory, *self.first.inputs[1:]))


def view_of(memory: Array, argument: FusionArgument) -> Array:
    """Returns the strided view of ``memory`` that a fusion's argument has; its first element is memory[0]."""
    strides = [stride * memory.itemsize for stride in argument.strides]
    return np.lib.stride_tricks.as_strided(memory, argument.shape, strides)


def is_packed_once(argument: FusionArgument) -> bool:
    """Returns whether an input is a weight matrix.

    A kernel may read it packed, so all draws have the same matrix.
    """
    return argument.is_weight and len(argument.shape) > 1


def _positive(memory: Array) -> Array:
    if memory.dtype.kind == "b":
        return memory
    if memory.dtype.kind in "iu":
        # -128 becomes 127, and -8 of 4 bits 7: their magnitudes are beyond the type
        magnitudes: Array = np.maximum(np.where(memory < 0, ~memory, memory), 1)
        return magnitudes
    positive: Array = (np.abs(memory) + np.asarray(LEAST_POSITIVE, memory.dtype)).astype(memory.dtype)
    return positive


def _extreme(memory: Array, rng: np.random.Generator) -> Array:
    if memory.dtype == np.int8:
        return rng.choice(np.array([I8_RANGE[0], I8_RANGE[1] - 1, 0], np.int8), memory.size)
    if memory.dtype.kind in "iub":
        return memory
    scale = EXTREME_SCALES[int(rng.integers(len(EXTREME_SCALES)))]
    numbers = (memory.astype(np.float64) * scale).astype(memory.dtype)
    is_zero = (rng.random(memory.size) < ZEROS) & np.isfinite(memory)  # not the -inf of a mask
    numbers[is_zero] *= 0
    return numbers


def _put_limit_lines(weight: Array, least: int, greatest: int) -> None:
    """Fills two lines of each weight matrix with limits of its type, along its first and last dimension.

    One of these is the dimension that is not summed up, in whatever order a weight has its dimensions.
    """
    if weight.ndim < 2:
        return
    for lines in (np.moveaxis(weight, -1, 0), weight):
        if len(lines) >= FEW_LINES:
            _fill_with_two(lines[0], least, greatest)
            _fill_with_two(lines[len(lines) // 2], greatest, least)


def _fill_with_two(line: Array, usual: int, other: int) -> None:
    """Fills an array with a number; where it is long, some places of its last dimension have another.

    The places are equal for equal lengths, so those of two factors meet.
    """
    line[...] = usual
    length = line.shape[-1] if line.ndim else 0
    if length:
        line[..., other_places(length, np.random.default_rng(length))] = other


def _numbers_of_any_size(argument: FusionArgument) -> tuple[float, ...]:
    large = LARGE_NUMBERS[argument.element]
    dtype = DTYPES[argument.element].type
    least = float(np.nextafter(dtype(0), dtype(1)))
    return (-0.0, 0.0, least, large, -1 / large)


def _parts(placements: Placements) -> Placements:
    """Returns each input's numbers alone; for one input each NaN or infinity alone, then all others."""
    if len(placements) > 1:
        return placements
    (only,) = placements
    hiding = [number for number in only.numbers if not np.isfinite(number)]
    rest = tuple(filter(np.isfinite, only.numbers))
    groups: list[tuple[float, ...]] = [(number,) for number in hiding]
    if rest:
        groups.append(rest)
    return tuple(replace(only, numbers=numbers) for numbers in groups)


def _shows(draw: Draw, *, is_alone: bool) -> bool:
    """Returns whether enough of each output is finite; ``is_alone``: not NaN, for one input."""
    for output in draw.expected:
        shown = ~np.isnan(output.value) if is_alone else np.isfinite(output.value)
        if np.count_nonzero(shown) < SHOWN * output.value.size:
            return False
    return True


def _put(
    view: Array, numbers: tuple[float, ...], rng: np.random.Generator, *, which: int = 0, inputs: int = 1
) -> None:
    """Puts numbers into an array, each at a random place of its share of the elements.

    The array is number ``which`` of ``inputs`` arrays that get numbers. The shares of several inputs lie next
    to each other, in each second input for the numbers in reverse order: so NaN in a row of A hides none in a
    residual. NaN and infinity in 2 inputs of 100 elements each:
        input 0: NaN in one of the elements 0 to 24, infinity in one of 50 to 74
        input 1: infinity in one of the elements 25 to 49, NaN in one of 75 to 99
    """
    size = view.size
    shares = inputs * len(numbers)
    if which % 2 == 1:
        numbers = numbers[::-1]
    for index, number in enumerate(numbers):
        share = index * inputs + which
        first = share * size // shares
        end = max(first + 1, (share + 1) * size // shares)
        view[np.unravel_index(int(rng.integers(first, end)), view.shape)] = number
