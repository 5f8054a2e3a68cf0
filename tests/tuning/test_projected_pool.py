import numpy as np
import pytest

from tuner.core.machine import variables_of
from tuner.core.problem import Matmul, Problem
from tuner.core.processors import processor_of
from tuner.search.cost_model.configurations import model_of
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.tuning.campaign_session import PoolProblem, projected_pool

SHIPPED = load_space_file(default_space_file())
MACHINE = processor_of("sapphirerapids").machine
FIRST = tuple(
    point
    for name in ("matmul_cpu_packed", "matmul_cpu_direct", "matmul_cpu_dot")
    for point in SHIPPED.strategy(name).first
)


def place(problem: Problem, count: int = 1) -> PoolProblem:
    variables = variables_of(problem, MACHINE, 1)
    return PoolProblem(problem, count, spaces_for(SHIPPED, problem, MACHINE.isa, variables, None))


def test_every_column_is_projected_onto_every_problem() -> None:
    places = (place(Matmul(128, 768, 768)), place(Matmul(1, 768, 768), 3))
    pool = projected_pool(places, FIRST, MACHINE, 1)
    assert pool.counts == (1, 3)
    assert pool.columns == FIRST
    for each, row in zip(places, pool.candidates, strict=True):
        by_name = {space.strategy: space for space in each.spaces}
        for column, candidate in zip(FIRST, row, strict=True):
            if candidate is None:
                continue
            assert candidate.strategy == column.strategy
            assert by_name[candidate.strategy].violated(candidate) is None
    packed = [at for at, column in enumerate(FIRST) if column.strategy == "matmul_cpu_packed"]
    assert all(pool.candidates[1][at] is None for at in packed)  # m = 1
    dots = [at for at, column in enumerate(FIRST) if column.strategy == "matmul_cpu_dot"]
    assert all(row[at] is None for row in pool.candidates for at in dots)  # layout nn


def test_costs_and_preferences_are_those_of_the_projection() -> None:
    problem = Matmul(100, 300, 200)
    here = place(problem)
    pool = projected_pool((here,), FIRST, MACHINE, 1)
    feasible = FeasibleSet.of(here.spaces)
    for candidate, cost, is_demoted in zip(
        pool.candidates[0], pool.costs[0], pool.is_demoted[0], strict=True
    ):
        if candidate is None:
            assert (cost, is_demoted) == (np.inf, False)
            continue
        row = feasible.row_of(candidate)
        assert row is not None
        assert is_demoted == (feasible.demoted_by(candidate) is not None)
        space = next(each for each in here.spaces if each.strategy == candidate.strategy)
        model = model_of(space, problem, MACHINE, 1)
        assert model is not None
        start = sum(
            len(index)
            for other, index in zip(feasible.spaces, feasible.index, strict=True)
            if feasible.spaces.index(other) < feasible.spaces.index(space)
        )
        index = feasible.index[feasible.spaces.index(space)][row - start : row - start + 1]
        assert cost == pytest.approx(float(model.costs(index, {})[0]))
    problem = Matmul(64, 64, 64, dtype="bf16")
    columns = SHIPPED.strategy("matmul_cpu_amx").first
    pool = projected_pool((place(problem),), columns, MACHINE, 1)
    assert set(pool.costs[0]) == {np.inf}
    assert any(candidate is not None for candidate in pool.candidates[0])
