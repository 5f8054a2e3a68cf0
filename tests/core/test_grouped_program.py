"""Values of a program in groups."""

from tuner.core.grouped_program import TensorType


def test_bytes_of_a_tensor_are_those_of_its_elements() -> None:
    assert TensorType((3, 5), "f32").bytes == 60
    assert TensorType((), "f64").bytes == 8
