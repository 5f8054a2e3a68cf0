"""CUDA cores with the last wave of tiles shared out along K: right in any order of blocks, no spills."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.gpu.target.strategies.points import by_name, is_feasible, outcome, require_right, simt
from tests.support.gpu_point import GpuPoint, feasible_set, gpu_variables
from tests.support.gpu_points import CUDA_CORES, USUAL
from tuner.core.candidate import Candidate, Value
from tuner.core.errors import CandidateError, Stage
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import Problem
from tuner.gpu.ptxsim.target.evaluator import simulate_program
from tuner.gpu.target.compiler import Ptxas

pytestmark = pytest.mark.mlir
FOUNDING = Matmul(5376, 2048, 5376)


def balanced(problem: Problem, multiprocessors: int, tail_splits: int, **knobs: Any) -> GpuPoint:
    """Returns a small point for a GPU of so many multiprocessors."""
    near = simt(problem, **knobs)
    choices = dict(near.candidate.choices) | {"tail_splits": tail_splits}
    return GpuPoint(problem, Candidate.of(CUDA_CORES, choices), near.chip, multiprocessors)


POINTS = (
    balanced(Matmul(96, 192, 200), 4, 3, depth=2),  # 9 tiles: two waves, and one in three parts
    balanced(Matmul(70, 190, 99, epilogue="bias_relu"), 4, 3, depth=3, block_k=8),
    balanced(Matmul(110, 130, 200, layout="nt", epilogue="accumulate"), 5, 5, depth=0),
    balanced(BatchMatmul(2, 96, 128, 120, layout="tn"), 4, 3, depth=1),
    balanced(Matmul(130, 200, 100), 5, 3, block_m=64, split_m=2, split_n=2, order_products=1, group=1),
)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("one", POINTS, ids=by_name)
def test_the_last_wave_in_parts_is_right_and_free_of_races(one: GpuPoint) -> None:
    program = one.program()
    (launch,) = program.launches
    assert launch.tile_grid is not None
    assert launch.grid[0] > np.prod(launch.tile_grid)
    require_right(one, program)


@pytest.mark.slow
def test_results_have_equal_bits_in_each_run_and_counters_are_zero_after_it() -> None:
    one = POINTS[0]
    program = one.program()
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((96, 200), (200, 192)))
    counters = np.zeros(program.buffers[-1].bytes // 4, np.int32)
    results = []
    for seed in (None, 1):
        c = np.full((96, 192), np.nan, np.float32)
        simulate_program(program, {"a": a, "b": b, "c": c, "zeroed": counters}, schedule_seed=seed)
        results.append(c)
        assert not counters.any()
    assert np.array_equal(results[0], results[1])


@pytest.mark.parametrize(
    ("text", "other"),
    [("atom.acq_rel.gpu", "atom.relaxed.gpu"), ("bar.warp.sync", "// bar.warp.sync")],
)
def test_without_its_order_the_sum_of_parts_is_a_race(text: str, other: str) -> None:
    program = POINTS[0].program()
    broken = replace(program, text=program.text.replace(text, other))
    assert broken.text != program.text
    is_right, reason = outcome(POINTS[0], broken)
    assert not is_right
    assert "race between blocks" in reason


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_random_problems_in_parts_are_right_and_free_of_races(seed: int) -> None:
    rng = np.random.default_rng(seed)
    done = 0
    while done < 4:
        m, n = (int(size) for size in rng.integers(33, 200, 2))
        problem = Matmul(m, n, int(rng.integers(100, 150)), layout=str(rng.choice(["nn", "nt", "tn"])))
        one = balanced(problem, int(rng.integers(2, 5)), 3, depth=int(rng.integers(4)), block_k=8)
        tiles = -(-m // 32) * -(-n // 64)
        if tiles > one.multiprocessors and tiles % one.multiprocessors:
            require_right(
                one, one.program(), None if done else seed
            )  # a random order takes ten times as long
            done += 1


def test_where_the_number_of_multiprocessors_is_unknown_parts_are_refused() -> None:
    unknown = replace(POINTS[0], multiprocessors=0)
    assert not is_feasible(unknown)
    with pytest.raises(CandidateError, match="the target's multiprocessors are not known") as caught:
        unknown.program()
    assert caught.value.stage is Stage.COMPILE
    assert dict(gpu_variables(FOUNDING, "sm_90"))["sm_count"] == 0
    assert feasible_set(Matmul(128, 128, 128), CUDA_CORES).rows > 0


@pytest.mark.slow
@pytest.mark.parametrize(("chip", "multiprocessors"), [("sm_90", 132), ("sm_80", 108)])
@pytest.mark.parametrize(("block_m", "block_n", "split_m"), [(128, 256, 4), (256, 128, 4), (128, 128, 2)])
def test_tiles_of_the_founding_problem_do_not_spill(
    ptxas: Ptxas, chip: str, multiprocessors: int, block_m: int, block_n: int, split_m: int
) -> None:
    knobs: dict[str, Value] = {
        "block_m": block_m,
        "block_n": block_n,
        "split_m": split_m,
        "tail_splits": 7,
        "group": 8,
    }
    knobs |= {"order_products": 1, "transpose": 1, "vector_a": 1, "pad_bytes": 16}
    one = GpuPoint(FOUNDING, Candidate.of(CUDA_CORES, USUAL[CUDA_CORES] | knobs), chip, multiprocessors)
    (resources,) = ptxas.assemble(one.program()).resources
    assert resources.spilled_bytes == 0
