"""Hopper's strategy with parts of K by blocks of their own: right, the same in any order, what breaks it."""

import numpy as np
import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint
from tests.simulator.ptx.mutations import Edit, change, drop
from tests.targets.gpu.wgmma_points import (
    LARGE,
    by_name,
    check,
    is_noticed,
    only,
    point,
    require_large_tile_kept,
)
from tuner.core.kernel_program import KernelProgram
from tuner.core.problem import BatchMatmul, Matmul
from tuner.simulator.ptx.launch import run_program

pytestmark = pytest.mark.mlir

POINTS = (  # K of no whole tiles: zeros follow
    (point(Matmul(60, 56, 456, "f16", "nn", "bias_relu", "f16"), splits=4), 1),
    (point(Matmul(60, 72, 400, "i8", "nt", "bias_relu"), splits=2, block_k=128, cluster="1x2"), 2),
    (point(BatchMatmul(2, 56, 64, 200, "bf16", "tn", output="bf16"), splits=2), None),
)


@pytest.mark.parametrize(("one", "seed"), POINTS, ids=by_name)
def test_a_point_is_right_and_free_of_races(one: GpuPoint, seed: int | None) -> None:
    check(one, seed)


def test_the_large_tile_keeps_its_registers() -> None:
    knobs = {**dict(LARGE.candidate.choices), "group": 1, "splits": 4}
    program = point(Matmul(512, 512, 16384, "f16"), **knobs).program()
    assert [(launch.kernel, launch.grid) for launch in program.launches] == [
        ("matmul_kernel", (2, 4, 4)),
        ("reduce_kernel", (8, 64, 1)),
    ]
    require_large_tile_kept(program)


BROKEN = point(Matmul(64, 64, 256, "f16"), splits=2)


@pytest.fixture(scope="module")
def healthy() -> KernelProgram:
    return BROKEN.program()


def test_parts_are_added_up_to_the_same_bits_in_any_order_of_blocks(healthy: KernelProgram) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 256), (256, 64)))
    found = []
    for seed in (None, 1, 2):
        c = np.full((64, 64), np.nan, np.float32)
        run_program(healthy, {"a": a, "b": b, "c": c}, schedule_seed=seed)
        found.append(c)
    assert all(np.array_equal(found[0], other) for other in found[1:])


PART_OF_K = r"(%r\d+, %ctaid\.z;\s+shl\.b32\s+%r\d+, %r\d+), 7;"
PART_OF_SUMS = r"(%r\d+, %ctaid\.z;\s+shl\.b32\s+%r\d+, %r\d+), 12;"
MUTATIONS: tuple[tuple[str, Edit], ...] = (
    ("parts overlap", change(PART_OF_K, r"\1, 6;")),
    ("parts begin too late", change(PART_OF_K, r"\1, 8;")),
    ("all blocks sum the first part", only(-1, r"(mov\.u32\s+%r\d+), %ctaid\.z;", r"\1, 0;")),
    ("parts are stored in one place", only(0, r"(mov\.u32\s+%r\d+), %ctaid\.z;", r"\1, 0;")),
    ("parts are stored partly over others", change(PART_OF_SUMS, r"\1, 11;")),
    ("the second part is not added", change(r"\+16384\]", "]")),
    ("nothing is added up", drop(r"st\.global\.v4\.b32[^;]*;")),
)


@pytest.mark.parametrize(("name", "edit"), MUTATIONS, ids=[name for name, _ in MUTATIONS])
def test_a_broken_kernel_is_noticed(name: str, edit: Edit, healthy: KernelProgram) -> None:
    assert is_noticed(BROKEN, healthy, edit)
