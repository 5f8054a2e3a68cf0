import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.search.cost_model.cpu import step_cycles, stored_cycles

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
