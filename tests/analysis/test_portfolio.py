import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.matrices import Times, instance, matrices, matrix_of
from tuner.analysis import portfolio
from tuner.analysis.portfolio import NOISE, choose_portfolio, regret_held_out, regret_in_sample
from tuner.analysis.time_matrix import TimeMatrix
from tuner.core.errors import UsageError


def mean_log(matrix: TimeMatrix, columns: tuple[int, ...]) -> float:
    """Returns the mean log efficiency by plain loops over the definition."""
    total = 0.0
    for times in matrix.times_s:
        best = min(time for time in times if time is not None)
        reached = max((best / time for column in columns if (time := times[column]) is not None), default=0.0)
        total += math.log(max(reached, portfolio.UNSERVED))
    return total / len(matrix.times_s)


def universal(matrix: TimeMatrix) -> set[int]:
    return {column for column in range(len(matrix.columns)) if all(row[column] for row in matrix.applies)}


@given(matrices(), st.integers(1, 3))
def test_up_to_three_columns_equal_the_search_of_all_subsets(matrix: TimeMatrix, size: int) -> None:
    subsets = itertools.combinations(range(len(matrix.columns)), size)
    best = max(mean_log(matrix, each) for each in subsets if universal(matrix) & set(each))
    assert mean_log(matrix, choose_portfolio(matrix, size).columns) == pytest.approx(best, abs=1e-8)


