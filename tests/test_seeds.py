from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from tests.test_schedule_model import CPU, GPU, TENSOR, space
from tuner import seeds
from tuner.expression import parse
from tuner.feasible import FeasibleSet
from tuner.kernel import Resources
from tuner.machine import Machine
from tuner.problem import Matmul, Problem
from tuner.schedule_model import model_of
from tuner.seeds import SEEDS, WORTH, seed_rows
from tuner.space import Value

PROBLEM = Matmul(480, 512, 512)
PACKED: dict[str, tuple[Value, ...]] = {
    "tile_m": (2, 4, 6, 8, 10, 12),
    "tile_n": (16, 32, 48, 64),
    "block_k": (0, 64, 128, 256),
    "block_m": (0, 48, 96),
    "unroll_k": (1, 2),
}
DIRECT = {**PACKED, "tile_m": (1, 8)}
FEASIBLE = FeasibleSet.of((space(PACKED, "packed"), space({"x": (1, 2)}, "unknown"), space(DIRECT, "direct")))


def chosen(problem: Problem = PROBLEM, feasible: FeasibleSet = FEASIBLE, machine: Machine = CPU) -> list[int]:
    return list(seed_rows(feasible, problem, machine, 1))


def test_strategies_with_a_model_take_turns() -> None:
    names = [FEASIBLE.candidate(row).strategy for row in chosen()]
    assert names[:4] == ["packed", "direct"] * 2
    assert "unknown" not in names
    assert names.count("packed") == SEEDS


def test_seeds_are_the_cheapest_of_their_shape_the_cheapest_shape_first() -> None:
    model = model_of(FEASIBLE.spaces[0], PROBLEM, CPU, 1)
    assert model is not None
    costs = model.costs(FEASIBLE.index[0], {})
    rows = [row for row in chosen() if FEASIBLE.candidate(row).strategy == "packed"]
    assert costs[rows[0]] == costs.min()
    assert list(costs[rows]) == sorted(costs[rows])
    shapes = [model.shape_of(row) for row in FEASIBLE.index[0]]
    for row in rows:
        same = [cost for cost, shape in zip(costs, shapes, strict=True) if shape == shapes[row]]
        assert costs[row] == min(same)
    assert len({shapes[row] for row in rows}) == len(rows)


@how(deadline=None)
@given(st.integers(1, 4096), st.integers(1, 4096), st.integers(1, 4096))
def test_seeds_are_distinct_rows_and_worth_trying(m: int, n: int, k: int) -> None:
    problem = Matmul(m, n, k)
    rows = chosen(problem)
    assert len(set(rows)) == len(rows) > 0
    for place, (space_of, index) in enumerate(zip(FEASIBLE.spaces, FEASIBLE.index, strict=True)):
        model = model_of(space_of, problem, CPU, 1)
        start = sum(len(each) for each in FEASIBLE.index[:place])
        own = [row - start for row in rows if start <= row < start + len(index)]
        if model is not None:
            costs = model.costs(index, {})
            assert max(costs[own]) <= WORTH * costs.min()


def test_a_set_looked_at_in_parts_gives_the_same_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = chosen()
    monkeypatch.setattr(seeds, "BLOCK_ROWS", 100)
    assert chosen() == whole


def test_a_candidate_that_ptxas_saw_fail_is_no_seed() -> None:
    feasible = FeasibleSet.of((space(TENSOR),))
    problem = Matmul(4096, 4096, 4096, "f16")
    best = chosen(problem, feasible, GPU)[0]
    too_many = Resources("k", 256, 0, 0, 0, 0, 0, 0.0, 0)
    rows = seed_rows(feasible, problem, GPU, 1, {feasible.candidate(best): too_many})
    assert rows
    assert best not in rows


def test_a_strategy_of_which_nothing_is_feasible_has_none() -> None:
    nothing = replace(space(PACKED, "empty"), constraints=(parse("tile_m > 99", "f"),))
    feasible = FeasibleSet.of((nothing, space(PACKED, "packed")))
    assert {feasible.candidate(row).strategy for row in chosen(feasible=feasible)} == {"packed"}


def test_without_a_model_there_are_no_seeds() -> None:
    assert chosen(feasible=FeasibleSet.of((space({"x": (1, 2)}),))) == []
