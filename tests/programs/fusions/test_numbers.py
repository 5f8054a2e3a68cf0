"""Numbers of paddings and weights reach a program of fusions as they are."""

import numpy as np
import pytest

import tuner
from tests.texts import text_beside
from tuner.programs.run.fused_program import FusedFunction

pytestmark = pytest.mark.mlir


def test_paddings_of_0_and_of_minus_0_are_apart() -> None:
    program = tuner.compile_program(text_beside(__file__, "SIGNED_ZEROS"), target="cpu")
    assert isinstance(program, FusedFunction)
    inverses = program(np.zeros(2, np.float32))
    np.testing.assert_array_equal(inverses, np.array([-np.inf, 1, 1, -np.inf], np.float32))


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1])
def test_a_padding_of_a_large_integer_is_exact(number: int) -> None:
    text = text_beside(__file__, "LARGE_INTEGER").replace("NUMBER", str(number))
    found = tuner.compile_program(text, target="cpu")(np.array([1, 2]))
    np.testing.assert_array_equal(found, np.array([number ^ 1, 3, 2, number ^ 1]))


def test_a_weight_that_only_an_assertion_reads_shifts_no_other() -> None:
    program = tuner.compile_program(text_beside(__file__, "ASSERTED_WEIGHT"), target="cpu")
    np.testing.assert_array_equal(program(np.array([0, 1], np.float32)), [10, 21])
