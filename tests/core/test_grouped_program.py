"""Values of a program in groups."""

import pytest

from tuner.core.grouped_program import TensorType, WeightPacking, packings_comment, packings_in


def test_bytes_of_a_tensor_are_those_of_its_elements() -> None:
    assert TensorType((3, 5), "f32").bytes == 60
    assert TensorType((), "f64").bytes == 8


@pytest.mark.parametrize(
    "packings", [(), (None,), (None, WeightPacking(48), WeightPacking(16, 2)), (WeightPacking(64), None)]
)
def test_packings_are_read_back(packings: tuple[WeightPacking | None, ...]) -> None:
    assert packings_in(packings_comment(packings) + "module {\n}\n") == packings


def test_code_without_the_line_has_no_packings() -> None:
    assert packings_in("module {\n}\n") == ()
