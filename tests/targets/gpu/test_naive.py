"""The naive GPU strategy: right on any shape, one kernel, one thread for each element."""

import itertools

import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint, feasible_set
from tuner.core.candidate import Candidate
from tuner.core.problem import EPILOGUES, LAYOUTS, Matmul, Problem

pytestmark = pytest.mark.mlir

STRATEGY = "matmul_gpu_naive"
KINDS = list(itertools.product(("f32", "f64", "i8"), LAYOUTS, EPILOGUES))
THIN = ((1, 1, 1), (1, 97, 3))
POINTS = [((37, 70, 19), *kind) for kind in KINDS] + [
    (sizes, *kind) for sizes in THIN for kind in KINDS if kind[1:] == ("nn", "bias_relu")
]


def point(problem: Problem, block_m: int = 1, block_n: int = 32) -> GpuPoint:
    return GpuPoint(problem, Candidate.of(STRATEGY, {"block_m": block_m, "block_n": block_n}))


@pytest.mark.parametrize(("sizes", "dtype", "layout", "epilogue"), POINTS)
def test_every_kind_is_right_and_free_of_races_on_any_shape(
    sizes: tuple[int, int, int], dtype: str, layout: str, epilogue: str
) -> None:
    problem = Matmul(*sizes, dtype, layout, epilogue)
    allowed = feasible_set(problem, STRATEGY)
    for row in {0, allowed.rows - 1}:
        one = GpuPoint(problem, allowed.candidate(row))
        verdict, worst, simulations = one.run(one.program())
        assert verdict.max_error <= 1.0, f"{one.candidate.text}: {worst}"
        assert [simulation.hazards for simulation in simulations] == [()]


@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_rows_go_to_blocks_and_columns_to_threads(epilogue: str) -> None:
    """Buddy's mapping, with columns cut into blocks of at most 1024 threads."""
    program = point(Matmul(100, 3000, 16, epilogue=epilogue), block_n=1024).program()
    (launch,) = program.launches
    assert (launch.grid, launch.block) == ((100, 3, 1), (1, 1024, 1))
    assert launch.dynamic_shared_bytes == 0
    assert sorted(launch.arguments) == sorted(buffer.name for buffer in program.buffers)


def test_columns_beyond_c_are_guarded() -> None:
    problem = Matmul(3, 33, 4)
    program = point(problem).program()
    assert program.launches[0].grid == (3, 2, 1)
    verdict, worst, _ = point(problem).run(program)
    assert verdict.max_error <= 1.0, worst


def test_more_columns_than_a_grid_has_blocks_are_not_in_the_space() -> None:
    allowed = feasible_set(Matmul(1, 32 * 65535 + 1, 1), STRATEGY)
    assert allowed.row_of(point(Matmul(1, 1, 1)).candidate) is None
    assert feasible_set(Matmul(1, 32 * 65535, 1), STRATEGY).row_of(point(Matmul(1, 1, 1)).candidate) == 0
