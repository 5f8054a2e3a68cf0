"""Convolutions by a product of matrices are those by their definition."""

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from tests.mlir.convolution_texts import Convolution
from tuner.mlir.ir.linalg import LAYOUTS
from tuner.mlir.reference.fusion_reference import evaluate

pytestmark = pytest.mark.mlir

Array = npt.NDArray[np.float64]


def by_definition(convolution: Convolution, x: Array, weights: Array) -> Array:
    """Returns the sums over the window, one element of the output after the other."""
    of_x, of_weights, of_y = LAYOUTS[convolution.name]
    sizes = dict(zip(of_weights, weights.shape, strict=True))
    sizes |= dict(zip(of_y, convolution.shapes[-1], strict=True))
    summed = [each for each in of_weights if each not in of_y]
    found = np.zeros(convolution.shapes[-1])
    for place in product(*(range(sizes[each]) for each in (*of_y, *summed))):
        at = dict(zip((*of_y, *summed), place, strict=True))
        of_window = {
            side: at[side] * convolution.strides[number] + at[side.lower()] * convolution.dilations[number]
            for number, side in enumerate("HW")
            if side in of_y
        }
        one = x[tuple((at | of_window)[each] for each in of_x)]
        found[place[: len(of_y)]] += one * weights[tuple(at[each] for each in of_weights)]
    return found


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_a_convolution_is_the_sum_over_its_window(name: str) -> None:
    has_rows = "h" in LAYOUTS[name][1]
    convolution = Convolution(
        name,
        images=2,
        groups=2,
        channels=3,
        filters=2,
        height=3 if has_rows else 1,
        width=2,
        window=(2 if has_rows else 1, 3),
        strides=(2 if has_rows else 1, 3),
        dilations=(1, 2),
    )
    rng = np.random.default_rng(0)
    x, weights = (rng.standard_normal(shape) for shape in convolution.shapes[:2])
    (found,) = evaluate(convolution.text(), (x, weights))
    np.testing.assert_allclose(found.value, by_definition(convolution, x, weights), rtol=1e-12, atol=1e-12)
    assert (found.tolerance < 1e-5).all()
