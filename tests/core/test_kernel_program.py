import pytest

from tuner.core.kernel_program import KernelBuffer, buffers_of
from tuner.core.problem import Matmul


def test_a_problem_has_its_inputs_and_its_output() -> None:
    assert buffers_of(Matmul(3, 5, 7)) == (
        KernelBuffer("a", 3 * 7 * 4, "input"),
        KernelBuffer("b", 7 * 5 * 4, "input"),
        KernelBuffer("c", 3 * 5 * 4, "output"),
    )


@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_the_bias_stands_before_the_output_and_has_its_type(layout: str) -> None:
    buffers = buffers_of(Matmul(3, 5, 7, "bf16", layout, "bias_relu"))
    assert [(buffer.name, buffer.bytes) for buffer in buffers] == [
        ("a", 42),
        ("b", 70),
        ("bias", 20),
        ("c", 60),
    ]
