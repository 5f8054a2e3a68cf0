"""Products of groups of rows by tensor cores: right for any offsets, without races, nothing else written."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.default_suite import ALL
from tests.gpu.ptxsim.ptx.matmuls import Edit, change
from tests.gpu.target.strategies.points import (
    MMA_SYNC,
    compiled,
    is_feasible,
    is_noticed,
    mma_sync,
    require_right,
)
from tests.support.gpu_point import GpuPoint, feasible_set
from tests.targets.evaluation import fails
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import Stage
from tuner.core.interfaces import Artifact
from tuner.core.matmul import GroupedMatmul
from tuner.core.problem import Problem
from tuner.gpu.ptxsim.target.evaluator import SimulatorEvaluator, simulate_program
from tuner.gpu.target.compiler import Ptxas
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base, with_special_numbers
from tuner.payload.group_offsets import offsets_of
from tuner.payload.reference import Array
from tuner.space.file.reading import first_rows, load_space_file
from tuner.space.file.yaml import default_space_file

pytestmark = pytest.mark.mlir


def point(problem: Problem, **knobs: Any) -> GpuPoint:
    knobs.setdefault("group", 1)
    return mma_sync(problem, **knobs)


NT = GroupedMatmul(4, 100, 130, 96, layout="nt")
POINTS = (
    point(NT),
    point(GroupedMatmul(4, 100, 72, 80, "f16", output="f16"), depth=0),
    point(GroupedMatmul(3, 70, 64, 64, output="bf16"), exchange=1, block_m=32, prefetch=1),
    point(GroupedMatmul(1, 64, 64, 64, layout="nt")),  # one group, whole tiles
    point(GroupedMatmul(12, 8, 66, 40, "f16", "nt"), block_m=32, depth=1),  # more groups than rows
    point(GroupedMatmul(3, 150, 65, 33), depth=0, block_m=96),  # rows of odd length
)


@pytest.mark.parametrize("one", POINTS, ids=str)
def test_groups_of_all_sizes_are_right_without_races(one: GpuPoint) -> None:
    assert is_feasible(one)
    require_right(one, seed=5)


def require_right_for(one: GpuPoint, offsets: Array) -> None:
    """Asserts that C is right for these offsets, and untouched in rows of no group."""
    rng = np.random.default_rng(2)
    base = replace(draw_base(one.problem, rng), offsets=(offsets,))
    inputs = draw(one.problem, base, rng)
    c = inputs.output_before
    simulations = simulate_program(compiled(one), inputs.named | {"c": c})
    verdict, worst = compare(inputs, c)
    assert verdict.max_error <= 1.0, worst
    assert [simulation.hazards for simulation in simulations] == [()]


EDGES = {
    "all rows in one group": [0, 100, 0, 0],
    "no group has rows": [0, 0, 0, 0],
    "whole tiles": [64, 0, 32, 0],
    "single rows": [1, 1, 1, 1],
    "the last group alone": [0, 0, 0, 7],
}


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("first", [0, 1])
def test_groups_at_the_edges_are_right(name: str, first: int) -> None:
    counts = np.array(EDGES[name])
    require_right_for(POINTS[0], offsets_of(counts, first if counts.sum() < 100 else 0))


@settings(max_examples=8)
@given(st.lists(st.integers(0, 100), min_size=5, max_size=5))
def test_any_offsets_are_right_and_rows_of_no_group_stay(numbers: list[int]) -> None:
    require_right_for(POINTS[0], np.sort(np.array(numbers, np.int32)))


def test_special_numbers_of_a_group_are_right() -> None:
    one = POINTS[0]
    rng = np.random.default_rng(4)
    inputs = with_special_numbers(draw(one.problem, draw_base(one.problem, rng), rng), rng)
    c = inputs.output_before
    simulate_program(compiled(one), inputs.named | {"c": c})
    verdict, worst = compare(inputs, c)
    assert verdict.max_error <= 1.0, worst


SMALL = point(GroupedMatmul(3, 70, 64, 64), block_m=32)


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("another matrix", change(r"selp\.b64(\s+%rd\d+), 8192, 0,", r"selp.b64\1, 0, 0,")),
        ("tiles that round down", change(r"(add\.s64\s+%rd\d+, %rd\d+), 31;", r"\1, 0;")),
        ("rows of the group after", change(r"(setp\.lt\.s64\s+%p\d+, %rd\d+), %rd\d+;", r"\1, 70;")),
        ("another offset", change(r"(ld\.global\.s32\s+%rd\d+, \[%rd\d+)\+4\]", r"\1+8]")),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_broken_kernel_of_groups_is_noticed(name: str, edit: Edit) -> None:
    assert is_noticed(SMALL, edit), name


LARGE = GroupedMatmul(64, 4096, 1024, 1024, layout="nt")
OF_LARGE = point(LARGE, block_m=128, block_n=128, block_k=64, warps_m=2, warps_n=2, depth=3)


def verified(program: KernelCode, seed: int = 1) -> tuple[float, tuple[str, ...]]:
    evaluator = SimulatorEvaluator()
    loaded = evaluator.load(LARGE, Artifact(program, "", (), (), None))
    verdict = evaluator.verify(LARGE, loaded, np.random.default_rng(seed))
    return verdict.max_error, verdict.notes


@pytest.mark.slow
def test_a_sample_of_a_large_problem_has_few_rows_of_few_groups() -> None:
    error, notes = verified(compiled(OF_LARGE))
    assert error <= 1.0
    assert "C: 96 rows in groups, 384 columns compared" in notes


@pytest.mark.slow
def test_a_sample_notices_wrong_rows_and_columns_that_are_left_out() -> None:
    program = compiled(OF_LARGE)
    launch = program.launches[0]
    columns = replace(launch, grid=(launch.grid[0] - 1, *launch.grid[1:]))
    with fails(Stage.VERIFY, r"wrote columns \[.*\], expected \[.*\]"):
        verified(replace(program, launches=(columns,)))


def test_the_usual_tile_spills_nothing(ptxas: Ptxas) -> None:
    (resources,) = ptxas.assemble(compiled(OF_LARGE)).resources
    assert resources.spilled_bytes == 0


def test_a_search_begins_with_whole_sums_in_the_order_of_tiles() -> None:
    feasible = feasible_set(LARGE, MMA_SYNC)
    rows = first_rows(load_space_file(default_space_file()), feasible)
    knobs = [dict(feasible.candidate(row).choices) for row in rows]
    assert len(knobs) >= 2
    assert {(each["group"], each["splits"], each["pack"]) for each in knobs} == {(1, 1, 0)}


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("knobs", [{"group": 8}, {"splits": 2, "split_by": "workspace"}], ids=str)
def test_other_orders_of_blocks_and_parts_of_sums_are_not_feasible(knobs: dict[str, int | str]) -> None:
    assert not is_feasible(point(LARGE, **knobs))
