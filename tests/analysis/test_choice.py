from dataclasses import replace

import pytest

from tests.analysis.matrices import matrix_of
from tuner.analysis.dispatch import MODEL, SAME_WEIGHTS, TUNED, AskedProblem, RankedColumns, ranked_columns
from tuner.analysis.portfolio import NOISE
from tuner.core.problem import Matmul, Problem

# fastest: column 0 at m = 8, column 2 at m = 32; column 1 is next to the best of both
TIMES = [[1.0, 1.1, 2.0], [2.0, 1.1, 1.0]]
WEIGHTS = (Matmul(8, 512, 256), Matmul(32, 512, 256))
MATRIX = matrix_of(TIMES, WEIGHTS)


def asked(problem: Problem, costs: tuple[float, ...] = (1.0, 2.0, 3.0), applies: str = "111") -> AskedProblem:
    return AskedProblem(problem, tuple(each == "1" for each in applies), costs)


def test_a_tuned_problem_has_its_own_order() -> None:
    assert ranked_columns(MATRIX, asked(WEIGHTS[1])) == RankedColumns((2, 1, 0), TUNED)


def test_an_m_between_two_tuned_ones_is_served_for_both() -> None:
    assert ranked_columns(MATRIX, asked(Matmul(16, 512, 256))) == RankedColumns((1, 0, 2), SAME_WEIGHTS)


@pytest.mark.parametrize("m", [9, 15, 16, 17, 31])
def test_no_size_is_rounded_to_a_bucket(m: int) -> None:
    problem = Matmul(m, 512, 256)
    between = ranked_columns(MATRIX, asked(problem))
    assert between.source == SAME_WEIGHTS
    one = matrix_of([[3.0, 2.0, 1.0], *TIMES], (problem, *WEIGHTS))
    assert ranked_columns(one, asked(problem)).source == TUNED
    assert ranked_columns(one, asked(Matmul(m + 1 if m < 31 else m - 1, 512, 256))).source == SAME_WEIGHTS


def test_an_m_outside_of_the_tuned_ones_follows_the_nearest_within_two_octaves() -> None:
    assert ranked_columns(MATRIX, asked(Matmul(128, 512, 256))) == RankedColumns((2, 1, 0), SAME_WEIGHTS)
    assert ranked_columns(MATRIX, asked(Matmul(129, 512, 256))).source == MODEL
    assert ranked_columns(MATRIX, asked(Matmul(2, 512, 256))) == RankedColumns((0, 1, 2), SAME_WEIGHTS)
    assert ranked_columns(MATRIX, asked(Matmul(1, 512, 256))).source == MODEL


@pytest.mark.parametrize(
    "problem",
    [
        Matmul(16, 513, 256),
        Matmul(16, 512, 255),
        Matmul(16, 512, 256, dtype="f64"),
        Matmul(16, 512, 256, layout="nt"),
        Matmul(16, 512, 256, epilogue="bias_relu"),
        Matmul(16, 512, 256, align="64"),
        Matmul(16, 512, 256, cache="cold"),
    ],
    ids=lambda problem: problem.key,
)
def test_other_weights_types_and_layouts_are_not_the_same(problem: Problem) -> None:
    assert ranked_columns(MATRIX, asked(problem)).source == MODEL


def test_the_model_decides_where_nothing_similar_was_tuned() -> None:
    far = Matmul(4096, 7, 4096)
    assert ranked_columns(MATRIX, asked(far, (3.0, 1.0, 2.0))) == RankedColumns((1, 2, 0), MODEL)


def test_the_model_is_corrected_by_what_neighbours_showed() -> None:
    matrix = matrix_of([[4.0, 1.0], [4.0, 1.0]], WEIGHTS, costs=[[1.0, 1.0]] * 2)
    near = AskedProblem(Matmul(16, 500, 256), (True, True), (1.0, 1.2))
    assert ranked_columns(matrix, near).columns == (1, 0)
    other_type = replace(near, problem=replace(near.problem, dtype="f64"))
    assert ranked_columns(matrix, other_type).columns == (0, 1)


def test_a_column_that_cannot_do_the_problem_is_never_chosen() -> None:
    assert ranked_columns(MATRIX, asked(Matmul(16, 512, 256), applies="101")).columns == (0, 2)
    assert ranked_columns(MATRIX, asked(WEIGHTS[0], applies="000")).columns == ()
    assert ranked_columns(MATRIX, asked(WEIGHTS[0]), columns=(1, 2)).columns == (1, 2)


def test_within_noise_the_column_of_more_problems_comes_first() -> None:
    problems = (Matmul(8, 512, 256), Matmul(8, 64, 64), Matmul(8, 64, 128))
    times = [[1.0, 1.0 + NOISE / 2], [2.0, 1.0], [2.0, 1.0]]
    assert ranked_columns(
        matrix_of(times, problems), AskedProblem(problems[0], (True, True), (1.0, 1.0))
    ).columns == (1, 0)
