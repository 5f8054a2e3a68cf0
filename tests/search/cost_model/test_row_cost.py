from dataclasses import replace

import numpy as np
import pytest

from tests.tuning.fakes import MACHINE
from tuner.core.candidate import Value
from tuner.core.gpu import CHIPS
from tuner.core.gpu_code import Resources
from tuner.core.machine import Machine, gpu_machine
from tuner.core.problem import LAYOUTS, Matmul, Problem
from tuner.search.cost_model.configurations import (
    AbstractModel,
    CpuModel,
    CudaCoreModel,
    KnobColumns,
    TensorCoreModel,
    model_of,
)
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace

CPU = replace(MACHINE, isa="avx512")
GPU = gpu_machine("cuda", CHIPS["sm_90"], "H200")
PACKED: dict[str, tuple[Value, ...]] = {"tile_m": (8, 12), "tile_n": (16, 32), "block_k": (0, 128)}
TENSOR: dict[str, tuple[Value, ...]] = {
    "block_m": (64, 128),
    "block_n": (64,),
    "block_k": (32,),
    "warps_m": (1, 2),
    "warps_n": (2,),
    "depth": (2,),
}
THREADS: dict[str, tuple[Value, ...]] = {
    "block_m": (128,),
    "block_n": (128,),
    "block_k": (16,),
    "thread_m": (4,),
    "thread_n": (4,),
    "split_m": (1, 2),
    "split_n": (2,),
    "depth": (2,),
}


def space(knobs: dict[str, tuple[Value, ...]], name: str = "s") -> SearchSpace:
    return SearchSpace(name, tuple(Knob(knob, choices) for knob, choices in knobs.items()))


def model(
    knobs: dict[str, tuple[Value, ...]], machine: Machine, problem: Problem, threads: int = 1
) -> tuple[AbstractModel, FeasibleSet]:
    found = model_of(space(knobs), problem, machine, threads)
    assert found is not None
    return found, FeasibleSet.of((space(knobs),))


@pytest.mark.parametrize(
    ("knobs", "machine", "kind"),
    [
        (PACKED, CPU, CpuModel),
        (TENSOR, GPU, TensorCoreModel),
        (THREADS, GPU, CudaCoreModel),
        (PACKED, GPU, None),
        (TENSOR, CPU, None),
        ({"x": (1, 2)}, CPU, None),
        ({**PACKED, "tile_m": ("small", "large")}, CPU, None),
    ],
)
def test_the_knobs_decide_which_model_a_strategy_has(
    knobs: dict[str, tuple[Value, ...]], machine: Machine, kind: type[AbstractModel] | None
) -> None:
    found = model_of(space(knobs), Matmul(512, 512, 512), machine, 1)
    assert (None if found is None else type(found)) is kind


def test_a_block_of_0_or_of_more_than_there_is_is_all_of_it() -> None:
    knobs: dict[str, tuple[Value, ...]] = {"block_m": (0, 64, 1024)}
    columns = KnobColumns(space(knobs), FeasibleSet.of((space(knobs),)).index[0])
    assert columns.sizes("block_m", np.full(3, 100.0)).tolist() == [100.0, 64.0, 100.0]
    assert columns.sizes("block_n", np.full(3, 50.0)).tolist() == [50.0] * 3
    assert columns.equal("block_m", 64).tolist() == [False, True, False]
    assert columns.equal("order", "ij").tolist() == [False] * 3


def test_a_share_of_the_work_costs_less_than_all_of_it() -> None:
    knobs = {**PACKED, "split": ("none", "n", "m")}
    problem = Matmul(480, 512, 512)
    shared, feasible = model(knobs, CPU, problem, threads=4)
    costs = shared.costs(feasible.index[0], {}).reshape(-1, 3)
    assert (costs[:, 1] < costs[:, 0] / 2).all()
    assert (costs[:, 2] < costs[:, 0] / 2).all()


@pytest.mark.parametrize(
    ("knobs", "problem"), [(TENSOR, Matmul(4096, 4096, 4096, "f16")), (THREADS, Matmul(4096, 4096, 4096))]
)
def test_what_ptxas_told_takes_the_place_of_what_is_assumed(
    knobs: dict[str, tuple[Value, ...]], problem: Problem
) -> None:
    found, feasible = model(knobs, GPU, problem)
    index = feasible.index[0]
    assumed = found.costs(index, {})
    spilling = Resources("k", 256, 0, 0, 0, 0, 0, 0.0, 0)  # more registers than a thread can have
    given = found.costs(index, {1: spilling})
    assert np.isfinite(assumed).all()
    assert given[1] == np.inf
    assert (np.delete(given, 1) == np.delete(assumed, 1)).all()


def test_larger_tiles_of_a_thread_read_less_and_cost_less() -> None:
    found, feasible = model(THREADS, GPU, Matmul(4096, 4096, 4096))
    small, large = found.costs(feasible.index[0], {})
    assert large < small


@pytest.mark.parametrize("layout", LAYOUTS)
def test_narrow_elements_on_cuda_cores_have_a_cost(layout: str) -> None:
    """An element is less than a word, of which addresses in shared memory are counted."""
    knobs: dict[str, tuple[Value, ...]] = THREADS | {
        "vector_a": (1, 4),
        "vector_b": (4,),
        "pad_bytes": (0, 16),
    }
    cuda_cores, feasible = model(knobs, GPU, Matmul(512, 512, 512, "i8", layout))
    assert isinstance(cuda_cores, CudaCoreModel)
    costs = cuda_cores.costs(feasible.index[0], {})
    assert np.isfinite(costs).all()
    assert (costs > 0).all()


def test_the_shape_of_a_row_is_reported_by_its_tiles() -> None:
    found, feasible = model(PACKED, CPU, Matmul(64, 64, 64))
    shapes = [found.shape_of(row) for row in feasible.index[0]]
    assert len(set(shapes)) == 4
    assert shapes[0] == shapes[1]  # block_k alone differs
