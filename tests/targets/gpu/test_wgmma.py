"""Hopper's strategy: right and without races on the PTX simulator, its machine code, what breaks it."""

import re

import numpy as np
import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint, feasible_set
from tests.simulator.ptx.mutations import Edit, change, drop
from tests.targets.gpu.wgmma_points import (
    CHIP,
    LARGE,
    STRATEGY,
    WAIT,
    by_name,
    check,
    is_noticed,
    only,
    outcome,
    point,
)
from tuner.core.errors import CandidateError, UsageError
from tuner.core.kernel_program import KernelProgram
from tuner.core.problem import Matmul
from tuner.targets.gpu.ptxas import find_ptxas

pytestmark = pytest.mark.mlir

POINTS = (
    (point(Matmul(128, 128, 256, "f16"), block_m=128, block_n=128, consumers=2, stages=3), None),
    (point(Matmul(131, 72, 104, "f16", epilogue="bias_relu", output="f16")), 1),
    (point(Matmul(72, 68, 72, "bf16", "nt", "bias_relu", "bf16"), block_k=128), None),
    (point(Matmul(136, 136, 200, "bf16", "tn"), block_m=128, consumers=2, stages=4), 2),
    (point(Matmul(70, 130, 100, "tf32", "nt"), block_n=128, block_k=32, stages=3), None),
    (point(Matmul(192, 64, 64, "f16"), block_m=192, consumers=3), 3),
    (point(Matmul(320, 72, 8, "f16", "nt"), group=4), None),
    (point(Matmul(1, 8, 8, "f16")), None),
    (point(Matmul(70, 66, 144, "i8", "nt", "bias_relu"), block_k=128), 4),
    (point(Matmul(130, 72, 272, "e4m3", "nt", "bias_relu", "f16"), block_k=128, stages=3, cluster="2x1"), 5),
    (point(Matmul(60, 130, 400, "e5m2", "nt"), block_k=128, block_n=128, cluster="1x2"), None),
)


@pytest.mark.parametrize(("one", "seed"), POINTS, ids=by_name)
def test_a_point_is_right_and_free_of_races(one: GpuPoint, seed: int | None) -> None:
    check(one, seed)


def test_a_random_point_is_right_and_free_of_races() -> None:
    rng = np.random.default_rng(7)
    for dtype, layout in (("f16", "nn"), ("bf16", "tn"), ("tf32", "nt")):
        m, n, k = (8 * int(size) for size in rng.integers(1, 24, 3))
        problem = Matmul(m, n, k, dtype, layout)
        allowed = feasible_set(problem, STRATEGY, CHIP)
        drawn = GpuPoint(problem, allowed.candidate(int(rng.integers(allowed.rows))), CHIP)
        is_right, why = outcome(drawn, drawn.program(), int(rng.integers(100)))
        assert is_right, f"{problem.key} {drawn.candidate.text}: {why}"


def test_the_large_tile_is_four_wgmma_per_step_fed_by_one_thread() -> None:
    program = LARGE.program()
    assert program.ptx.count("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16") == 8  # first tile, loop
    assert "trap" not in program.ptx
    producer = program.ptx[program.ptx.index("setmaxnreg.dec.sync.aligned.u32") :]
    assert re.search(r"setmaxnreg\.dec\S+\s+40;", program.ptx)
    assert re.search(r"setmaxnreg\.inc\S+\s+232;", program.ptx)
    assert producer.index("elect.sync") < producer.index("cp.async.bulk.tensor.2d")
    assert program.ptx.count("cp.async.bulk.tensor.2d") == 5  # A, and B in four boxes of 64 columns
    (launch,) = program.launches
    assert (launch.block, launch.dynamic_shared_bytes) == ((384, 1, 1), 4 * (49152 + 16))
    assert launch.arguments == ("a_map0", "b_map0", "c")
    assert [each.layout.box for each in launch.tensor_maps] == [(64, 128), (64, 64)]


@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
def test_the_large_tile_neither_spills_nor_waits_for_each_wgmma() -> None:
    ptxas = find_ptxas()
    assert ptxas is not None
    (resources,) = ptxas.assemble(LARGE.program()).resources
    assert (resources.spilled_bytes, resources.registers, resources.is_serialized) == (0, 168, False)


@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
@pytest.mark.parametrize(("dtype", "words"), [("e4m3", "f32.e4m3.e4m3"), ("i8", "s32.s8.s8")])
def test_bytes_are_multiplied_in_as_many_steps_as_halves_of_them(dtype: str, words: str) -> None:
    knobs = dict(LARGE.candidate.choices) | {"block_k": 128}
    program = point(Matmul(4096, 4096, 4096, dtype, "nt"), **knobs).program()
    assert program.ptx.count(f"wgmma.mma_async.sync.aligned.m64n256k32.{words}") == 8  # first tile, loop
    assert [each.layout.dtype for each in program.launches[0].tensor_maps] == [0, 0]  # bytes
    ptxas = find_ptxas()
    assert ptxas is not None
    (resources,) = ptxas.assemble(program).resources
    assert (resources.spilled_bytes, resources.is_serialized) == (0, False)


