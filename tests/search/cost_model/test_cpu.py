from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tuning.fakes import MACHINE
from tuner.core.problem import Matmul, Problem
from tuner.search.cost_model.cpu import CpuTiles, cycles, step_cycles, stored_cycles

AVX512 = replace(MACHINE, isa="avx512", l1_bytes=32 * 1024, l2_bytes=1024 * 1024)


PROBLEM = Matmul(480, 512, 512)


EXTENTS = st.integers(1, 512)


def tiles(problem: Problem = PROBLEM, **changes: float) -> CpuTiles:
    """Returns one schedule: 12 x 32 tiles, nothing blocked, B packed."""
    m, n, k = problem.sizes
    plain = {"tile_m": 12, "tile_n": 32, "unroll_k": 1, "block_m": m, "block_n": n, "block_k": k}
    columns = {name: np.array([float(value)]) for name, value in {**plain, "m": m, "n": n, **changes}.items()}
    no = np.array([False])
    return CpuTiles(**columns, is_row_major=no, packs_a=no, is_packed=True, fetches_b=no)


def cost(problem: Problem = PROBLEM, **changes: float) -> float:
    return float(cycles(tiles(problem, **changes), problem, AVX512)[0])


def in_place(problem: Problem, **changes: float) -> float:
    """Returns what a schedule costs that packs nothing."""
    return float(cycles(replace(tiles(problem, **changes), is_packed=False), problem, AVX512)[0])


def prefetching(problem: Problem, **changes: float) -> float:
    """Returns what a schedule costs that packs nothing and prefetches the next panel of B."""
    made = replace(tiles(problem, **changes), is_packed=False, fetches_b=np.array([True]))
    return float(cycles(made, problem, AVX512)[0])


def test_no_schedule_beats_the_multipliers() -> None:
    assert cost() >= 480 * 512 * 512 / 16 / 2


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"tile_m": 12, "tile_n": 32}, {"tile_m": 2, "tile_n": 16}),  # too few sums to hide the latency
        ({"tile_m": 12, "tile_n": 32}, {"tile_m": 12, "tile_n": 16}),  # a load for each product
        ({"block_k": 256}, {"block_k": 8}),  # C is read and written 64 times
    ],
)
def test_what_wastes_the_core_costs_more(better: dict[str, float], worse: dict[str, float]) -> None:
    assert cost(PROBLEM, **better) < cost(PROBLEM, **worse)


def test_rows_that_are_left_over_cost_what_they_have_to_do() -> None:
    thin = Matmul(18, 512, 512)
    assert cost(thin, tile_m=6) < cost(thin, tile_m=14)  # 6, 6, 6; 14 and 4, too few sums to hide the latency
    assert cost(Matmul(16, 512, 512), tile_m=12) < cost(Matmul(24, 512, 512), tile_m=12)


def test_columns_beyond_the_edge_are_paid_for() -> None:
    ragged = Matmul(480, 300, 512)
    assert cost(ragged, tile_m=6, tile_n=64) == pytest.approx(
        cost(Matmul(480, 320, 512), tile_m=6, tile_n=64), rel=0.01
    )
    assert cost(ragged, tile_m=6, tile_n=64, block_n=256) < cost(
        ragged, tile_m=6, tile_n=64
    )  # 48 of the last 44


def test_pairs_of_f32_that_are_parted_cost_more() -> None:
    assert cost(tile_m=12, unroll_k=2) > cost(tile_m=12, unroll_k=4) == cost(tile_m=12)
    for problem in (Matmul(480, 512, 512, dtype="f64"), Matmul(480, 512, 512, layout="tn")):
        assert cost(problem, tile_m=6, unroll_k=2) == cost(problem, tile_m=6)


def test_a_panel_that_leaves_the_first_cache_costs_more() -> None:
    deep = Matmul(480, 512, 8192)
    assert cost(deep, block_k=128) < cost(deep)


def test_rows_of_b_a_power_of_two_apart_push_each_other_out_of_the_second_cache() -> None:
    usual, unlucky = Matmul(480, 1008, 1024), Matmul(480, 1024, 1024)
    assert in_place(unlucky) / in_place(usual) > 1.01 * 1024 / 1008
    assert in_place(unlucky, block_k=64) < in_place(unlucky)  # few rows at a time stay
    transposed = in_place(replace(unlucky, layout="nt"), tile_n=16)  # whose columns are rows of 4 KiB
    assert transposed < in_place(unlucky, tile_n=16)


def test_a_block_a_little_above_the_cache_costs_a_little_more() -> None:
    problem = Matmul(480, 528, 512)
    plain = replace(tiles(problem, tile_n=16), is_packed=False)
    twice_bytes = 2 * 512 * 528 * 4  # half of a cache is for what stays
    fitting, above, far_above = (
        float(cycles(plain, problem, replace(AVX512, l2_bytes=int(share * twice_bytes)))[0])
        for share in (1, 0.95, 0.1)
    )
    assert fitting < above < far_above
    assert above - fitting < 0.2 * (far_above - fitting)


