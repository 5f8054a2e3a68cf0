from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.gpu import CHIPS, chip_of
from tuner.core.problem import Matmul, Problem
from tuner.search.cost_model.gpu import (
    GpuTiles,
    access_cycles,
    by_kind,
    cycles,
    fma_per_cycle,
    passes,
    stream_cycles,
)

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


LANES = np.arange(32)


@pytest.mark.parametrize(
    ("words", "width", "expected"),
    [
        (LANES, 1, 1),  # each bank once
        (0 * LANES, 1, 1),  # one word for all lanes
        (2 * LANES, 1, 2),
        (32 * LANES, 1, 32),  # one bank
        (33 * LANES, 1, 1),  # rows of a padded tile
        (2 * LANES, 2, 2),  # 256 bytes in a row
        (4 * LANES, 4, 4),
        (0 * LANES, 4, 1),  # all parts ask for the same four words
        (4 * (LANES // 8), 4, 1),  # sixteen words, of sixteen banks
        (32 * LANES, 4, 32),
    ],
)
def test_passes_are_words_of_one_bank(words: np.ndarray, width: int, expected: int) -> None:
    assert passes(words, width) == expected


@given(st.lists(st.integers(0, 4096), min_size=32, max_size=32))
def test_narrow_accesses_take_as_many_passes_as_the_busiest_bank_has_words(words: list[int]) -> None:
    banks = Counter(word % 32 for word in set(words))
    assert passes(np.array(words), 1) == max(banks.values())


@given(st.lists(st.integers(0, 1024), min_size=32, max_size=32), st.sampled_from([2, 4]))
def test_wide_accesses_take_no_more_passes_than_their_parts_alone(words: list[int], width: int) -> None:
    starts = width * np.array(words)
    parts = [
        Counter(word % 32 for word in set((part[:, None] + np.arange(width)).ravel().tolist()))
        for part in np.split(starts, width)
    ]
    alone = [max(part.values()) for part in parts]
    assert max(alone) <= passes(starts, width) <= sum(alone)


def test_an_access_costs_its_layer_at_least_and_twice_as_much_on_turing() -> None:
    assert access_cycles("load_shared", 0 * LANES, 4, 86) == 2.0
    assert access_cycles("load_shared", 0 * LANES, 4, 75) == 4.0
    assert access_cycles("load_global", LANES, 1, 86) == 1.5
    assert access_cycles("load_shared", 2 * LANES, 1, 86) == 2.0
    assert stream_cycles("store_shared", 4, 90) == 4.0


@pytest.mark.parametrize(("width", "like"), [(0, 1), (3, 2), (8, 4)])
def test_other_widths_count_as_the_next_narrower_one(width: int, like: int) -> None:
    assert access_cycles("load_shared", 0 * LANES, width, 90) == access_cycles(
        "load_shared", 0 * LANES, like, 90
    )


def test_equal_rows_are_looked_at_once() -> None:
    seen: list[tuple[int, int]] = []

    def cycles(one: int, other: int) -> float:
        seen.append((one, other))
        return one + 10.0 * other

    found = by_kind((np.array([1.0, 2.0, 1.0]), np.array([3.0, 3.0, 3.0])), cycles)
    assert found.tolist() == [31.0, 32.0, 31.0]
    assert seen == [(1, 3), (2, 3)]
