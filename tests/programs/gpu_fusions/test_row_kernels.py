"""Fusions of rows: any length, NaN, infinities; reductions that threads cannot share are done otherwise."""

import numpy as np
import pytest

from tests.programs.fusions.payload_text import PayloadText
from tests.programs.gpu_fusions.simulated import require_close, simulated
from tests.texts import text_beside

pytestmark = pytest.mark.mlir

RNG = np.random.default_rng(7)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("columns", [1, 31, 33, 300])
def test_rows_of_any_length_are_one_launch(columns: int) -> None:
    payload = PayloadText()
    text = payload.text(payload.softmax(payload.argument(3, columns)))
    x = RNG.standard_normal((3, columns)).astype(np.float32)
    ran = simulated(text, x)
    powers = np.exp(x.astype(np.float64))
    require_close(ran.results[0], powers / powers.sum(axis=1, keepdims=True))
    assert ran.work.launches == 1


@pytest.mark.slow
def test_a_largest_number_keeps_nan_and_infinities() -> None:
    payload = PayloadText()
    text = payload.text(payload.reduced("max", payload.argument(4, 70)))
    x = RNG.standard_normal((4, 70)).astype(np.float32)
    x[0, 69], x[1], x[2, 40] = np.nan, -np.inf, np.inf
    ran = simulated(text, x)
    np.testing.assert_array_equal(ran.results[0], x.max(axis=1))
    assert ran.work.launches == 1


def test_a_number_for_each_row_is_computed_once_and_read_by_all_columns() -> None:
    payload = PayloadText()
    x = payload.argument(2, 3, 40)
    total = payload.unary("exp", payload.reduced("sum", x))
    text = payload.text(payload.by_row("mul", x, total), total)
    given = (RNG.standard_normal((2, 3, 40)) / 8).astype(np.float32)
    ran = simulated(text, given)
    powers = np.exp(given.astype(np.float64).sum(axis=2))
    require_close(ran.results[0], given * powers[..., None])
    require_close(ran.results[1], powers)


def test_a_reduction_with_an_index_is_a_thread_for_each_row() -> None:
    x = RNG.standard_normal((5, 9)).astype(np.float32)
    ran = simulated(text_beside(__file__, "ARGMAX"), x)
    np.testing.assert_array_equal(ran.results[0], x.argmax(axis=1))
    assert ran.work.launches == 1
