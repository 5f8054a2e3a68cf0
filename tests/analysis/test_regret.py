from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.matrices import matrices, matrix_of
from tuner.analysis.portfolio import (
    choose_portfolio,
    geometric_mean,
    regret_held_out,
    regret_in_sample,
    without,
)
from tuner.analysis.time_matrix import TimeMatrix

MATRIX = matrix_of([[1.0, 2.0, 4.0], [2.0, 1.0, 4.0], [4.0, 2.0, 1.0]])


def test_regret_in_sample_is_best_time_over_the_time_of_what_serves() -> None:
    found = regret_in_sample(MATRIX, choose_portfolio(MATRIX, 2))
    assert sorted(found.known) == [0.5, 1.0, 1.0]
    assert found.geomean == pytest.approx(0.5 ** (1 / 3))
    assert found.worst == 0.5
    assert not found.is_held_out


def test_all_columns_lose_nothing() -> None:
    assert regret_in_sample(MATRIX, choose_portfolio(MATRIX, 3)).known == (1.0, 1.0, 1.0)


def test_total_time_counts_problems_as_often_as_they_occur() -> None:
    matrix = matrix_of([[1.0, 2.0], [4.0, 1.0]])
    portfolio = choose_portfolio(matrix, 1)
    seldom = regret_in_sample(matrix, portfolio)
    often = regret_in_sample(replace(matrix, counts=(1, 9)), portfolio)
    assert portfolio.columns == (1,)
    assert seldom.total == pytest.approx(2 / 3)
    assert often.total == pytest.approx(10 / 11)


def test_a_problem_is_held_out_of_the_choice_of_its_portfolio() -> None:
    found = regret_held_out(MATRIX, 1)
    expected = [choose_portfolio(without(MATRIX, row), 1).columns[0] for row in range(3)]
    assert [loss.column for loss in found.losses] == expected
    assert found.is_held_out
    assert found.losses[2].column != 2  # its own best, which no other problem wants
    assert choose_portfolio(MATRIX, 3).columns.count(2) == 1


@given(matrices(), st.integers(1, 3))
def test_efficiencies_are_shares(matrix: TimeMatrix, size: int) -> None:
    for found in (regret_in_sample(matrix, choose_portfolio(matrix, size)), regret_held_out(matrix, size)):
        assert all(0 < each <= 1 for each in found.known)
        assert found.worst is not None
        assert found.geomean is not None
        assert found.worst <= found.geomean + 1e-12


def test_a_problem_whose_column_has_no_time_there_is_counted_as_unknown() -> None:
    matrix = matrix_of([[1.0, 2.0], [1.0, 2.0], [None, 1.0]], applies=[[True, True]] * 3)
    found = regret_in_sample(matrix, choose_portfolio(matrix, 1))
    assert [loss.column for loss in found.losses] == [0, 0, 0]
    assert found.known == (1.0, 1.0)
    assert found.unknown == 1
    assert (
        regret_in_sample(
            matrix_of([[None]], applies=[[True]]), choose_portfolio(matrix_of([[None]], applies=[[True]]), 1)
        ).geomean
        is None
    )


def test_the_geometric_mean_of_nothing_is_none() -> None:
    assert geometric_mean(()) is None
    assert geometric_mean((0.5, 2.0)) == pytest.approx(1.0)


def test_a_single_problem_cannot_be_held_out() -> None:
    found = regret_held_out(matrix_of([[1.0, 2.0]]), 1)
    assert found.known == ()
    assert (found.unknown, found.geomean, found.worst, found.total) == (1, None, None, None)
