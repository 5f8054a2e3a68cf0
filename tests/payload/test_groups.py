"""A product of groups of rows: its offsets and reference, what these show, its payload, what refuses it."""

import itertools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tuner
from tests.default_suite import ALL
from tuner.core.errors import UsageError
from tuner.core.matmul import GroupedMatmul
from tuner.core.numpy_types import widened
from tuner.core.problem import Problem
from tuner.core.problem_documents import ProblemDocument
from tuner.core.problem_text import shape_text, tune_command
from tuner.core.queries import TaskQuery
from tuner.db.rows import problem_of, problem_row
from tuner.gpu.payload.scratch import scratch_in
from tuner.payload.comparison import changed_inputs, compare
from tuner.payload.drawing import draw, draw_base, negated, with_special_numbers
from tuner.payload.group_offsets import draw_offsets, few_rows, groups_of_rows, offsets_of
from tuner.payload.inputs import draw_extremes
from tuner.payload.reference import Flip, Float64, Inputs, reference_bytes

PROBLEMS = (
    GroupedMatmul(5, 100, 30, 20, layout="nt"),
    GroupedMatmul(1, 10, 30, 20),
    GroupedMatmul(40, 9, 7, 24, "f16", "nt", "f16"),
)


def drawn(problem: Problem) -> Inputs:
    rng = np.random.default_rng(7)
    return draw(problem, draw_base(problem, rng), rng)


