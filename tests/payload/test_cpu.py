"""The payload's text and the panels that threads share it by."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.epilogues import EPILOGUES
from tuner.core.dtypes import INPUT_DTYPES
from tuner.core.errors import UsageError
from tuner.core.interfaces import Partition
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import (
    LAYOUTS,
    Problem,
)
from tuner.core.problem_classes import MatmulProblem
from tuner.payload import cpu
from tuner.payload.cpu import payload_mlir
from tuner.payload.partitions import PARTITIONS_COMMENT, partition, partitions_comment, partitions_in

SIZE = st.integers(1, 300)
SPLITS = st.sampled_from(("none", "m", "n"))
KINDS = list(itertools.product(INPUT_DTYPES, LAYOUTS, EPILOGUES))


@given(st.integers(1, 9), SIZE, SIZE, st.integers(1, 8), SPLITS, st.integers(1, 70))
def test_panels_cover_c_exactly_once_and_a_script_reports_them(
    batch: int, m: int, n: int, parts: int, split: str, multiple: int
) -> None:
    problem = BatchMatmul(batch, m, n, 3)
    partitions = partition(problem, parts, split, multiple)
    count = np.zeros((batch, m, n), int)
    for part in partitions:
        assert min(part.m, part.n, part.matrices) >= 1
        matrices = count[part.first : part.first + part.matrices]
        matrices[:, part.row : part.row + part.m, part.column : part.column + part.n] += 1
    assert (count == 1).all()
    assert sum(part.m * part.n * part.matrices for part in partitions) == count.size  # none reaches outside
    assert len(partitions) <= parts
    assert partitions_in(f"// first\n{partitions_comment(partitions)}\nmodule {{}}\n", problem) == partitions


@given(SIZE, SIZE, st.integers(1, 8), SPLITS, st.integers(1, 70))
def test_panels_but_the_last_are_whole_tiles_and_share_a_function_exactly_when_they_are_equal(
    m: int, n: int, parts: int, split: str, multiple: int
) -> None:
    partitions = partition(Matmul(m, n, 3), parts, split, multiple)
    extents = [part.m if split == "m" else part.n for part in partitions[:-1]]
    assert all(extent % multiple == 0 for extent in extents)
    assert len({part.entry for part in partitions}) == len({(part.m, part.n) for part in partitions})


def test_whole_matrices_are_dealt_out_evenly_and_a_script_without_panels_is_for_the_whole() -> None:
    assert partitions_in("module {}\n", Matmul(5, 7, 3)) == (Partition(cpu.ENTRY, 0, 0, 5, 7),)
    assert partitions_in("module {}\n", BatchMatmul(4, 5, 7, 3)) == (Partition(cpu.ENTRY, 0, 0, 5, 7, 0, 4),)
    dealt = partition(BatchMatmul(5, 8, 8, 8), 3, "none", 1)
    assert [(part.first, part.matrices) for part in dealt] == [(0, 1), (1, 2), (3, 2)]
    assert [part.called for part in dealt] == ["matmul", "matmul_x2", "matmul_x2"]


ONE, BATCH = Matmul(5, 7, 3), BatchMatmul(4, 5, 7, 3)


@pytest.mark.drawn(16)
@pytest.mark.parametrize(
    ("problem", "comment", "message"),
    [
        (ONE, "matmul 0 0 5", r"found 'matmul 0 0 5', allowed 'entry row column m n'"),
        (ONE, "matmul 0 0 -5 7", r"found 'matmul 0 0 -5 7', allowed 'entry row column m n'"),
        (ONE, "", r"found '', allowed 'entry row column m n'"),
        (ONE, "matmul 0 0 6 7", r"allowed within C, 5 x 7"),  # would be written out of bounds
        (ONE, "matmul 0 1 5 7", r"allowed within C, 5 x 7"),
        (ONE, "matmul 0 0 0 7", r"allowed within C, 5 x 7"),
        (ONE, "a 0 0 3 7; b 2 0 3 7", r"two overlap"),
        (ONE, "a 0 0 3 7; b 3 0 1 7", r"cover 28 elements of C, not all 35"),
        (ONE, "a 0 0 3 7; b 1 2 2 5; c 3 0 1 4", r"two overlap"),  # 35 elements all the same
        (ONE, "a 0 0 3 7; a 3 0 2 7", r"'a' has two sizes"),
        (ONE, "; ".join(["a 0 0 1 1"] * 1025), r"found 1025, allowed 1024"),
        (BATCH, "a 0 0 5 7 0 2", r"cover 70 elements of C, not all 140"),
        (BATCH, "a 0 0 5 7 0 3; a 0 0 5 7 2 2", r"two overlap"),
        (BATCH, "a 0 0 5 7 1 4", r"allowed within a batch of 4"),
        (BATCH, "a 0 0 5 7 0 0", r"allowed within a batch of 4"),
        (BATCH, "a 0 0 5 7 0", r"allowed 'entry row column m n \[first matrices\]'"),
    ],
    ids=lambda each: each.shape if isinstance(each, Problem) else str(each)[:40],
)
def test_panels_that_are_none_of_a_problem_are_refused(problem: Problem, comment: str, message: str) -> None:
    with pytest.raises(UsageError, match=rf"^script: panels: .*{message}"):
        partitions_in(f"{PARTITIONS_COMMENT}{comment}\nmodule {{}}\n", problem)


@pytest.mark.parametrize(("dtype", "layout", "epilogue"), KINDS)
@given(SIZE, SIZE, SIZE, SPLITS, st.integers(2, 4))
def test_offsets_lead_to_the_panels_part_of_each_array(
    dtype: str, layout: str, epilogue: str, m: int, n: int, k: int, split: str, parts: int
) -> None:
    problem = MatmulProblem("batch_matmul", (m, n, k), dtype, layout, epilogue, batch=3)
    a, b, c = (np.arange(np.prod(s)).reshape(s) for s in (problem.a_shape, problem.b_shape, problem.c_shape))
    bias = np.arange(n)
    for part in partition(problem, parts, split, 8):
        of_a = (a.swapaxes(1, 2) if layout == "tn" else a)[part.first, part.row, 0]
        of_b = (b.swapaxes(1, 2) if layout == "nt" else b)[part.first, 0, part.column]
        of_bias = (bias[part.column],) if epilogue == "bias_relu" else ()
        of_c = c[part.first, part.row, part.column]
        assert cpu.element_offsets(problem, part) == (of_a, of_b, *of_bias, of_c)


def test_a_matrix_ends_where_the_next_begins_and_a_panel_walks_by_the_strides_of_the_whole() -> None:
    problem = BatchMatmul(3, 4, 5, 6, "bf16", epilogue="bias_relu")
    sizes = (problem.one_matmul.a_shape, problem.one_matmul.b_shape)
    assert cpu.matrix_bytes(problem) == (*(2 * np.prod(each) for each in sizes), 0, 4 * 4 * 5)
    text = payload_mlir(Matmul(8, 64, 16), partition(Matmul(8, 64, 16), 2, "n", 32))
    assert text.count("func.func") == 1  # equal panels
    assert "%a: memref<8x16xf32>," in text
    assert "%b: memref<16x32xf32, strided<[64, 1]>>," in text
    assert "%c: memref<8x32xf32, strided<[64, 1]>>)" in text