def test_other_chips_and_layouts_that_wgmma_refuses_have_no_point() -> None:
    for problem, chip, why in (
        (Matmul(64, 64, 64, "f16"), "sm_90", "has_wgmma == 1"),
        (Matmul(64, 64, 64, "tf32"), CHIP, "input_bytes == 2 or layout == 'nt'"),
        (Matmul(64, 64, 64, "e4m3"), CHIP, "input_bytes == 2 or layout == 'nt'"),
    ):
        with pytest.raises(UsageError, match=re.escape(why)):
            feasible_set(problem, STRATEGY, chip)
    with pytest.raises(CandidateError, match=r"^nvvm\.\S+ at line .*: found chip sm_90, allowed sm_90a"):
        GpuPoint(Matmul(64, 64, 64, "f16"), LARGE.candidate, "sm_90").program()


# Of so many steps that LLVM keeps the loops; the last one is cut.
BROKEN = point(Matmul(128, 64, 1544, "f16"), block_m=128, stages=3, consumers=2)
DESCRIPTOR = 4611686293305360384  # of A: swizzle 128 bytes, stride 1024
ARRIVAL = r"mbarrier.arrive.expect_tx.shared.b64\1, 0;"


MUTATIONS: tuple[tuple[str, Edit], ...] = (
    ("consumers take the first tile before it is there", only(0, WAIT, "mov.pred P1, -1;")),
    ("consumers take other tiles before they are there", only(1, WAIT, "mov.pred P1, -1;")),
    ("the producer overwrites stages that are read", only(2, WAIT, "mov.pred P1, -1;")),
    ("a stage is released while it is read", change(r"(wgmma\.wait_group\.sync\.aligned\s+)1;", r"\g<1>2;")),
    ("the last products are not waited for", drop(r"wgmma\.wait_group\.sync\.aligned\s+0;")),
    ("stages are never released", drop(r"mbarrier\.arrive\.shared\.b64[^;]*;")),
    (
        "both consumers' arrivals count as one",
        only(1, r"(mbarrier\.init\S+\s+\[[^\]]+\], )%r\d+;", r"\g<1>1;"),
    ),
    ("a stage waits for a third consumer", only(1, r"(mbarrier\.init\S+\s+\[[^\]]+\], )%r\d+;", r"\g<1>3;")),
    ("one mbarrier is not made", only(-1, r"mbarrier\.init[^;]*;", "")),
    ("roles begin before the mbarriers are made", only(0, r"bar\.sync\s+0;", "")),
    (
        "no bytes are announced",
        change(r"mbarrier\.arrive\.expect_tx\S+(\s+%rd\d+, \[[^\]]+\]), %r\d+;", ARRIVAL),
    ),
    ("a box is not copied", only(-1, r"cp\.async\.bulk\.tensor\.2d[^;]*;", "")),
    ("a box is copied twice", only(-1, r"(cp\.async\.bulk\.tensor\.2d[^;]*;)", r"\1 \1")),
    ("coordinates are exchanged", change(r"\{(%r\d+), (%r\d+)\}(\], \[)", r"{\2, \1}\3")),
    ("all threads produce", change(r"elect\.sync\s+(%r\d+)\|(%p\d+), -1;", r"mov.pred \2, -1;")),
    ("there is no wgmma.fence", drop(r"wgmma\.fence\.sync\.aligned;")),
    ("products are not committed", drop(r"wgmma\.commit_group\.sync\.aligned;")),
    ("sums begin with what was in the registers", change(r"setp\.ne\.b32 p, 0, 0;", "setp.ne.b32 p, 1, 0;")),
    ("sums are set anew by each product", change(r"setp\.ne\.b32 p, 1, 0;", "setp.ne.b32 p, 0, 0;")),
    ("B is read as if k were innermost", change(r"p, 1,  1, 0,  1;", "p, 1,  1, 0,  0;")),
    ("A is read as if k were not innermost", change(r"p, 1,  1, 0,  1;", "p, 1,  1, 1,  1;")),
    (
        "the swizzle of the descriptors is another",
        change(r"46116862\d{11}", lambda found: str(int(found[0]) ^ 3 << 62)),
    ),
    ("the stride of A's descriptor is wrong", change(str(DESCRIPTOR), str(DESCRIPTOR - (1 << 32)))),
    ("a product takes the same k again", change("4611686293305360390", "4611686293305360388")),
    (
        "tiles do not begin at an atom of the swizzle",
        change(r"(cvt\.u32\.u64\s+(%r\d+), %rd\d+;)", r"\1 add.s32 \2, \2, 128;"),
    ),
    (
        "consumers take the rows of others",
        change(r"shl\.b32\s+(%r\d+), (%r\d+), 13;", r"shl.b32 \1, \2, 12;"),
    ),
)


@pytest.fixture(scope="module")
def healthy() -> KernelProgram:
    return BROKEN.program()


def test_the_kernel_that_is_broken_below_is_right(healthy: KernelProgram) -> None:
    is_right, why = outcome(BROKEN, healthy)
    assert is_right, why


@pytest.mark.parametrize(("name", "edit"), MUTATIONS, ids=[name for name, _ in MUTATIONS])
def test_a_broken_kernel_is_noticed(name: str, edit: Edit, healthy: KernelProgram) -> None:
    assert is_noticed(BROKEN, healthy, edit)
