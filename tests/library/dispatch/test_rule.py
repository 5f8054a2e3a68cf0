from dataclasses import replace

import pytest

from tests.analysis.matrices import matrix_of
from tests.library.dispatch.rules import machine, rule_of
from tuner.analysis.dispatch import AskedProblem, ranked_columns
from tuner.analysis.portfolio import choose_portfolio, regret_held_out, regret_in_sample
from tuner.core.machine import Compiler
from tuner.core.problem import Matmul
from tuner.core.reliability import RELIABLE
from tuner.library.dispatch.portfolio import MeasuredCampaign
from tuner.library.dispatch.rule import StatedRegret, distilled

PROBLEMS = (Matmul(8, 64, 64), Matmul(32, 64, 64))
RULE = rule_of({PROBLEMS[0]: (2e-6, 1e-6), PROBLEMS[1]: (1e-6, 2e-6)})


def test_the_table_of_a_rule_is_a_matrix_of_the_least_rounds() -> None:
    slower = replace(RULE.problems[0], rounds_s=((2.5e-6, 2e-6), (1e-6,)))
    matrix = replace(RULE, problems=(slower, RULE.problems[1])).matrix()
    assert matrix.times_s == ((2e-6, 1e-6), (1e-6, 2e-6))
    assert matrix.columns == RULE.columns
    assert matrix.applies == ((True, True), (True, True))


def test_a_problem_is_found_by_its_exact_sizes_alone() -> None:
    assert RULE.tuned(PROBLEMS[0]) == RULE.problems[0]
    assert RULE.tuned(Matmul(9, 64, 64)) is None
    assert RULE.tuned(Matmul(8, 64, 64, layout="nt")) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"configurations": ()}, "is empty"),
        ({"configurations": (RULE.configurations[0],) * 2}, "has one twice"),
        ({"problems": (RULE.problems[0],) * 2}, "problems: has one twice"),
        (
            {"problems": (replace(RULE.problems[0], rounds_s=((1e-6,),)),)},
            "lists of another length, allowed 2",
        ),
        ({"problems": (replace(RULE.problems[0], serves=2),)}, r"serves: found 2, allowed 0\.\.1"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(RULE, **changes)  # type: ignore[arg-type]


def test_a_distilled_rule_chooses_as_the_matrix_does() -> None:
    times = [[4.1, 2.3, 1.0, 3.2], [1.0, 2.2, 4.5, 3.1], [2.4, 1.0, 4.7, 3.3]]
    costs = [[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 2.0, 5.0]]
    matrix = matrix_of(times, costs=costs)
    portfolio = choose_portfolio(matrix, 2)
    rounds = tuple(tuple((time, 1.1 * time) for time in row) for row in times)
    campaign = MeasuredCampaign(
        matrix, rounds, (None, 0.5, None), (RELIABLE,) * 3, machine(), 1, Compiler("22", (), "0" * 64)
    )
    regret = StatedRegret.of(regret_in_sample(matrix, portfolio), regret_held_out(matrix, 2))
    rule = distilled(campaign, portfolio, regret, "0" * 64, ("0.1.0", "2026-01-01"))

    assert rule.columns == tuple(matrix.columns[column] for column in portfolio.columns)
    assert [each.serves for each in rule.problems] == [
        portfolio.columns.index(column) for column in portfolio.serving if column is not None
    ]
    assert rule.problems[1].baseline_s == 0.5
    assert rule.problems[0].rounds_s == tuple(rounds[0][column] for column in portfolio.columns)
    assert rule.regret is not None
    assert rule.regret.geomean == regret_in_sample(matrix, portfolio).geomean
    for problem in (matrix.problems[1], Matmul(6, 64, 64), Matmul(100, 640, 64)):
        asked = AskedProblem(problem, (True,) * 4, (1.0, 1.1, 1.2, 1.3))
        of_rule = AskedProblem(
            problem, (True,) * 2, tuple(asked.costs[column] for column in portfolio.columns)
        )
        found = ranked_columns(matrix, asked, portfolio.columns)
        expected = tuple(portfolio.columns[place] for place in ranked_columns(rule.matrix(), of_rule).columns)
        if found.source != "cost model":  # whose residuals are relative to the configurations in the table
            assert found.columns == expected


def test_regret_is_not_stated_where_nothing_was_timed() -> None:
    matrix = matrix_of([[None, None]], applies=[[True, True]])
    portfolio = choose_portfolio(matrix, 1)
    assert StatedRegret.of(regret_in_sample(matrix, portfolio), regret_held_out(matrix, 1)) is None
