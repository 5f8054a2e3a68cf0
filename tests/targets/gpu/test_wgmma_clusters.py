"""Hopper's strategy in clusters: shared tiles by multicast, releases across blocks, what breaks them."""

import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint
from tests.simulator.ptx.mutations import Edit, change, drop
from tests.targets.gpu.wgmma_points import (
    LARGE,
    WAIT,
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

pytestmark = pytest.mark.mlir

POINTS = (
    (point(Matmul(192, 64, 256, "f16"), cluster="2x1", stages=3), None),
    (point(Matmul(131, 200, 104, "f16", epilogue="bias_relu", output="f16"), cluster="1x2"), 1),
    (point(Matmul(72, 68, 136, "bf16", "nt", "bias_relu", "bf16"), cluster="2x1", block_k=128), 2),
    (point(Matmul(72, 200, 200, "bf16", "tn"), cluster="1x2", block_n=128, stages=4), 3),
    (point(Matmul(130, 70, 100, "tf32", "nt"), cluster="2x1", block_k=32, stages=3), 4),
    (point(Matmul(264, 136, 72, "f16", "nt"), cluster="1x2", block_m=128, consumers=2), 5),
    (point(Matmul(328, 136, 8, "f16", "nt"), cluster="2x1", group=4), None),
    (point(Matmul(328, 136, 8, "f16"), cluster="1x2", group=4), None),
    (point(Matmul(136, 328, 8, "f16"), cluster="2x1", group=4, bands="columns"), None),
    (point(Matmul(136, 328, 8, "f16"), cluster="1x2", group=4, bands="columns"), None),
)


@pytest.mark.parametrize(("one", "seed"), POINTS, ids=by_name)
def test_a_point_in_clusters_is_right_and_free_of_races(one: GpuPoint, seed: int | None) -> None:
    check(one, seed)


def clustered(cluster: str) -> KernelProgram:
    return point(LARGE.problem, **{**dict(LARGE.candidate.choices), "cluster": cluster}).program()


@pytest.mark.parametrize(
    ("cluster", "size", "boxes", "multicasts"),
    [("2x1", "1, 2, 1", [(64, 128), (64, 32)], 4), ("1x2", "2, 1, 1", [(64, 64), (64, 64)], 1)],
)
def test_the_large_tile_copies_halves_of_what_blocks_share(
    cluster: str, size: str, boxes: list[tuple[int, int]], multicasts: int
) -> None:
    program = clustered(cluster)
    assert f".reqnctapercluster {size}" in program.ptx
    assert program.ptx.count("cp.async.bulk.tensor.2d") == 5
    assert program.ptx.count(".multicast::cluster") == multicasts
    (launch,) = program.launches
    assert [each.layout.box for each in launch.tensor_maps] == boxes
    require_large_tile_kept(program)


# Of so many steps that LLVM keeps the loops.
BROKEN = point(Matmul(128, 64, 1544, "f16"), cluster="2x1", stages=3)
COPY = r"(cp\.async\.bulk\.tensor\.2d\S+?)\.multicast::cluster ([^;]*), %rs\d+;"
EMPTY = r"(mbarrier\.init\S+\s+\[[^\]]+\]), %r\d+;"
BARRIER = r"barrier\.cluster\.arrive;\s+barrier\.cluster\.wait;"
REMOTE = r"mapa\.shared::cluster\.u64\s+(%rd\d+), (%rd\d+), %r\d+;"

MUTATIONS: tuple[tuple[str, Edit], ...] = (
    ("shared tiles go to the first block only", change(r"(mov\.b16\s+%rs\d+), 3;", r"\1, 1;")),
    ("shared tiles go to the second block only", change(r"(mov\.b16\s+%rs\d+), 3;", r"\1, 2;")),
    ("shared tiles go to a third block", change(r"(mov\.b16\s+%rs\d+), 3;", r"\1, 7;")),
    ("halves stay in the block that copies them", change(COPY, r"\1 \2;")),
    ("the last half stays in the block that copies it", only(-1, COPY, r"\1 \2;")),
    ("only a block's own copies are announced", change(r"(mov\.b32\s+%r\d+), 16384;", r"\1, 12288;")),
    ("a shared tile is announced twice", change(r"(mov\.b32\s+%r\d+), 16384;", r"\1, 24576;")),
    ("both blocks copy the same half", change(r"(mov\.u32\s+%r\d+), %cluster_ctarank;", r"\1, 0;")),
    ("halves land in one place", change(r"shl\.b32\s+(%r\d+), %r\d+, 12;", r"mov.b32 \1, 0;")),
    ("a stage is empty for a block's own consumers alone", only(1, EMPTY, r"\1, 1;")),
    ("a stage waits for a third consumer", only(1, EMPTY, r"\1, 3;")),
    ("the first block is told of releases twice", change(REMOTE, r"mapa.shared::cluster.u64 \1, \2, 0;")),
    ("consumers release stages of their own block twice", change(REMOTE, r"mov.u64 \1, \2;")),
    ("the second block is not told of releases", change(r"(setp\.gt\.u32\s+%p\d+, %r\d+), 1;", r"\1, 0;")),
    ("stages are never released", drop(r"mbarrier\.arrive\.release\.cluster[^;]*;")),
    ("producers overwrite stages that are read", only(2, WAIT, "mov.pred P1, -1;")),
    ("consumers take tiles before they are there", only(1, WAIT, "mov.pred P1, -1;")),
    ("copies begin before the other block has mbarriers", only(0, BARRIER, "bar.sync 0;")),
    ("the first barrier orders nothing", change(r"(barrier\.cluster\.arrive);", r"\1.relaxed;", 1)),
    ("blocks end while others release their stages", only(-1, BARRIER, "")),
    ("nothing is waited for at the end", only(-1, r"barrier\.cluster\.wait;", "")),
    ("there are no clusters", drop(r"\.explicitcluster\s+\.reqnctapercluster 1, 2, 1")),
)  # fmt: skip


@pytest.fixture(scope="module")
def healthy() -> KernelProgram:
    return BROKEN.program()


@pytest.mark.parametrize("seed", [None, 1])
def test_the_kernel_that_is_broken_below_is_right(seed: int | None, healthy: KernelProgram) -> None:
    is_right, why = outcome(BROKEN, healthy, seed)
    assert is_right, why


@pytest.mark.parametrize(("name", "edit"), MUTATIONS, ids=[name for name, _ in MUTATIONS])
def test_a_broken_kernel_is_noticed(name: str, edit: Edit, healthy: KernelProgram) -> None:
    assert is_noticed(BROKEN, healthy, edit)