def test_columns_missing_in_b_cost_most_where_rows_are_cut() -> None:
    whole, ragged = Matmul(480, 192, 512), Matmul(480, 208, 512)
    assert in_place(ragged, tile_m=6, tile_n=48) / in_place(whole, tile_m=6, tile_n=48) > 1.3
    assert cost(ragged, tile_m=6, tile_n=48) / cost(whole, tile_m=6, tile_n=48) < 1.3
    assert in_place(ragged, tile_m=6, tile_n=48) > in_place(ragged, tile_m=6, tile_n=48, block_n=192)


def test_rows_of_b_that_begin_within_a_line_cost_more() -> None:
    assert in_place(Matmul(480, 515, 512, align=64)) > in_place(Matmul(480, 528, 512, align=64))
    assert in_place(Matmul(480, 528, 512)) > in_place(Matmul(480, 528, 512, align=64))


def test_packing_is_paid_for() -> None:
    plain = tiles()
    packed = replace(plain, packs_a=np.array([True]))
    assert cycles(packed, PROBLEM, AVX512) > cycles(plain, PROBLEM, AVX512)


@given(EXTENTS, EXTENTS, EXTENTS, st.integers(1, 14), st.integers(1, 64))
def test_every_cost_is_a_positive_number(m: int, n: int, k: int, tile_m: int, tile_n: int) -> None:
    problem = Matmul(m, n, k)
    found = cost(problem, tile_m=tile_m, tile_n=tile_n)
    assert np.isfinite(found)
    assert found > 0


def test_an_unknown_cache_is_taken_for_a_usual_one() -> None:
    unknown = replace(AVX512, l1_bytes=0, l2_bytes=0)
    assert cycles(tiles(), PROBLEM, unknown) == cycles(tiles(), PROBLEM, AVX512)


@pytest.mark.parametrize("rows", [12, 24])
def test_few_rows_of_a_large_b_gain_by_prefetching(rows: int) -> None:
    large = Matmul(rows, 896, 4864)
    assert prefetching(large, tile_m=4, tile_n=64) < 0.9 * in_place(large, tile_m=4, tile_n=64)


def test_a_b_that_stays_in_the_cache_loses_by_prefetching() -> None:
    small = Matmul(96, 96, 300)
    assert prefetching(small, tile_m=4, tile_n=32) > in_place(small, tile_m=4, tile_n=32)


REGISTERS = 32


def step(rows: int, vectors: int, is_paired: bool = False, lines: int = 1, steps: int = 512) -> float:
    sides = np.array([float(rows)]), np.array([float(vectors)])
    return float(
        step_cycles(
            *sides, np.array([float(lines)]), np.array([float(steps)]), np.array([is_paired]), REGISTERS
        )[0]
    )


@given(st.integers(1, 14), st.integers(1, 4), st.booleans())
def test_no_step_is_done_before_its_multiply_adds_and_loads(rows: int, vectors: int, is_paired: bool) -> None:
    assert step(rows, vectors, is_paired) >= max(rows * vectors, rows + vectors) / 2


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ((12, 2), (2, 2)),  # four sums wait for one another
        ((14, 2), (14, 1)),  # a load for each multiply-add
        ((6, 4), (8, 3)),  # as many sums, but no register left for eight elements of A and a vector of B
        ((6, 4), (8, 4)),  # all registers are sums
    ],
)
def test_a_multiply_add_costs_least_where_nothing_else_binds(
    better: tuple[int, int], worse: tuple[int, int]
) -> None:
    assert step(*better) / np.prod(better) < step(*worse) / np.prod(worse)


def test_shuffles_are_interleaved_with_multiply_adds() -> None:
    assert step(12, 2, is_paired=True) > step(12, 2)
    assert step(4, 4, is_paired=True) == step(4, 4)  # few rows: the third unit does them meanwhile


def test_a_tile_of_few_steps_does_not_wait_for_its_sums() -> None:
    assert step(2, 1, steps=16) < step(2, 1, steps=64) < step(2, 1, steps=512)
    assert step(12, 2, steps=16) == step(12, 2)  # sums enough


def test_vectors_in_two_lines_are_loaded_twice() -> None:
    assert step(8, 1, lines=2) > step(8, 1)


def test_sums_are_stored_where_a_row_of_three_vectors_is_not_whole() -> None:
    rows, vectors = np.array([6.0, 6.0]), np.array([3.0, 4.0])
    assert stored_cycles(rows, vectors).tolist() == [18.0, 0.0]
