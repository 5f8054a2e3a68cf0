"""Hopper's strategy with C by 16 bytes of a row per lane, or by TMA: right, free of races; what breaks it."""

from dataclasses import replace

import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint
from tests.simulator.ptx.mutations import Edit, change, drop
from tests.targets.gpu.wgmma_points import (
    LARGE,
    by_name,
    check,
    is_noticed,
    only,
    outcome,
    point,
    require_large_tile_kept,
)
from tuner.core.kernel_program import KernelProgram
from tuner.core.problem import BatchMatmul, Matmul

pytestmark = pytest.mark.mlir

POINTS = (
    (point(Matmul(70, 72, 72, "f16", "nn", "bias_relu", "f16"), stores="tma", tiles=3), 1),
    (
        point(
            Matmul(136, 200, 40, "bf16", "nt", "bias_relu", "bf16"),
            stores="tma",
            cluster="2x1",
            block_m=128,
            block_n=128,
            consumers=2,
        ),
        2,
    ),
    (point(BatchMatmul(2, 136, 72, 8, "f16", "tn", output="f16"), stores="tma", block_m=128), None),
    (point(Matmul(67, 128, 72, "f16", "nn", "bias_relu", "f16"), stores="exchange", tiles=2), 3),
    (point(Matmul(66, 64, 40, "tf32", "nt"), stores="exchange", block_k=32), None),
)


@pytest.mark.parametrize(("one", "seed"), POINTS, ids=by_name)
def test_a_point_is_right_and_free_of_races(one: GpuPoint, seed: int | None) -> None:
    check(one, seed)


@pytest.mark.parametrize(
    ("stores", "instruction", "count"),
    [("tma", "cp.async.bulk.tensor.2d.global", 4), ("exchange", "v4.b32", 16)],
)
def test_the_large_tile_keeps_its_registers(stores: str, instruction: str, count: int) -> None:
    problem = replace(LARGE.problem, output="f16")
    program = point(problem, **{**dict(LARGE.candidate.choices), "stores": stores}).program()
    assert program.ptx.count(instruction) == count
    assert ("c_map0" in program.launches[0].arguments) == (stores == "tma")
    require_large_tile_kept(program)


# Each warp stores four boxes, the later two where the first ones were.
BROKEN = point(Matmul(64, 256, 8, "f16", output="f16"), stores="tma", block_n=128, tiles=2)
BOX = r"cp\.async\.bulk\.tensor\.2d\.global[^;]*;"
PLACE = r"(2d\.global\.\S+\s+\[%rd\d+, \{)"
FREED = r"(cp\.async\.bulk\.wait_group\.read\s+)1;"
FILLED = r"(fence\.proxy\.async\S*;\s+)bar\.warp\.sync\s+-1;"

MUTATIONS: tuple[tuple[str, Edit], ...] = (
    ("a box is filled while it is stored", change(FREED, r"\g<1>2;")),
    ("other lanes do not wait until a box is free", only(0, r"bar\.warp\.sync\s+-1;", "")),
    ("the TMA does not see what was filled", drop(r"fence\.proxy\.async\S*;")),
    ("a box is stored while others fill it", change(FILLED, r"\1")),
    ("the block ends before boxes are read", drop(r"cp\.async\.bulk\.wait_group\s+0;")),
    ("stores are not committed", drop(r"cp\.async\.bulk\.commit_group;")),
    ("a box is not stored", only(-1, BOX, "")),
    ("a box goes to its row for a column", change(rf"{PLACE}(%r\d+), (%r\d+)", r"\1\3, \3")),
    ("rows and columns are exchanged", change(rf"{PLACE}(%r\d+), (%r\d+)", r"\1\3, \2")),
    ("all lanes store", change(r"elect\.sync\s+(%r\d+)\|(%p\d+), -1;", r"mov.pred \2, -1;")),
    ("halves of rows are exchanged", change(r"(stmatrix[^{]*\{%r\d+), (%r\d+), (%r\d+)", r"\1, \3, \2")),
    ("matrices are transposed", change(r"(stmatrix\S+x4)(\S+)", r"\1.trans\2")),
    ("lines are not swizzled", only(0, r"xor\.b32(\s+%r\d+), (%r\d+), %r\d+;", r"mov.b32\1, \2;")),
    ("warps share a box", change(r"shl\.b32(\s+%r\d+), (%r\d+), 12;", r"shl.b32\1, \2, 11;")),
)  # fmt: skip


@pytest.fixture(scope="module")
def healthy() -> KernelProgram:
    return BROKEN.program()


@pytest.mark.parametrize("seed", [None, 1])
def test_the_kernel_that_is_broken_below_is_right(seed: int | None, healthy: KernelProgram) -> None:
    is_right, why = outcome(BROKEN, healthy, seed)
    assert is_right, why


def test_boxes_are_filled_without_bank_conflicts(healthy: KernelProgram) -> None:
    _, _, (simulation,) = BROKEN.run(healthy)
    assert any(each.instruction.startswith("stmatrix") for each in simulation.conflicts)
    assert simulation.conflict_ratio == 1.0


@pytest.mark.parametrize(("name", "edit"), MUTATIONS, ids=[name for name, _ in MUTATIONS])
def test_a_broken_kernel_is_noticed(name: str, edit: Edit, healthy: KernelProgram) -> None:
    assert is_noticed(BROKEN, healthy, edit)