def by_groups(inputs: Inputs) -> Float64:
    """Returns the product of each group's rows and matrix, as stored; NaN in rows of no group."""
    a, b, offsets, *_ = inputs.arrays
    result = np.full((len(a), inputs.problem.sizes[1]), np.nan)
    for group, (first, end) in enumerate(itertools.pairwise(offsets)):
        matrix = widened(b[group]).astype(float)
        of_layout = matrix.T if inputs.problem.layout == "nt" else matrix
        with np.errstate(invalid="ignore"):  # infinity times 0
            result[first:end] = widened(a[first:end]).astype(float) @ of_layout
    return result


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.key)
def test_the_reference_multiplies_the_rows_of_each_group_by_its_matrix(problem: Problem) -> None:
    rng = np.random.default_rng(3)
    first = drawn(problem)
    others = draw_extremes(problem, rng), negated(drawn(problem), (first.a.copy(), first.b.copy()))
    for inputs in (first, *others, with_special_numbers(drawn(problem), rng)):
        result = by_groups(inputs)
        np.testing.assert_allclose(inputs.expected, result, rtol=1e-12, atol=1e-12)
        part, _ = inputs.tile(slice(1, 4), slice(2, 5))
        np.testing.assert_allclose(part, result[1:4, 2:5], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("array", ["A", "B"])
def test_a_flipped_sign_changes_the_rows_of_its_group_alone(array: str) -> None:
    inputs = drawn(PROBLEMS[0])
    offsets = inputs.base.offsets[0]
    group = int(np.argmax(np.diff(offsets)))
    first = int(offsets[group])
    if array == "A":
        flipped = replace(inputs, flip=Flip("A", first + 2, 5))
        inputs.a[first + 2, 5] *= -1
        rows = {first + 2}
    else:
        flipped = replace(inputs, flip=Flip("B", 5, 3, group))
        inputs.b[group, 3, 5] *= -1
        rows = set(range(first, int(offsets[group + 1])))
    np.testing.assert_allclose(flipped.expected, by_groups(inputs), rtol=1e-12)
    assert set(np.flatnonzero((flipped.expected != inputs.expected).any(axis=1))) == rows


def test_rows_by_another_matrix_and_rows_outside_of_groups_are_seen() -> None:
    inputs = drawn(PROBLEMS[0])
    offsets = inputs.base.offsets[0]
    moved = np.maximum(offsets - (np.arange(len(offsets)) == 2), 0).astype(np.int32)
    other = replace(inputs, base=replace(inputs.base, offsets=(moved,)))
    verdict, _ = compare(inputs, by_groups(other).astype(np.float32))
    assert verdict.max_error > 1.0
    part = offsets_of(np.array([3, 0, 20, 1, 6]), 4)
    few = replace(inputs, base=replace(inputs.base, offsets=(part,)))
    result = by_groups(few).astype(np.float32)
    assert compare(few, result)[0].max_error <= 1.0
    result[3, 0] = 0.0  # a row before the first group
    assert compare(few, result)[0].max_error > 1.0


@given(st.integers(1, 70), st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_drawn_offsets_have_all_rows_in_groups_and_the_same_sizes_in_each_draw(
    groups: int, rows: int, seed: int
) -> None:
    drawn_, again = (draw_offsets(groups, rows, np.random.default_rng(seed + more)) for more in (0, 1))
    assert (drawn_[0], drawn_[-1], len(drawn_)) == (0, rows, groups + 1)
    counts = np.diff(drawn_)
    assert counts.min() >= 0
    assert sorted(counts) == sorted(np.diff(again))
    if groups >= 3:
        assert {0, 1} <= set(counts.tolist())


@given(st.integers(1, 70), st.integers(1, 300), st.integers(1, 96), st.integers(0, 2**32 - 1))
def test_few_rows_are_in_at_most_three_groups_anywhere(groups: int, rows: int, used: int, seed: int) -> None:
    offsets = few_rows(groups, rows, used, np.random.default_rng(seed))
    counts = np.diff(offsets)
    assert (len(offsets), int(counts.min()) >= 0) == (groups + 1, True)
    assert 0 <= offsets[0] <= offsets[-1] <= rows
    assert int(counts.sum()) == min(rows, used)
    assert np.count_nonzero(counts) <= 3
    assert 1 in counts or groups == 1 or min(rows, used) == 1


def test_rows_before_and_after_all_groups_have_none() -> None:
    groups = groups_of_rows(np.array([2, 2, 5, 6], np.int32), np.arange(8))
    assert groups.tolist() == [-1, -1, 1, 1, 1, 2, -1, -1]


def test_changed_offsets_are_named() -> None:
    inputs = drawn(PROBLEMS[0])
    a, b, offsets = inputs.arrays
    assert changed_inputs(inputs, (a, b, offsets + 1)) == "offsets"


def test_the_problem_is_the_same_from_document_row_and_command() -> None:
    problem = GroupedMatmul(8, 256, 512, 384, layout="nt", output="bf16")
    assert problem.key == "grouped_matmul 8x256x512x384 bf16->bf16 nt none"
    assert [(argument.name, argument.shape) for argument in problem.arguments] == [
        ("a", (256, 384)),
        ("b", (8, 512, 384)),
        ("offsets", (9,)),
        ("c", (256, 512)),
    ]
    assert problem.flop == 2 * 256 * 512 * 384
    assert problem.bytes == 2 * (256 * 384 + 8 * 512 * 384 + 256 * 512) + 9 * 4
    assert reference_bytes(problem) > 8 * 8 * 512 * 384  # of all matrices in float64
    assert ProblemDocument.of(problem).problem == problem
    assert problem_of(problem_row(problem)) == problem
    assert eval(repr(problem), {"GroupedMatmul": GroupedMatmul}) == problem
    task = TaskQuery(operation=problem.operation, shape=problem.shape, dtype="bf16", layout="nt")
    assert tune_command(task) == "tuner tune grouped_matmul 8x256x512x384 --dtype bf16 --layout nt"
    assert shape_text("grouped_matmul", "8X256x512x384") == problem.shape


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "f32"}, "dtype of grouped_matmul: found 'f32', allowed f16, bf16"),
        ({"layout": "tn"}, "layout of grouped_matmul: found 'tn', allowed nn, nt"),
        ({"output": "f16"}, "output dtype: found 'f16', allowed f32 or bf16 for dtype bf16"),
        ({"groups": 0}, "groups: found 0, allowed 1..65535"),
        ({"k": 0}, "size k: found 0"),
    ],
)
def test_what_no_grouped_product_has_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        GroupedMatmul(**{"groups": 4, "m": 64, "n": 64, "k": 64, **options})


def test_an_epilogue_is_refused() -> None:
    with pytest.raises(UsageError, match="epilogue of grouped_matmul: found 'relu', allowed none"):
        replace(PROBLEMS[0], epilogue="relu")


def test_buffers_of_scripts_are_refused() -> None:
    with pytest.raises(UsageError, match="script: packed: allowed without groups of rows only"):
        scratch_in("// packed: a\n", PROBLEMS[0])


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("cpu", "matmul_gpu_mma_sync: instruction set"),
        ("simulator:sm_75", "sm_75"),
    ],
)
def test_targets_without_a_kernel_are_refused_in_one_line(target: str, reason: str, tmp_path: Any) -> None:
    with pytest.raises(UsageError, match=reason) as refused:
        tuner.tune(PROBLEMS[0], target, trials=1, db=f"{tmp_path}/none.db")
    assert "\n" not in refused.value.message
    assert len(refused.value.message) < 300
