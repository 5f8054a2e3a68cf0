from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from tests.search.cost_model.test_row_cost import CPU, GPU, TENSOR, space
from tuner.core.candidate import Value
from tuner.core.gpu_code import Resources
from tuner.core.machine import Machine
from tuner.core.problem import Matmul, Problem
from tuner.search.cost_model import configurations
from tuner.search.cost_model.configurations import SEEDS, WORTH, initial_configurations, model_of
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet

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
    return list(initial_configurations(feasible, problem, machine, 1))


def test_strategies_with_a_model_have_seeds_the_cheapest_of_all_first() -> None:
    rows = chosen()
    names = [FEASIBLE.candidate(row).strategy for row in rows]
    assert set(names) == {"packed", "direct"}
    assert names.count("packed") == SEEDS
    models = [model_of(each, PROBLEM, CPU, 1) for each in FEASIBLE.spaces]
    costs = [
        np.full(len(index), np.inf) if model is None else model.costs(index, {})
        for model, index in zip(models, FEASIBLE.index, strict=True)
    ]
    of_seeds = np.concatenate(costs)[rows].tolist()
    assert of_seeds == sorted(of_seeds)


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
    monkeypatch.setattr(configurations, "BLOCK_ROWS", 100)
    assert chosen() == whole


def test_a_candidate_that_ptxas_saw_fail_is_no_seed() -> None:
    feasible = FeasibleSet.of((space(TENSOR),))
    problem = Matmul(4096, 4096, 4096, "f16")
    best = chosen(problem, feasible, GPU)[0]
    too_many = Resources("k", 256, 0, 0, 0, 0, 0, 0.0, 0)
    rows = initial_configurations(feasible, problem, GPU, 1, {feasible.candidate(best): too_many})
    assert rows
    assert best not in rows


def test_a_candidate_that_ptxas_saw_spill_is_no_seed() -> None:
    problem = Matmul(4096, 4096, 4096, "f16")
    feasible = FeasibleSet.of((space(TENSOR, "tensor"),))
    first, *_ = initial_configurations(feasible, problem, GPU, 1)
    spilling = {feasible.candidate(first): Resources("k", 255, 400, 800, 0, 49152, 0, 0.25, 1)}
    assert first not in initial_configurations(feasible, problem, GPU, 1, spilling)


def test_a_row_that_comes_last_is_no_seed() -> None:
    best = chosen()[0]
    tile_m = dict(FEASIBLE.candidate(best).choices)["tile_m"]
    demoting = replace(space(PACKED, "packed"), preferences=(parse(f"tile_m != {tile_m}", "f"),))
    feasible = FeasibleSet.of((demoting, *FEASIBLE.spaces[1:]))
    rows = chosen(feasible=feasible)
    assert rows
    assert all(feasible.is_preferred[rows])
    others = FeasibleSet.of((replace(demoting, constraints=demoting.preferences), *FEASIBLE.spaces[1:]))
    assert [feasible.candidate(row) for row in rows] == [
        others.candidate(row) for row in chosen(feasible=others)
    ]


def test_a_strategy_of_which_nothing_is_feasible_has_none() -> None:
    nothing = replace(space(PACKED, "empty"), constraints=(parse("tile_m > 99", "f"),))
    feasible = FeasibleSet.of((nothing, space(PACKED, "packed")))
    assert {feasible.candidate(row).strategy for row in chosen(feasible=feasible)} == {"packed"}


def test_without_a_model_there_are_no_seeds() -> None:
    assert chosen(feasible=FeasibleSet.of((space({"x": (1, 2)}),))) == []
