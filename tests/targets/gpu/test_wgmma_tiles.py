"""Hopper's strategy with several tiles of C per block: the ring goes on from tile to tile, what breaks it."""

import re

import numpy as np
import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint
from tests.simulator.ptx.mutations import Edit, change
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
from tuner.core.problem import Matmul
from tuner.targets.gpu import simulator

pytestmark = pytest.mark.mlir

POINTS = (
    (point(Matmul(131, 72, 136, "f16", "nn", "bias_relu", "f16"), tiles=3, stages=3), 1),
    (point(Matmul(72, 136, 40, "tf32", "nt"), tiles=2, block_k=32, cluster="1x2"), 2),
    (point(Matmul(328, 72, 72, "bf16", "tn"), tiles=3, group=4, cluster="2x1"), None),
    (point(Matmul(136, 328, 8, "f16"), tiles=4, group=4, bands="columns"), None),
)


@pytest.mark.parametrize(("one", "seed"), POINTS, ids=by_name)
def test_a_point_of_several_tiles_per_block_is_right_and_free_of_races(
    one: GpuPoint, seed: int | None
) -> None:
    check(one, seed)


@pytest.mark.parametrize(("cluster", "grid"), [("1x1", (128, 1, 1)), ("2x1", (64, 2, 1))])
def test_the_large_tile_keeps_its_loop_and_its_registers(cluster: str, grid: tuple[int, int, int]) -> None:
    program = point(
        LARGE.problem, **{**dict(LARGE.candidate.choices), "tiles": 4, "cluster": cluster}
    ).program()
    (launch,) = program.launches
    assert (launch.grid, launch.tile_grid) == (grid, (16, 32))
    assert program.ptx.count("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16") == 8  # first tile, loop
    assert "call" not in program.ptx
    require_large_tile_kept(program)


def test_sampled_blocks_are_judged_by_all_of_their_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator, "WHOLE_S", 0.0)
    monkeypatch.setattr(simulator, "SAMPLE_S", 0.0)
    one = point(Matmul(320, 320, 8, "f16"), tiles=4)  # 25 tiles, 7 blocks
    verdict = simulator.SimulatorEvaluator().verify(one.problem, one.program(), np.random.default_rng(0))
    assert "matmul_kernel: 3 of 7 blocks simulated" in verdict.notes
    assert verdict.elements == (4 + 4 + 3) * 64 * 64


# Four tiles of k through three stages: each tile of C begins at another place of the ring.
BROKEN = point(Matmul(192, 128, 200, "f16"), stages=3, tiles=3)
RELEASE = r"mbarrier\.arrive\.shared\.b64[^;]*;"
# What each loop over tiles of C begins with, and its stage and parity.
FETCHING = r"(?s)(elect\.sync.*?\n\$\w+:)(.*?shl\.b32\s+%r\d+, (%r\d+), 3;.*?P1, \[%r\d+\], (%r\d+), )"
MULTIPLYING = r"(?s)(mov\.b32\s+(%r\d+), 0;.*?mov\.b32\s+(%r\d+), \2;\s+bra\.uni\s+(\$\w+);.*?\n\4:)"
NEXT, ANY_LEFT = r"(add\.s32\s+%r\d+, %r\d+), 2;", r"(setp\.lt\.u32\s+%p\d+, %r\d+), 4;"

MUTATIONS: tuple[tuple[str, Edit], ...] = (
    ("the producer begins each tile at the first stage", change(FETCHING, r"\1 mov.b32 \3, 0;\2")),
    ("the producer forgets which round it is", change(FETCHING, r"\1 mov.b32 \4, 1;\2")),
    ("consumers begin each tile at the first stage", change(MULTIPLYING, r"\1 mov.b32 \2, 0;")),
    ("consumers forget which round it is", change(MULTIPLYING, r"\1 mov.b32 \3, 0;")),
    ("the last stage of a tile is not released", only(-1, RELEASE, "")),
    ("the last stage of a tile is released twice", only(-1, f"({RELEASE})", r"\1 \1")),
    ("a tile is stored while it is summed", only(0, r"(wgmma\.wait_group\S+\s+)0;", r"\g<1>1;")),
    ("a tile goes on with the sums of the one before", only(0, r"(setp\.ne\.b32 p), 0, 0;", r"\1, 1, 0;")),
    ("both blocks make the same tiles", change(NEXT, r"\1, 1;")),
    ("the producer fetches other tiles", only(-1, NEXT, r"\1, 1;")),
    ("the producer fetches a tile too many", only(-1, ANY_LEFT, r"\1, 6;")),
    ("the producer fetches a tile too few", only(-1, ANY_LEFT, r"\1, 2;")),
    ("consumers leave out a tile", only(0, ANY_LEFT, r"\1, 2;")),
)  # fmt: skip


@pytest.fixture(scope="module")
def healthy() -> KernelProgram:
    return BROKEN.program()


@pytest.mark.parametrize("seed", [None, 1])
def test_the_kernel_that_is_broken_below_is_right(seed: int | None, healthy: KernelProgram) -> None:
    assert len(re.findall(NEXT, healthy.ptx)) == len(re.findall(ANY_LEFT, healthy.ptx)) == 2
    is_right, why = outcome(BROKEN, healthy, seed)
    assert is_right, why


@pytest.mark.parametrize(("name", "edit"), MUTATIONS, ids=[name for name, _ in MUTATIONS])
def test_a_broken_kernel_is_noticed(name: str, edit: Edit, healthy: KernelProgram) -> None:
    assert is_noticed(BROKEN, healthy, edit)
