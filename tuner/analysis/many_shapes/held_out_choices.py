"""What dispatch would choose for each problem of a matrix if the problem had never been tuned."""

from dataclasses import dataclass

from tuner.analysis.many_shapes.choice import AskedProblem, ranked_columns
from tuner.analysis.many_shapes.regret import without
from tuner.analysis.many_shapes.time_matrix import TimeMatrix
from tuner.core.problem import Problem


@dataclass(frozen=True)
class HeldOutChoice:
    """The configuration that is chosen for a problem from the times of all other problems."""

    problem: Problem
    column: int  # of the matrix
    source: str  # one of ``choice.SOURCES``
    efficiency: float | None  # best time of the problem / time with the choice; None: not timed


def held_out_choices(matrix: TimeMatrix) -> tuple[HeldOutChoice, ...]:
    """Returns the choice for each problem, held out once, without a measurement of the problem.

    Problems that no column applies to are left out.
    """
    efficiency, found = matrix.efficiency(), []
    for row, problem in enumerate(matrix.problems):
        asked = AskedProblem(problem, matrix.applies[row], matrix.costs[row])
        ranked = ranked_columns(without(matrix, row), asked)
        if ranked.columns:
            column = ranked.columns[0]
            is_timed = matrix.times_s[row][column] is not None
            share = float(efficiency[row, column]) if is_timed else None
            found.append(HeldOutChoice(problem, column, ranked.source, share))
    return tuple(found)
