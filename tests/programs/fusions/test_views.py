"""Views of memory: the same elements as numpy's views."""

import numpy as np
import pytest

from tuner.core.fusions import TensorType, View
from tuner.programs.fusions import views

WHOLE = views.whole(0, TensorType((2, 3, 4), "f32"))
NUMBERS = np.arange(24)


def elements(view: View) -> np.ndarray:
    strides = tuple(8 * each for each in view.strides)
    return np.lib.stride_tricks.as_strided(NUMBERS[view.offset :], view.type.shape, strides)


def test_a_whole_tensor_is_contiguous() -> None:
    assert WHOLE.strides == (12, 4, 1)
    assert views.is_contiguous(WHOLE)
    assert views.is_contiguous(views.whole(0, TensorType((), "f32")))


def test_a_slice_has_the_elements_of_numpys() -> None:
    cut = views.sliced(WHOLE, (1, 0, 1), (1, 2, 2), (1, 2, 2))
    np.testing.assert_array_equal(elements(cut), NUMBERS.reshape(2, 3, 4)[1:2, 0:3:2, 1:4:2])
    assert not views.is_contiguous(cut)
    np.testing.assert_array_equal(elements(views.without(cut, (0,))), elements(cut)[0])


def test_a_transposed_view_has_the_elements_of_numpys() -> None:
    moved = views.permuted(WHOLE, (1, 0, 2))
    np.testing.assert_array_equal(elements(moved), NUMBERS.reshape(2, 3, 4).transpose(1, 0, 2))


def test_dimensions_are_split_and_merged() -> None:
    split = views.expanded(WHOLE, (2, 3, 2, 2), [[0], [1], [2, 3]])
    np.testing.assert_array_equal(elements(split), NUMBERS.reshape(2, 3, 2, 2))
    assert views.collapsed(split, [[0], [1], [2, 3]]) == WHOLE
    flat = views.collapsed(WHOLE, [[0, 1, 2]])
    assert flat == views.whole(0, TensorType((24,), "f32"))


@pytest.mark.parametrize("groups", [[[0, 1], [2]], [[0], [1, 2]]])
def test_dimensions_with_gaps_between_them_are_not_merged(groups: list[list[int]]) -> None:
    cut = views.sliced(WHOLE, (0, 0, 0), (2, 2, 3), (1, 1, 1))
    assert views.collapsed(cut, groups) is None


def test_dimensions_of_one_element_never_hinder() -> None:
    one = View(0, 0, TensorType((1, 3, 1, 4), "f32"), (99, 4, 77, 1))
    assert views.is_contiguous(one)
    assert views.collapsed(one, [[0, 1, 2, 3]]) == views.whole(0, TensorType((12,), "f32"))
    scalar = views.expanded(views.whole(0, TensorType((), "f32")), (1, 1), [])
    assert scalar.type.shape == (1, 1)
