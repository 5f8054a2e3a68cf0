from dataclasses import replace

import numpy as np
import pytest

from tuner.core.gpu import CHIPS, chip_of
from tuner.core.problem import Matmul, Problem
from tuner.search.cost_model.gpu import GpuTiles, cycles, fma_per_cycle

CHIP = chip_of("sm_90")
MULTIPROCESSORS = 132
LARGE = Matmul(4096, 4096, 4096, "f16")


def tiles(**changes: float) -> GpuTiles:
    """Returns one schedule: 128 x 128 x 32 by four warps of tensor cores, copies two tiles ahead."""
    plain = {
        "block_m": 128,
        "block_n": 128,
        "block_k": 32,
        "threads": 128,
        "registers": 200,
        "shared_bytes": 49152,
        "issued": 10,
        "memory": 4,
        "waits": 2,
        "depth": 2,
        "splits": 1,
    }
    return GpuTiles(**{name: np.array([float(value)]) for name, value in {**plain, **changes}.items()})


def cost(problem: Problem = LARGE, multiprocessors: int = MULTIPROCESSORS, **changes: float) -> float:
    return float(cycles(tiles(**changes), problem, CHIP, multiprocessors)[0])


def test_no_schedule_beats_the_multipliers() -> None:
    assert cost() >= 4096**3 / (MULTIPROCESSORS * fma_per_cycle(LARGE, CHIP))


def test_one_block_more_than_a_wave_costs_another_wave() -> None:
    whole = Matmul(128 * 12, 128 * 11, 4096, "f16")  # 132 blocks
    more = Matmul(128 * 12 + 1, 128 * 11, 4096, "f16")
    assert cost(more) > 1.2 * cost(whole)
    assert cost(whole) == pytest.approx(cost(Matmul(128 * 11, 128 * 11, 4096, "f16")))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"depth": 2}, {"depth": 0}),  # every tile is waited for
        ({"block_k": 32}, {"block_k": 8}),  # more turns than latency can be hidden in
        # one warp keeps one partition busy at most, where only one block fits
        ({"shared_bytes": 200 << 10}, {"shared_bytes": 200 << 10, "threads": 32}),
        ({"memory": 4}, {"memory": 32}),  # shared memory is the bottleneck
        ({"issued": 10}, {"issued": 80}),  # more instructions than partitions issue
        ({"waits": 2, "depth": 0}, {"waits": 200, "depth": 0}),
        ({"registers": 100}, {"registers": 255, "threads": 256}),
        ({}, {"block_m": 32, "block_n": 32}),  # four times the way from the second level of cache
    ],
)
def test_what_wastes_the_gpu_costs_more(better: dict[str, float], worse: dict[str, float]) -> None:
    assert cost(LARGE, MULTIPROCESSORS, **better) < cost(LARGE, MULTIPROCESSORS, **worse)


def test_splitting_a_long_k_pays_where_blocks_are_few_and_not_where_there_are_many() -> None:
    few = Matmul(256, 256, 8192, "f16")
    assert cost(few, splits=8) < cost(few)
    assert cost(LARGE, splits=8) > cost(LARGE)


@pytest.mark.parametrize("changes", [{"shared_bytes": 300 * 1024}, {"registers": 300}, {"threads": 2048}])
def test_a_block_that_cannot_be_launched_costs_without_end(changes: dict[str, float]) -> None:
    assert cost(LARGE, MULTIPROCESSORS, **changes) == np.inf


def test_an_unknown_number_of_multiprocessors_is_the_usual_one() -> None:
    assert cost(multiprocessors=0) == cost(multiprocessors=132)


@pytest.mark.parametrize("chip", CHIPS.values(), ids=lambda chip: chip.name)
@pytest.mark.parametrize("dtype", ["f16", "bf16", "tf32", "f32", "f64"])
def test_every_chip_and_type_has_a_rate(chip: object, dtype: str) -> None:
    assert fma_per_cycle(Matmul(8, 8, 8, dtype), replace(CHIP, name=chip.name)) > 0  # type: ignore[attr-defined]
