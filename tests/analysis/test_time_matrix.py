"""Times of configurations on problems: gaps, portfolios that serve many problems, what dispatch asks."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.matrices import Times, instance, matrices, matrix_of
from tuner.analysis import portfolio, time_matrix
from tuner.analysis.portfolio import (
    MODEL,
    NOISE,
    SAME_WEIGHTS,
    TUNED,
    NewProblem,
    RankedColumns,
    choose_portfolio,
    ranked_columns,
    regret_held_out,
    regret_in_sample,
)
from tuner.analysis.time_matrix import KnownTimes, Numbers, TimeMatrix, completed_times, corrected_scores
from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem

COLUMNS = tuple(Candidate.of("s", {"tile_m": tile}) for tile in (2, 4))
MATRIX = TimeMatrix(
    problems=(Matmul(64, 32, 16), Matmul(1, 32, 16)),
    counts=(1, 3),
    columns=COLUMNS,
    times_s=((2e-6, 1e-6), (4e-6, None)),
    applies=((True, True), (True, False)),
    costs=((20.0, 10.0), (30.0, float("inf"))),
)
ALL = [[True, True], [True, True]]
NAN = np.nan
OF_THREE = matrix_of([[1.0, 2.0, 4.0], [2.0, 1.0, 4.0], [4.0, 2.0, 1.0]])


def test_times_are_seconds_and_efficiency_is_relative_to_the_best_time_of_the_problem() -> None:
    assert np.array_equal(MATRIX.times(), [[2e-6, 1e-6], [4e-6, np.nan]], equal_nan=True)
    assert MATRIX.is_timed().tolist() == [[True, True], [True, False]]
    assert MATRIX.is_applicable().tolist() == [[True, True], [True, False]]
    assert MATRIX.model_costs()[1, 1] == np.inf
    assert time_matrix.octaves_of(MATRIX.problems).tolist() == [[6, 5, 4], [0, 5, 4]]
    assert MATRIX.best_s().tolist() == [1e-6, 4e-6]
    assert np.array_equal(MATRIX.efficiency(), [[0.5, 1.0], [1.0, np.nan]], equal_nan=True)
    untimed = replace(MATRIX, times_s=((None, None), (4e-6, None)))
    assert np.isnan([untimed.best_s()[0], *untimed.efficiency()[0]]).all()
    empty = TimeMatrix((), (), COLUMNS, (), (), ())
    assert (empty.times().shape, empty.best_s().shape) == ((0, 2), (0,))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"problems": (Matmul(64, 32, 16),) * 2}, "a problem or a column twice"),
        ({"columns": (COLUMNS[0],) * 2}, "a problem or a column twice"),
        ({"counts": (1,)}, "counts: found"),
        ({"counts": (1, 0)}, "counts: found"),
        ({"times_s": ((1e-6,), (1e-6,))}, "times_s: found another size, allowed 2 rows of 2"),
        ({"applies": ((True, True),)}, "applies: found another size"),
        ({"costs": ()}, "costs: found another size"),
        ({"times_s": ((0.0, 1e-6), (1e-6, None))}, "not a positive number of seconds"),
        ({"times_s": ((float("inf"), 1e-6), (1e-6, None))}, "not a positive number of seconds"),
        ({"costs": ((0.0, 1.0), (1.0, 1.0))}, "a cost that is not positive"),
        ({"times_s": ((1e-6, 1e-6), (1e-6, 1e-6))}, "a configuration that does not apply"),
    ],
)
def test_a_matrix_that_does_not_fit_is_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(MATRIX, **changed)  # type: ignore[arg-type]


def test_a_missing_time_is_the_model_at_the_level_of_the_problem_corrected_by_neighbours() -> None:
    equal = [[1.0, 1.0], [1.0, 1.0]]
    found = completed_times(matrix_of([[1.0, 3.0], [2.0, None]], costs=equal, applies=ALL))
    assert found.is_predicted.tolist() == [[False, False], [False, True]]
    assert found.logs[~found.is_predicted] == pytest.approx(np.log([1.0, 3.0, 2.0]))
    # the model says equal, the neighbour three times as long
    assert np.log(2.0) < found.logs[1, 1] < np.log(6.0)
    logs = completed_times(matrix_of([[1.0, 3.0], [None, None]], costs=equal, applies=ALL)).logs[1]
    assert logs[0] < np.log(3) / 2 < logs[1]
    assert np.isfinite(logs).all()


def numbers(*rows: object) -> Numbers:
    return np.array(rows, np.float64)


OCTAVES = numbers([7, 8, 9], [7, 8, 9], [9, 8, 9])
COSTS = numbers([10, 20, 40], [10, 20, 40], [10, 20, 40])
ASKED = (COSTS[0], OCTAVES[0])


def known(*times: object) -> KnownTimes:
    return KnownTimes(COSTS[: len(times)], numbers(*times), OCTAVES[: len(times)])


def test_the_score_is_the_mean_of_residuals_by_distance_and_without_times_the_cost_model() -> None:
    nothing = KnownTimes(np.empty((0, 3)), np.empty((0, 3)), np.empty((0, 3)))
    # a whole problem is slower than the model says, or has one time
    for times in (nothing, known([1e3, 2e3, 4e3]), known([NAN, 1.0, NAN])):
        assert corrected_scores(times, *ASKED) == pytest.approx(np.log(COSTS[0]))
    # the second column took a third of what the model says
    assert np.argsort(corrected_scores(known([3.0, 2.0, 12.0]), *ASKED)).tolist() == [1, 0, 2]
    costs = numbers([np.inf, 20, 40], [np.inf, np.inf, np.inf])
    assert time_matrix.filled_costs(costs).tolist() == [[20, 20, 40], [1, 1, 1]]
    assert time_matrix.filled_costs(np.empty((2, 0))).shape == (2, 0)
    times = KnownTimes(costs, numbers([1, 1, 2], [NAN] * 3), OCTAVES[:2])
    assert np.isfinite(corrected_scores(times, costs[0], OCTAVES[0])).all()
    found = corrected_scores(known([10.0, 40.0, NAN], [NAN, NAN, NAN], [10.0, 20.0, 80.0]), *ASKED)
    near, far = 1.0, np.exp(-4 / time_matrix.WIDTH)
    whole = time_matrix.SHRINKAGE + near + far
    third = far * 2 / 3 / (time_matrix.SHRINKAGE + far)
    octaves = numbers((near * -1 / 2 + far * -1 / 3) / whole, (near / 2 + far * -1 / 3) / whole, third)
    assert found == pytest.approx(np.log(COSTS[0]) + np.log(2) * octaves)


# fastest: column 0 at m = 8, column 2 at m = 32; column 1 is next to the best of both
TIMES = [[1.0, 1.1, 2.0], [2.0, 1.1, 1.0]]
WEIGHTS = (Matmul(8, 512, 256), Matmul(32, 512, 256))
DISPATCH = matrix_of(TIMES, WEIGHTS)


def asked(problem: Problem, costs: tuple[float, ...] = (1.0, 2.0, 3.0), applies: str = "111") -> NewProblem:
    return NewProblem(problem, tuple(each == "1" for each in applies), costs)


def test_a_tuned_problem_has_its_own_order_and_no_size_is_rounded() -> None:
    assert ranked_columns(DISPATCH, asked(WEIGHTS[1])) == RankedColumns((2, 1, 0), TUNED)
    assert ranked_columns(DISPATCH, asked(Matmul(16, 512, 256))) == RankedColumns((1, 0, 2), SAME_WEIGHTS)
    far = asked(Matmul(4096, 7, 4096), (3.0, 1.0, 2.0))  # nothing similar was tuned
    assert ranked_columns(DISPATCH, far) == RankedColumns((1, 2, 0), MODEL)
    for m in (9, 15, 16, 17, 31):
        problem = Matmul(m, 512, 256)
        assert ranked_columns(DISPATCH, asked(problem)).source == SAME_WEIGHTS
        one = matrix_of([[3.0, 2.0, 1.0], *TIMES], (problem, *WEIGHTS))
        assert ranked_columns(one, asked(problem)).source == TUNED
        assert ranked_columns(one, asked(Matmul(m + 1 if m < 31 else m - 1, 512, 256))).source == SAME_WEIGHTS
    assert ranked_columns(DISPATCH, asked(Matmul(128, 512, 256))) == RankedColumns((2, 1, 0), SAME_WEIGHTS)
    assert ranked_columns(DISPATCH, asked(Matmul(129, 512, 256))).source == MODEL
    assert ranked_columns(DISPATCH, asked(Matmul(2, 512, 256))) == RankedColumns((0, 1, 2), SAME_WEIGHTS)
    assert ranked_columns(DISPATCH, asked(Matmul(1, 512, 256))).source == MODEL


CHANGES: tuple[dict[str, Any], ...] = (
    *({"n": 513}, {"k": 255}, {"dtype": "f64"}, {"layout": "nt"}, {"epilogue": "bias_relu"}),
    *({"align": "64"}, {"cache": "cold"}),
)
OTHERS = [Matmul(**{"m": 16, "n": 512, "k": 256} | change) for change in CHANGES]


@pytest.mark.parametrize("problem", OTHERS, ids=lambda problem: problem.key)
def test_other_weights_types_and_layouts_are_not_the_same(problem: Problem) -> None:
    assert ranked_columns(DISPATCH, asked(problem)).source == MODEL


def test_the_model_is_corrected_by_neighbours_and_within_noise_more_problems_come_first() -> None:
    matrix = matrix_of([[4.0, 1.0], [4.0, 1.0]], WEIGHTS, costs=[[1.0, 1.0]] * 2)
    near = NewProblem(Matmul(16, 500, 256), (True, True), (1.0, 1.2))
    assert ranked_columns(matrix, near).columns == (1, 0)
    assert ranked_columns(matrix, replace(near, problem=replace(near.problem, dtype="f64"))).columns == (0, 1)
    assert ranked_columns(DISPATCH, asked(Matmul(16, 512, 256), applies="101")).columns == (0, 2)
    assert ranked_columns(DISPATCH, asked(WEIGHTS[0], applies="000")).columns == ()
    assert ranked_columns(DISPATCH, asked(WEIGHTS[0]), columns=(1, 2)).columns == (1, 2)
    problems = (Matmul(8, 512, 256), Matmul(8, 64, 64), Matmul(8, 64, 128))
    times = [[1.0, 1.0 + NOISE / 2], [2.0, 1.0], [2.0, 1.0]]
    first = NewProblem(problems[0], (True, True), (1.0, 1.0))
    assert ranked_columns(matrix_of(times, problems), first).columns == (1, 0)


# Portfolios: few configurations for many problems.
def mean_log(matrix: TimeMatrix, columns: tuple[int, ...]) -> float:
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


def test_ties_go_to_the_better_worst_problem_then_to_more_problems_as_do_times_within_noise() -> None:
    matrix = matrix_of([[4.0, 2.0, 1.0, 9.0], [1.0, 2.0, 9.0, 1.0]], applies=[[True] * 4] * 2)
    assert mean_log(matrix, (0,)) == pytest.approx(mean_log(matrix, (1,)))
    assert choose_portfolio(matrix, 1).columns == (1,)
    matrix = matrix_of([[1.0, 1.0, 2.0], [1.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
    assert chosen_by_swaps(matrix, 2) == (0, 1)
    close, apart, first, second = (
        matrix_of([[1.0, 2.0], [1.0, 2.0], times])
        for times in ([1.0 + NOISE / 2, 1.0], [1.0 + 2 * NOISE, 1.0], [1.000, 1.002], [1.002, 1.000])
    )
    assert choose_portfolio(close, 2).serving == (0, 0, 0)
    assert choose_portfolio(apart, 2).serving == (0, 0, 1)
    assert portfolio.served(first, (0, 1)).serving == portfolio.served(second, (0, 1)).serving


def test_a_missing_time_is_predicted_and_the_order_of_problems_means_nothing() -> None:
    rows: Times = [[1.0, 2.0], [1.0, None], [1.0, 2.0]]
    matrix = matrix_of(rows, costs=[[1.0, 2.0]] * 3, applies=[[True, True]] * 3)
    found = choose_portfolio(matrix, 2)
    assert (found.predicted, matrix.times_s[1][1], found.serving) == (((1, 1),), None, (0, 0, 0))
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


def test_problems_that_no_column_can_do_do_not_decide_which_column_serves_another_one() -> None:
    matrix = matrix_of(
        [[1.0, 1.0 - NOISE / 2], [None, None], [None, None]], applies=[[True, True], *[[False, False]] * 2]
    )
    assert portfolio.served(matrix, (0, 1)).serving == (1, None, None)
    assert portfolio.served(matrix, (0, 1)).columns == (1, 0)


def test_regret_counts_best_times_over_what_serves_and_a_problem_is_held_out_of_its_portfolio() -> None:
    found = regret_in_sample(OF_THREE, choose_portfolio(OF_THREE, 2))
    assert sorted(found.known) == [0.5, 1.0, 1.0]
    assert found.geomean == pytest.approx(0.5 ** (1 / 3))
    assert found.worst == 0.5
    assert regret_in_sample(OF_THREE, choose_portfolio(OF_THREE, 3)).known == (1.0, 1.0, 1.0)
    assert portfolio.geometric_mean(()) is None
    assert portfolio.geometric_mean((0.5, 2.0)) == pytest.approx(1.0)
    matrix = matrix_of([[1.0, 2.0], [4.0, 1.0]])
    chosen = choose_portfolio(matrix, 1)
    seldom = regret_in_sample(matrix, chosen)
    often = regret_in_sample(replace(matrix, counts=(1, 9)), chosen)
    assert chosen.columns == (1,)
    assert seldom.total == pytest.approx(2 / 3)
    assert often.total == pytest.approx(10 / 11)
    found = regret_held_out(OF_THREE, 1)
    expected = [choose_portfolio(portfolio.without(OF_THREE, row), 1).columns[0] for row in range(3)]
    assert [loss.column for loss in found.losses] == expected
    assert found.losses[2].column != 2  # its own best, which no other problem wants
    assert choose_portfolio(OF_THREE, 3).columns.count(2) == 1


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
