"""Values of a program in fusions."""

import pytest

from tuner.core.fusions import TensorType, WeightPacking, packings_comment, packings_in


def test_bytes_of_a_tensor_are_those_of_its_elements() -> None:
    assert TensorType((3, 5), "f32").bytes == 60
    assert TensorType((), "f64").bytes == 8


def test_a_weight_is_a_matrix_by_the_order_of_its_dimensions() -> None:
    assert WeightPacking(4).matrix_shape((3, 8)) == (3, 8)
    assert WeightPacking(4, order=(2, 3, 1, 0)).matrix_shape((64, 16, 3, 5)) == (240, 64)


def test_packings_are_read_as_they_are_written() -> None:
    packings = (None, WeightPacking(48), WeightPacking(16, 2), WeightPacking(32, order=(2, 3, 1, 0)))
    text = packings_comment(packings)
    assert text == "// packings: - 48x1 16x2 32x1:2:3:1:0\n"
    assert packings_in(text + "module {}") == packings
    assert packings_in("module {}") == ()


@pytest.mark.parametrize(
    "packings",
    [
        (),
        (None,),
        (None, WeightPacking(48), WeightPacking(16, 2)),
        (WeightPacking(64), None),
        (WeightPacking(32, 2, depth=32), WeightPacking(32, 2, order=(1, 0), depth=32)),
        (WeightPacking(32, 2, order=(2, 3, 1, 0), depth=2, run=3), WeightPacking(32, 2, depth=32, run=3)),
        (WeightPacking(64, 4, depth=64, unsigned=True), None, WeightPacking(16, 4, unsigned=True)),
    ],
)
def test_packings_are_read_back(packings: tuple[WeightPacking | None, ...]) -> None:
    assert packings_in(packings_comment(packings) + "module {\n}\n") == packings


def test_code_without_the_line_has_no_packings() -> None:
    assert packings_in("module {\n}\n") == ()
