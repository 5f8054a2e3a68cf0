from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tuning.fakes import MACHINE
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
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


def in_place(problem: Problem, fetches_b: float = 0, **changes: float) -> float:
    """Returns what a schedule costs that packs nothing; ``fetches_b``: 1 to prefetch the next panel of B."""
    made = replace(tiles(problem, **changes), is_packed=False, fetches_b=np.array([bool(fetches_b)]))
    return float(cycles(made, problem, AVX512)[0])


def test_no_schedule_beats_the_multipliers_and_what_wastes_the_core_costs_more() -> None:
    assert cost() >= 480 * 512 * 512 / 16 / 2
    assert cost(tile_m=12, unroll_k=2) > cost(tile_m=12, unroll_k=4) == cost(tile_m=12)
    for problem in (Matmul(480, 512, 512, dtype="f64"), Matmul(480, 512, 512, layout="tn")):
        assert cost(problem, tile_m=6, unroll_k=2) == cost(problem, tile_m=6)
    plain = tiles()
    assert cycles(replace(plain, packs_a=np.array([True])), PROBLEM, AVX512) > cycles(plain, PROBLEM, AVX512)
    assert cycles(plain, PROBLEM, replace(AVX512, l1_bytes=0, l2_bytes=0)) == cycles(plain, PROBLEM, AVX512)
    good = cost(tile_m=12, tile_n=32)
    assert good < cost(tile_m=2, tile_n=16)  # too few sums to hide the latency
    assert good < cost(tile_m=12, tile_n=16)  # a load for each product
    assert cost(block_k=256) < cost(block_k=8)  # C is read and written 64 times
    deep = Matmul(480, 512, 8192)
    assert cost(deep, block_k=128) < cost(deep)
    usual, unlucky = Matmul(480, 1008, 1024), Matmul(480, 1024, 1024)
    assert in_place(unlucky) / in_place(usual) > 1.01 * 1024 / 1008
    assert in_place(unlucky, block_k=64) < in_place(unlucky)  # few rows at a time stay
    transposed = in_place(replace(unlucky, layout="nt"), tile_n=16)  # whose columns are rows of 4 KiB
    assert transposed < in_place(unlucky, tile_n=16)
    problem = Matmul(480, 528, 512)
    plain = replace(tiles(problem, tile_n=16), is_packed=False)
    twice_bytes = 2 * 512 * 528 * 4  # half of a cache is for what stays
    machines = (replace(AVX512, l2_bytes=int(share * twice_bytes)) for share in (1, 0.95, 0.1))
    fitting, above, far_above = (float(cycles(plain, problem, each)[0]) for each in machines)
    assert fitting < above < far_above
    assert above - fitting < 0.2 * (far_above - fitting)


def test_rows_left_over_and_missing_columns_of_b_cost_what_they_have_to_do() -> None:
    thin = Matmul(18, 512, 512)
    assert cost(thin, tile_m=6) < cost(thin, tile_m=14)  # 6, 6, 6; 14 and 4, too few sums to hide the latency
    assert cost(Matmul(16, 512, 512), tile_m=12) < cost(Matmul(24, 512, 512), tile_m=12)
    tile = {"tile_m": 6, "tile_n": 64}
    ragged = Matmul(480, 300, 512)
    assert cost(ragged, **tile) == pytest.approx(cost(Matmul(480, 320, 512), **tile), rel=0.01)
    assert cost(ragged, **tile, block_n=256) < cost(ragged, **tile)  # 48 of the last 44
    whole, ragged, tile = Matmul(480, 192, 512), Matmul(480, 208, 512), {"tile_m": 6, "tile_n": 48}
    assert in_place(ragged, **tile) / in_place(whole, **tile) > 1.3
    assert cost(ragged, **tile) / cost(whole, **tile) < 1.3
    assert in_place(ragged, **tile) > in_place(ragged, **tile, block_n=192)
    assert in_place(Matmul(480, 515, 512, align=64)) > in_place(Matmul(480, 528, 512, align=64))
    assert in_place(Matmul(480, 528, 512)) > in_place(Matmul(480, 528, 512, align=64))
    for rows in (12, 24):
        large, tile = Matmul(rows, 896, 4864), {"tile_m": 4, "tile_n": 64}
        assert in_place(large, fetches_b=1, **tile) < 0.9 * in_place(large, **tile)
    small, tile = Matmul(96, 96, 300), {"tile_m": 4, "tile_n": 32}
    assert in_place(small, fetches_b=1, **tile) > in_place(small, **tile)


@pytest.mark.parametrize(("columns", "most"), [(960, 32), (2048, 8)])
def test_rows_of_b_that_the_prefetcher_follows_are_read_without_a_loss(columns: int, most: int) -> None:
    """As many as it follows; of rows whose lines need one set of the first level of cache, its ways."""
    problem = Matmul(4, columns, 4096)
    of_rows = {}
    for block_k in (8, 16, 32, 64):
        made = replace(tiles(problem, tile_m=4, tile_n=32, block_k=block_k), is_packed=False)
        by_rows = replace(made, is_row_major=np.array([True]))
        of_rows[block_k] = float(cycles(by_rows, problem, MACHINE)[0] / cycles(made, problem, MACHINE)[0])
    followed = {block_k for block_k, ratio in of_rows.items() if ratio < 0.8}
    assert followed == {block_k for block_k in of_rows if block_k <= most}


@given(EXTENTS, EXTENTS, EXTENTS, st.integers(1, 14), st.integers(1, 64))
def test_every_cost_is_a_positive_number(m: int, n: int, k: int, tile_m: int, tile_n: int) -> None:
    assert 0 < cost(Matmul(m, n, k), tile_m=tile_m, tile_n=tile_n) < np.inf


def step(rows: int, vectors: int, is_paired: bool = False, lines: int = 1, steps: int = 512) -> float:
    m, n, each_lines, k = (np.array([float(value)]) for value in (rows, vectors, lines, steps))
    return float(step_cycles(m, n, each_lines, k, np.array([is_paired]), 32)[0])  # 32 registers


@given(st.integers(1, 14), st.integers(1, 4), st.booleans())
def test_no_step_is_done_before_its_multiply_adds_and_loads(rows: int, vectors: int, is_paired: bool) -> None:
    assert step(rows, vectors, is_paired) >= max(rows * vectors, rows + vectors) / 2


def test_shuffles_are_interleaved_and_a_multiply_add_costs_least_on_its_own() -> None:
    for better, worse in (
        ((12, 2), (2, 2)),  # four sums wait for one another
        ((14, 2), (14, 1)),  # a load for each multiply-add
        ((6, 4), (8, 3)),  # as many sums, but no register left for eight elements of A and a vector of B
        ((6, 4), (8, 4)),  # all registers are sums
    ):
        assert step(*better) / np.prod(better) < step(*worse) / np.prod(worse)
    assert step(12, 2, is_paired=True) > step(12, 2)
    assert step(4, 4, is_paired=True) == step(4, 4)  # few rows: the third unit does them meanwhile
    assert step(2, 1, steps=16) < step(2, 1, steps=64) < step(2, 1, steps=512)
    assert step(12, 2, steps=16) == step(12, 2)  # sums enough
    assert step(8, 1, lines=2) > step(8, 1)
    rows, vectors = np.array([6.0, 6.0]), np.array([3.0, 4.0])
    assert stored_cycles(rows, vectors).tolist() == [18.0, 0.0]
