"""What a search tries first on GPUs: its order, that it compiles without spills, and its results."""

import pytest

from tests.gpu.target.strategies.points import HOPPER, SIMT, WGMMA, require_right
from tests.support.gpu_point import GpuPoint, feasible_set
from tuner.core.candidate import Candidate
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.cost_model.untimed import is_serialized
from tuner.gpu.target.compiler import Ptxas
from tuner.space.file.reading import first_rows, load_space_file
from tuner.space.file.yaml import default_space_file

SQUARE = (4096, 4096, 4096)
FOUNDING = Matmul(5376, 2048, 5376)
# (rows, columns of a block; rows, columns of a thread) of f32 on CUDA cores
FIRST_TILES = {
    "nn": [(128, 256, 16, 8), (96, 128, 12, 8), (128, 256, 16, 8), (128, 128, 8, 8)],
    "tn": [(128, 256, 16, 8)],
}
LARGE_TILES = [
    *((128, 128, 8, 8), (128, 128, 8, 8)),
    *((256, 128, 16, 8), (128, 256, 16, 8), (32, 256, 8, 16), (64, 128, 8, 16)),
    *((256, 128, 8, 16), (128, 256, 8, 16), (128, 128, 8, 8), (64, 64, 8, 8)),
]
WINNER = {"block_m": 128, "block_n": 256, "stages": 4, "consumers": 2, "cluster": "2x1", "group": 16}
WINNER |= {"bands": "rows", "tiles": 4, "stores": "exchange", "splits": 1, "split_by": "workspace"}


def first_of(problem: Problem, strategy: str, chip: str = HOPPER) -> tuple[Candidate, ...]:
    feasible = feasible_set(problem, strategy, chip)
    rows = first_rows(load_space_file(default_space_file()), feasible)
    return tuple(feasible.candidate(row) for row in rows)


def tiles_of(candidate: Candidate) -> tuple[int, int, int, int]:
    knobs = {name: int(value) for name, value in candidate.choices}
    sums = (knobs["split_m"] * knobs["thread_m"], knobs["split_n"] * knobs["thread_n"])
    return knobs["block_m"], knobs["block_n"], *sums


@pytest.mark.drawn(1)
@pytest.mark.parametrize("problem", [Matmul(*SQUARE), FOUNDING, Matmul(*SQUARE, "f32", "tn")])
def test_f32_begins_with_large_tiles_of_every_shape_and_64x64_is_last(problem: Problem) -> None:
    tiles = [tiles_of(candidate) for candidate in first_of(problem, SIMT)]
    assert tiles == FIRST_TILES[problem.layout] + LARGE_TILES


@pytest.mark.parametrize(
    ("dtype", "layout", "block_k"),
    [("f16", "nn", 64), ("bf16", "nt", 64), ("tf32", "nt", 32), ("i8", "nt", 128), ("e4m3", "nt", 128)],
)
def test_tensor_cores_begin_with_the_winner_of_f16_whose_rows_are_lines_of_128_bytes(
    dtype: str, layout: str, block_k: int
) -> None:
    first, *others = first_of(Matmul(*SQUARE, dtype, layout), WGMMA)
    assert dict(first.choices) == WINNER | {"block_k": block_k}
    assert len(others) >= 7


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.parametrize("problem", [Matmul(*SQUARE), FOUNDING, Matmul(*SQUARE, "f32", "tn")])
def test_what_f32_begins_with_does_not_spill(ptxas: Ptxas, problem: Problem) -> None:
    for candidate in first_of(problem, SIMT):
        (resources,) = ptxas.assemble(GpuPoint(problem, candidate, HOPPER).program()).resources
        assert (resources.spilled_bytes, resources.blocks_per_multiprocessor > 0) == (0, True), candidate.text


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.parametrize("dtype", ["tf32", "i8", "e4m3"])
def test_the_twins_of_the_winner_of_f16_neither_spill_nor_wait_in_every_step(
    ptxas: Ptxas, dtype: str
) -> None:
    problem = Matmul(*SQUARE, dtype, "nt")
    for candidate in first_of(problem, WGMMA):
        (resources,) = ptxas.assemble(GpuPoint(problem, candidate, HOPPER).program()).resources
        assert (resources.spilled_bytes, is_serialized(resources)) == (0, False), candidate.text


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.parametrize("sizes", [SQUARE, (5376, 2048, 5376)], ids=str)
def test_what_tf32_tn_begins_with_neither_spills_nor_waits_in_every_step(
    ptxas: Ptxas, sizes: tuple[int, int, int]
) -> None:
    problem = Matmul(*sizes, "tf32", "tn")
    candidates = first_of(problem, WGMMA)
    assert len(candidates) >= 7
    for candidate in candidates:
        kernels = ptxas.assemble(GpuPoint(problem, candidate, HOPPER).program()).resources
        assert len(kernels) == 2
        assert {kernel.spilled_bytes for kernel in kernels} == {0}, candidate.text
        assert not any(map(is_serialized, kernels)), candidate.text


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.parametrize("layout", ["nn", "tn"])
def test_what_f32_begins_with_is_right(layout: str) -> None:
    problem = Matmul(260, 264, 40, "f32", layout)
    for candidate in first_of(Matmul(*SQUARE, "f32", layout), SIMT):
        one = GpuPoint(problem, candidate, HOPPER)
        require_right(one, one.program())


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.parametrize("dtype", ["tf32", "i8", "e4m3"])
def test_the_twins_of_the_winner_of_f16_are_right(dtype: str) -> None:
    problem = Matmul(256, 512, 512, dtype, "nt")
    for candidate in first_of(problem, WGMMA)[:3]:
        one = GpuPoint(problem, candidate, HOPPER)
        require_right(one, one.program())
