"""The products of a fusion, of matrices or by convolutions, computed once for draws with the same lines.

Lines are rows of A and columns of B. Most lines of a draw are those of the first one, times powers of two.
A few have special numbers, and only the products of these are computed.
"""

from collections.abc import Mapping, Sequence
from math import prod
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from tuner.core.bounded import Bounded, ExactSums, Float64, SumsOf, exact_sums, product_of_matrices
from tuner.mlir.bindings import Op, ir
from tuner.mlir.fusions.convolutions import LAYOUTS, ConvolutionForm, convolution_form
from tuner.mlir.fusions.function import MATMULS, indexing_maps, loop_extents

PRODUCTS = (*MATMULS, *LAYOUTS)
FEW_LINES = 0.5  # share of a matrix's lines: with more others, all of the product is computed
HALF = 0.5  # the mantissa of a power of two


def product_of(op: Op, left: Bounded, right: Bounded, sums: SumsOf) -> Bounded:
    """Returns the result of an op of PRODUCTS, from sums of 0; ``left``, ``right``: its two operands.

    ``sums``: computes the product of operands without errors, as ``exact_sums`` does.
    """
    if op.name in LAYOUTS:
        return _convolution(op, left, right, sums)
    return _matmul(op, left, right, sums)


class KnownProduct:
    """Sums of products of matrices, made from the first such sums where the matrices have the same lines.

    Whether a line is one of the first draw's times a power of two is found from all of its numbers, so that
    draws need no promise.
    """

    def __init__(self) -> None:
        self._first: tuple[Float64, Float64, ExactSums] | None = None

    def __call__(self, a: Float64, b: Float64, element: str) -> ExactSums:
        """Returns A B of matrices or batches of matrices, where a kernel sums up in the type ``element``.

        The shapes of A and B, and ``element``, are the same in each call.
        """
        if self._first is None:
            self._first = (a, b, exact_sums(a, b, element))
            return self._first[2]
        first_a, first_b, known = self._first
        of_rows = _factors(a, first_a)
        of_columns = _factors(b.swapaxes(-1, -2), first_b.swapaxes(-1, -2))
        rows = _others(of_rows)
        columns = _others(of_columns)
        if len(rows) > FEW_LINES * a.shape[-2] or len(columns) > FEW_LINES * b.shape[-1]:
            return exact_sums(a, b, element)
        factors = of_rows[..., :, None] * of_columns[..., None, :]
        value = known.value * factors
        largest = known.largest * np.abs(factors)
        if len(rows):
            part = exact_sums(a[..., rows, :], b, element)
            value[..., rows, :] = part.value
            largest[..., rows, :] = part.largest
        if len(columns):
            part = exact_sums(a, b[..., columns], element)
            value[..., columns] = part.value
            largest[..., columns] = part.largest
        return ExactSums(value, largest)


def _factors(lines: Float64, first: Float64) -> Float64:
    """Returns the factor that makes each line (last axis) of ``first`` that of ``lines``.

    0 where there is none that is a power of two, of either sign.
    """
    if lines.__array_interface__ == first.__array_interface__:  # the same memory
        return np.ones(lines.shape[:-1])
    at_largest = np.argmax(np.abs(first), axis=-1, keepdims=True)
    ratios = np.take_along_axis(lines, at_largest, -1) / np.take_along_axis(first, at_largest, -1)
    mantissas, _ = np.frexp(np.abs(ratios))
    ratios = np.where(mantissas == HALF, ratios, 0.0)
    is_multiple = np.all(first * ratios == lines, axis=-1) & (ratios[..., 0] != 0)
    return np.where(is_multiple, ratios[..., 0], 0.0)


def _others(factors: Float64) -> npt.NDArray[np.int64]:
    """Returns the indices of lines that have no factor, in some matrix of the batch."""
    return np.flatnonzero(np.any(factors == 0, axis=tuple(range(factors.ndim - 1))))


def _matmul(op: Op, left: Bounded, right: Bounded, sums: SumsOf) -> Bounded:
    """Returns the product of a matmul or a batch_matmul, whose operands are read through its indexing maps.

    MLIR's verifier allows transposed operands, and operands that are repeated along a loop.
    """
    of_left, of_right, of_result = map(_loops_of, indexing_maps(op))
    *batch, row, column = of_result
    summed = column + 1
    extents = loop_extents(op)
    rows = _by_loops(left, of_left, (*batch, row, summed), extents)
    columns = _by_loops(right, of_right, (*batch, summed, column), extents)
    return product_of_matrices(rows, columns, str(op.results[0].type.element_type), sums)


def _loops_of(mapping: ir.AffineMap) -> list[int]:
    return list(map(attrgetter("position"), mapping.results))


def _by_loops(bounded: Bounded, loops: list[int], wanted: Sequence[int], extents: Sequence[int]) -> Bounded:
    """Returns an operand with a dimension for each loop of ``wanted``, repeated along those that it lacks."""
    present = [*sorted({*wanted} - {*loops}), *loops]
    order = list(map(present.index, wanted))
    shape = list(map(extents.__getitem__, present))
    return bounded.reshaped(lambda array: np.broadcast_to(array, shape).transpose(order))


def _convolution(op: Op, image: Bounded, weights: Bounded, sums: SumsOf) -> Bounded:
    """Returns the result of a named convolution of an image and weights."""
    form = convolution_form(op)
    # as a batch of matmuls, [batch, rows, reduced] x [batch, reduced, columns]; letters name dimensions
    batch = "".join(dimension for dimension in form.output if dimension in form.weights and dimension != "f")
    rows = "".join(dimension for dimension in form.output if dimension not in form.weights)
    columns = "f" if "f" in form.weights else ""
    sizes = dict(zip(form.weights, weights.value.shape, strict=True))
    sizes |= dict(zip(form.output, op.results[0].type.shape, strict=True))

    def matrices(letters: str, *parts: str) -> tuple[tuple[int, ...], list[int]]:
        shape = [prod(map(sizes.__getitem__, part)) for part in parts]
        return tuple(shape), list(map(letters.index, "".join(parts)))

    seen = image.reshaped(lambda array: _windows(array, form, sizes))
    left = _arranged(seen, *matrices(form.input + form.window, batch, rows, form.reduced))
    right = _arranged(weights, *matrices(form.weights, batch, form.reduced, columns))
    made = product_of_matrices(left, right, str(op.results[0].type.element_type), sums)
    letters_of_product = batch + rows + columns
    shape = tuple(map(sizes.__getitem__, letters_of_product))
    order = list(map(letters_of_product.index, form.output))
    return made.reshaped(lambda array: array.reshape(shape).transpose(order))


def _arranged(bounded: Bounded, shape: tuple[int, ...], order: list[int]) -> Bounded:
    return bounded.reshaped(lambda array: array.transpose(order).reshape(shape))


def _windows(image: Float64, form: ConvolutionForm, sizes: Mapping[str, int]) -> Float64:
    shape = [sizes[dimension] for dimension in form.input + form.window]
    steps = list(image.strides)
    for index, name in enumerate(form.window):
        side = form.input.index(name.upper())
        steps.append(image.strides[side] * form.dilations[index])
        steps[side] *= form.strides[index]
    return np.lib.stride_tricks.as_strided(image, shape, steps, writeable=False)
