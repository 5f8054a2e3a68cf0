"""Models of a strategy's cost, and the seeds that they choose."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tuning.fakes import MACHINE
from tuner.core.candidate import Value
from tuner.core.compiled_code import Resources
from tuner.core.gpu import CHIPS
from tuner.core.machine import Machine, gpu_machine
from tuner.core.matmul import Matmul
from tuner.core.problem import LAYOUTS, Problem
from tuner.gpu.cost_model.gpu import CudaCoreModel, TensorCoreModel
from tuner.search.cost_model import configurations
from tuner.search.cost_model.configurations import (
    SEEDS,
    WORTH,
    AbstractModel,
    CpuModel,
    KnobColumns,
    initial_configurations,
    model_of,
)
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace

CPU = replace(MACHINE, isa="avx512")
GPU = gpu_machine("cuda", CHIPS["sm_90"], "H200")
Choices = dict[str, tuple[Value, ...]]
PACKED: Choices = {"tile_m": (8, 12), "tile_n": (16, 32), "block_k": (0, 128)}
WARPS: Choices = {"block_k": (32,), "warps_m": (1, 2), "warps_n": (2,), "depth": (2,)}
TENSOR: Choices = {"block_m": (64, 128), "block_n": (64,), **WARPS}
PARTS: Choices = {"thread_m": (4,), "thread_n": (4,), "split_m": (1, 2), "split_n": (2,), "depth": (2,)}
THREADS: Choices = {"block_m": (128,), "block_n": (128,), "block_k": (16,), **PARTS}


def space(knobs: Choices, name: str = "s") -> SearchSpace:
    return SearchSpace(name, tuple(Knob(knob, choices) for knob, choices in knobs.items()))


def model(
    knobs: Choices, machine: Machine, problem: Problem, threads: int = 1
) -> tuple[AbstractModel, np.ndarray]:
    found = model_of(space(knobs), problem, machine, threads)
    assert found is not None
    return found, FeasibleSet.of((space(knobs),)).index[0]


def test_knobs_decide_the_model_where_a_block_of_0_is_all_and_a_share_costs_less() -> None:
    def kind(knobs: Choices, machine: Machine) -> type[AbstractModel | None]:
        return type(model_of(space(knobs), Matmul(512, 512, 512), machine, 1))

    assert kind(PACKED, CPU) is CpuModel
    assert kind(TENSOR, GPU) is TensorCoreModel
    assert kind(THREADS, GPU) is CudaCoreModel
    assert kind(PACKED, GPU) is kind(TENSOR, CPU) is kind({"x": (1, 2)}, CPU) is type(None)
    assert kind(TENSOR, replace(GPU, isa="gcn", chip="gfx942")) is type(None)
    assert kind({**PACKED, "tile_m": ("small", "large")}, CPU) is type(None)
    knobs: Choices = {"block_m": (0, 64, 1024)}
    columns = KnobColumns(space(knobs), FeasibleSet.of((space(knobs),)).index[0])
    assert columns.sizes("block_m", np.full(3, 100.0)).tolist() == [100.0, 64.0, 100.0]
    assert columns.sizes("block_n", np.full(3, 50.0)).tolist() == [50.0] * 3
    assert columns.equal("block_m", 64).tolist() == [False, True, False]
    assert columns.equal("order", "ij").tolist() == [False] * 3
    shared, rows = model({**PACKED, "split": ("none", "n", "m")}, CPU, Matmul(480, 512, 512), threads=4)
    costs = shared.costs(rows, {}).reshape(-1, 3)
    assert (costs[:, 1:] < costs[:, :1] / 2).all()


@pytest.mark.parametrize(("knobs", "dtype"), [(TENSOR, "f16"), (THREADS, "f32")])
def test_what_ptxas_told_takes_the_place_of_what_is_assumed(knobs: Choices, dtype: str) -> None:
    found, index = model(knobs, GPU, Matmul(4096, 4096, 4096, dtype))
    assumed = found.costs(index, {})
    spilling = Resources("k", 256, 0, 0, 0, 0, 0, 0.0, 0)  # more registers than a thread can have
    given = found.costs(index, {1: spilling})
    assert np.isfinite(assumed).all()
    assert given[1] == np.inf
    assert (np.delete(given, 1) == np.delete(assumed, 1)).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_narrow_elements_on_cuda_cores_have_a_cost(layout: str) -> None:
    """An element is less than a word, of which addresses in shared memory are counted."""
    knobs = THREADS | {"vector_a": (1, 4), "vector_b": (4,), "pad_bytes": (0, 16)}
    cuda_cores, rows = model(knobs, GPU, Matmul(512, 512, 512, "i8", layout))
    assert isinstance(cuda_cores, CudaCoreModel)
    costs = cuda_cores.costs(rows, {})
    assert ((costs > 0) & np.isfinite(costs)).all()


def test_larger_tiles_of_a_thread_cost_less_and_the_shape_of_a_row_is_reported_by_its_tiles() -> None:
    found, rows = model(THREADS, GPU, Matmul(4096, 4096, 4096))
    small, large = found.costs(rows, {})
    assert large < small
    found, rows = model(PACKED, CPU, Matmul(64, 64, 64))
    shapes = [found.shape_of(row) for row in rows]
    assert len(set(shapes)) == 4
    assert shapes[0] == shapes[1]  # block_k alone differs


PROBLEM = Matmul(480, 512, 512)
TILES: Choices = {"tile_m": (2, 4, 6, 8, 10, 12), "tile_n": (16, 32, 48, 64)}
MANY_PACKED = {**TILES, "block_k": (0, 64, 128, 256), "block_m": (0, 48, 96), "unroll_k": (1, 2)}
DIRECT = {**MANY_PACKED, "tile_m": (1, 8)}
SPACES = (space(MANY_PACKED, "packed"), space({"x": (1, 2)}, "unknown"), space(DIRECT, "direct"))
FEASIBLE = FeasibleSet.of(SPACES)


def chosen(problem: Problem = PROBLEM, feasible: FeasibleSet = FEASIBLE, machine: Machine = CPU) -> list[int]:
    return list(initial_configurations(feasible, problem, machine, 1))


def test_strategies_with_a_model_have_seeds_the_cheapest_of_all_first() -> None:
    rows = chosen()
    names = [FEASIBLE.candidate(row).strategy for row in rows]
    assert (set(names), names.count("packed")) == ({"packed", "direct"}, SEEDS)
    costs = []
    for each, index in zip(SPACES, FEASIBLE.index, strict=True):
        model = model_of(each, PROBLEM, CPU, 1)
        costs.append(np.full(len(index), np.inf) if model is None else model.costs(index, {}))
    of_seeds = np.concatenate(costs)[rows].tolist()
    assert of_seeds == sorted(of_seeds)


def test_seeds_are_the_cheapest_of_their_shape_the_cheapest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    packed, index = model(MANY_PACKED, CPU, PROBLEM)
    costs = packed.costs(index, {})
    rows = [row for row in chosen() if FEASIBLE.candidate(row).strategy == "packed"]
    assert (costs[rows[0]], list(costs[rows])) == (costs.min(), sorted(costs[rows]))
    shapes = [packed.shape_of(row) for row in index]
    for row in rows:
        same = [cost for cost, shape in zip(costs, shapes, strict=True) if shape == shapes[row]]
        assert costs[row] == min(same)
    assert len({shapes[row] for row in rows}) == len(rows)
    whole = chosen()
    monkeypatch.setattr(configurations, "BLOCK_ROWS", 100)
    assert chosen() == whole


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


def test_what_failed_spilled_or_comes_last_is_no_seed_nor_what_has_no_model() -> None:
    feasible = FeasibleSet.of((space(TENSOR, "tensor"),))
    problem = Matmul(4096, 4096, 4096, "f16")
    best = chosen(problem, feasible, GPU)[0]
    fails, spills = (256, 0, 0, 0, 0, 0, 0.0, 0), (255, 400, 800, 0, 49152, 0, 0.25, 1)
    for seen in (Resources("k", *fails), Resources("k", *spills)):
        seeds = initial_configurations(feasible, problem, GPU, 1, {feasible.candidate(best): seen})
        assert seeds
        assert best not in seeds
    tile_m = dict(FEASIBLE.candidate(chosen()[0]).choices)["tile_m"]
    demoting = replace(space(MANY_PACKED, "packed"), preferences=(parse(f"tile_m != {tile_m}", "f"),))
    feasible = FeasibleSet.of((demoting, *FEASIBLE.spaces[1:]))
    rows = chosen(feasible=feasible)
    assert rows
    assert all(feasible.is_preferred[rows])
    others = FeasibleSet.of((replace(demoting, constraints=demoting.preferences), *FEASIBLE.spaces[1:]))
    expected = [others.candidate(row) for row in chosen(feasible=others)]
    assert [feasible.candidate(row) for row in rows] == expected
    assert chosen(feasible=FeasibleSet.of((space({"x": (1, 2)}),))) == []
    nothing = replace(space(MANY_PACKED, "empty"), constraints=(parse("tile_m > 99", "f"),))
    feasible = FeasibleSet.of((nothing, space(MANY_PACKED, "packed")))
    assert {feasible.candidate(row).strategy for row in chosen(feasible=feasible)} == {"packed"}
