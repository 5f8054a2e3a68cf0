"""Rows that no vector divides have the greatest and the least element of numpy, whatever their sign."""

from typing import Any

import numpy as np
import pytest

from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.programs.execution import host_function

REDUCTION, HIDDEN = (text_beside(__file__, name) for name in ("REDUCTION", "HIDDEN"))  # of 5 rows of 2
CHOOSING = text_beside(__file__, "CHOOSING")  # of 4 rows of 2


def computed(text: str, scheduled: str, *arrays: Any) -> Any:
    """Returns what one fusion of this kind or strategy computes, scheduled by its initial configuration."""
    height, width = arrays[-1].shape
    sized = text.replace("5x", f"{height}x").replace("x2x", f"x{width}x").replace("<2x", f"<{width}x")
    compiled = compiler_of(TargetName("cpu")).compile(sized, as_fusions=True)
    assert compiled.image is not None
    ((kind, strategy),) = [(each.kind, each.strategy) for each in compiled.image.code.fusions]
    assert scheduled in (kind, strategy)
    return host_function(compiled)(*arrays)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("width", [2, 6, 16, 17, 40])
def test_rows_of_any_width_and_sign(width: int) -> None:
    rows = 1 + np.random.default_rng(0).random((5, width), np.float32)
    np.testing.assert_array_equal(computed(REDUCTION, "rows", -rows), (-rows).max(1))
    least = REDUCTION.replace("maximumf", "minimumf").replace("0xFF800000", "0x7F800000")
    np.testing.assert_array_equal(computed(least, "rows", rows), rows.min(1))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("width", [2, 6, 16, 17, 40, 64, 72, 129, 201])
def test_rows_of_any_width_are_hidden_where_every_element_is(width: int) -> None:
    """Reductions of truths over rows that no vector divides."""
    rows = np.full((width + 3, width), -np.inf, np.float32)
    rows[np.arange(width), np.arange(width)] = 2  # one element is seen; of the last three rows none
    expected = rows.copy()
    expected[width:] = 1
    np.testing.assert_array_equal(computed(HIDDEN, "rows", rows), expected)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("width", [7, 16, 40, 128])
def test_a_mask_chooses_the_columns_that_numpy_chooses(width: int) -> None:
    """Masks that are arguments are read byte by byte, whatever the width of the vectors."""
    rng = np.random.default_rng(0)
    mask, x = rng.random(width) > 0.5, rng.standard_normal((4, width), np.float32)
    np.testing.assert_array_equal(computed(CHOOSING, "elementwise_cpu", mask, x), np.where(mask, x, 0))
