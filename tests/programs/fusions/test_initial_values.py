"""A fusion whose root starts from the numbers of an argument keeps them, and leaves the argument as it is."""

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.programs.execution import host_function

pytestmark = pytest.mark.mlir


CONVOLUTION = text_beside(__file__, "CONVOLUTION")


def test_a_convolution_is_added_to_the_argument_that_it_starts_from() -> None:
    rng = np.random.default_rng(0)
    x, w, bias = (rng.standard_normal(shape, np.float32) for shape in ((2, 3, 10), (4, 3, 3), (2, 4, 8)))
    kept = bias.copy()
    compiled = compiler_of(TargetName("cpu")).compile(CONVOLUTION, as_fusions=True)
    assert compiled.image is not None
    windows = np.lib.stride_tricks.sliding_window_view(x, 3, 2)  # batch, channel, place, window
    expected = bias + np.einsum("bcpw,fcw->bfp", windows, w)
    np.testing.assert_allclose(host_function(compiled)(x, w, bias), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(bias, kept)
