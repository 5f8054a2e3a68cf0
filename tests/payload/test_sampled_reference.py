import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.problem import Matmul
from tuner.payload import reference
from tuner.payload.reference import (
    Array,
    Inputs,
    compare_sampled,
    draw,
    draw_base,
    not_finite,
    output_dtype,
    sampled_rows,
)

PROBLEM = Matmul(1024, 6, 5)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a small problem pass for a large one."""
    monkeypatch.setattr(reference, "WHOLE_FLOP", 1)


def drawn() -> tuple[Inputs, Array]:
    rng = np.random.default_rng(0)
    inputs = draw(PROBLEM, draw_base(PROBLEM, rng), rng)
    return inputs, inputs.expected.astype(output_dtype(PROBLEM))


def test_a_small_problem_is_compared_whole() -> None:
    inputs, right = drawn()
    verdict, _ = compare_sampled(inputs, right)
    assert (verdict.elements, verdict.notes) == (1024 * 6, ())


@pytest.mark.usefixtures("large")
def test_a_right_result_passes_and_the_verdict_reports_how_much_was_looked_at() -> None:
    verdict, _ = compare_sampled(*drawn())
    rows = len(sampled_rows(1024))
    assert verdict.max_error <= 1
    assert verdict.elements == rows * 6
    assert verdict.notes == (f"{rows} of 1024 rows compared, all elements finite",)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("start", [0, 8, 504, 1016])
def test_a_wrong_tile_is_found_wherever_it_is(start: int) -> None:
    inputs, result = drawn()
    result[start : start + 8, 3] += 1
    verdict, options = compare_sampled(inputs, result)
    assert verdict.max_error > 1
    assert ", 3]" in options


@pytest.mark.usefixtures("large")
def test_one_element_never_written_is_found_in_any_row() -> None:
    inputs, result = drawn()
    row = next(row for row in range(1024) if row not in sampled_rows(1024))
    result[row, 2] = np.nan
    verdict, options = compare_sampled(inputs, result)
    assert verdict.max_error == np.inf
    assert options == "1 of 6144 elements are NaN or infinite"
    assert not_finite(np.array([[1.0, np.nan], [np.inf, 2.0]], np.float32)) == 2


@given(st.integers(1, 5000))
def test_rows_are_spread_over_all_of_c(m: int) -> None:
    rows = sampled_rows(m)
    assert rows[0] == 0
    assert rows[-1] == m - 1
    assert list(rows) == sorted(set(rows))
    steps = [after - before for before, after in itertools.pairwise(rows)]
    assert max(steps, default=0) <= 2 * -(-m // 256)
