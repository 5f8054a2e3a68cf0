"""Named convolutions evaluated on arrays: a product of matrices of windows and weights."""

from collections.abc import Mapping
from math import prod

import numpy as np

from tuner.mlir.bindings import Op
from tuner.mlir.reference.running_error import Bounded, Float64, product_of_matrices
from tuner.mlir.rewrite.convolution_forms import ConvolutionForm, convolution_form


def convolution(op: Op, x: Bounded, weights: Bounded) -> Bounded:
    """Returns what a named convolution computes of its input and weights, starting from zeros."""
    form = convolution_form(op)
    batch = "".join(each for each in form.output if each in form.weights and each != "f")
    rows = "".join(each for each in form.output if each not in form.weights)
    columns = "f" if "f" in form.weights else ""
    sizes = dict(zip(form.weights, weights.value.shape, strict=True))
    sizes |= dict(zip(form.output, op.results[0].type.shape, strict=True))

    def matrices(letters: str, *parts: str) -> tuple[tuple[int, ...], list[int]]:
        shape = tuple(prod(sizes[each] for each in part) for part in parts)
        return shape, [letters.index(each) for part in parts for each in part]

    seen = x.reshaped(lambda array: _windows(array, form, sizes))
    left = _arranged(seen, *matrices(form.input + form.window, batch, rows, form.reduced))
    right = _arranged(weights, *matrices(form.weights, batch, form.reduced, columns))
    made = product_of_matrices(left, right, str(op.results[0].type.element_type))
    found = batch + rows + columns
    shape = tuple(sizes[each] for each in found)
    order = [found.index(each) for each in form.output]
    return made.reshaped(lambda array: array.reshape(shape).transpose(order))


def _arranged(bounded: Bounded, shape: tuple[int, ...], order: list[int]) -> Bounded:
    return bounded.reshaped(lambda array: array.transpose(order).reshape(shape))


def _windows(x: Float64, form: ConvolutionForm, sizes: Mapping[str, int]) -> Float64:
    """Returns a view of the input with the dimensions of the window after its own, at the output's pixels."""
    shape = [sizes[each] for each in form.input + form.window]
    steps = list(x.strides)
    for place, name in enumerate(form.window):
        side = form.input.index(name.upper())
        steps.append(x.strides[side] * form.dilations[place])
        steps[side] *= form.strides[place]
    return np.lib.stride_tricks.as_strided(x, shape, steps, writeable=False)