def chosen_by_swaps(matrix: TimeMatrix, size: int) -> tuple[int, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(portfolio, "SUBSETS_LIMIT", 0)
        return choose_portfolio(matrix, size).columns


@given(matrices(columns=12), st.integers(2, 5))
def test_swaps_end_where_no_single_swap_helps(matrix: TimeMatrix, size: int) -> None:
    size = min(size, len(matrix.columns))
    chosen = chosen_by_swaps(matrix, size)
    reached = mean_log(matrix, chosen)
    for place, column in itertools.product(range(size), range(len(matrix.columns))):
        other = (*chosen[:place], column, *chosen[place + 1 :])
        if len(set(other)) == size and universal(matrix) & set(other):
            assert mean_log(matrix, other) <= reached + 1e-8


@given(matrices(), st.integers(1, 3))
def test_a_column_that_does_every_problem_is_kept_in_every_portfolio(matrix: TimeMatrix, size: int) -> None:
    found = choose_portfolio(matrix, size)
    assert universal(matrix) & set(found.columns)
    assert None not in found.serving
    assert 2 in choose_portfolio(matrix, size, universal=(2,)).columns


def test_a_tie_of_the_mean_goes_to_the_better_worst_problem_then_to_more_problems() -> None:
    matrix = matrix_of([[4.0, 2.0, 1.0, 9.0], [1.0, 2.0, 9.0, 1.0]], applies=[[True] * 4] * 2)
    assert mean_log(matrix, (0,)) == pytest.approx(mean_log(matrix, (1,)))
    assert choose_portfolio(matrix, 1).columns == (1,)
    matrix = matrix_of([[1.0, 1.0, 2.0], [1.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
    assert chosen_by_swaps(matrix, 2) == (0, 1)


def test_times_within_noise_are_served_by_the_column_of_more_problems() -> None:
    matrix = matrix_of([[1.0, 2.0], [1.0, 2.0], [1.0 + NOISE / 2, 1.0]])
    assert choose_portfolio(matrix, 2).serving == (0, 0, 0)
    apart = matrix_of([[1.0, 2.0], [1.0, 2.0], [1.0 + 2 * NOISE, 1.0]])
    assert choose_portfolio(apart, 2).serving == (0, 0, 1)
    first = matrix_of([[1.0, 2.0], [1.0, 2.0], [1.000, 1.002]])
    second = matrix_of([[1.0, 2.0], [1.0, 2.0], [1.002, 1.000]])
    assert portfolio.served(first, (0, 1)).serving == portfolio.served(second, (0, 1)).serving


def test_a_missing_time_is_predicted_and_the_order_of_problems_means_nothing() -> None:
    rows: Times = [[1.0, 2.0], [1.0, None], [1.0, 2.0]]
    matrix = matrix_of(rows, costs=[[1.0, 2.0]] * 3, applies=[[True, True]] * 3)
    found = choose_portfolio(matrix, 2)
    assert found.predicted == ((1, 1),)
    assert matrix.times_s[1][1] is None
    assert found.serving == (0, 0, 0)
    times = np.exp(np.random.default_rng(5).normal(0, 0.4, (8, 12)))
    forward, backward = (matrix_of(part.tolist()) for part in (times, times[::-1]))
    assert set(choose_portfolio(forward, 4).columns) == set(choose_portfolio(backward, 4).columns)


def test_columns_are_chosen_among_those_allowed_and_a_problem_that_none_can_do_is_served_by_none() -> None:
    matrix = matrix_of([[1.0, 2.0], [None, None]], applies=[[True, True], [False, False]])
    assert choose_portfolio(matrix, 1).serving == (0, None)
    matrix = matrix_of([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    assert choose_portfolio(matrix, 2, allowed=(1, 2)).columns == (1, 2)
    for size in (0, 4):
        with pytest.raises(UsageError, match=rf"configs: found {size}, allowed 1\.\.3"):
            choose_portfolio(matrix, size)


MATRIX = matrix_of([[1.0, 2.0, 4.0], [2.0, 1.0, 4.0], [4.0, 2.0, 1.0]])


def test_regret_in_sample_is_best_time_over_the_time_of_what_serves() -> None:
    found = regret_in_sample(MATRIX, choose_portfolio(MATRIX, 2))
    assert sorted(found.known) == [0.5, 1.0, 1.0]
    assert found.geomean == pytest.approx(0.5 ** (1 / 3))
    assert (found.worst, found.is_held_out) == (0.5, False)
    assert regret_in_sample(MATRIX, choose_portfolio(MATRIX, 3)).known == (1.0, 1.0, 1.0)
    assert portfolio.geometric_mean(()) is None
    assert portfolio.geometric_mean((0.5, 2.0)) == pytest.approx(1.0)


def test_total_time_counts_problems_as_often_as_they_occur() -> None:
    matrix = matrix_of([[1.0, 2.0], [4.0, 1.0]])
    chosen = choose_portfolio(matrix, 1)
    seldom = regret_in_sample(matrix, chosen)
    often = regret_in_sample(replace(matrix, counts=(1, 9)), chosen)
    assert chosen.columns == (1,)
    assert seldom.total == pytest.approx(2 / 3)
    assert often.total == pytest.approx(10 / 11)


def test_a_problem_is_held_out_of_the_choice_of_its_portfolio() -> None:
    found = regret_held_out(MATRIX, 1)
    expected = [choose_portfolio(portfolio.without(MATRIX, row), 1).columns[0] for row in range(3)]
    assert [loss.column for loss in found.losses] == expected
    assert found.is_held_out
    assert found.losses[2].column != 2  # its own best, which no other problem wants
    assert choose_portfolio(MATRIX, 3).columns.count(2) == 1


@given(matrices(), st.integers(1, 3))
def test_efficiencies_are_shares(matrix: TimeMatrix, size: int) -> None:
    for found in (regret_in_sample(matrix, choose_portfolio(matrix, size)), regret_held_out(matrix, size)):
        assert all(0 < each <= 1 for each in found.known)
        assert instance(float, found.worst) <= instance(float, found.geomean) + 1e-12


def test_a_problem_whose_column_has_no_time_there_is_counted_as_unknown_as_a_single_one_held_out() -> None:
    matrix = matrix_of([[1.0, 2.0], [1.0, 2.0], [None, 1.0]], applies=[[True, True]] * 3)
    found = regret_in_sample(matrix, choose_portfolio(matrix, 1))
    assert [loss.column for loss in found.losses] == [0, 0, 0]
    assert (found.known, found.unknown) == ((1.0, 1.0), 1)
    untimed = matrix_of([[None]], applies=[[True]])
    assert regret_in_sample(untimed, choose_portfolio(untimed, 1)).geomean is None
    found = regret_held_out(matrix_of([[1.0, 2.0]]), 1)
    assert (found.known, found.unknown) == ((), 1)
    assert (found.geomean, found.worst, found.total) == (None, None, None)
