"""Kernels that are broken in one place: each break is noticed, by a wrong result, a race or a fault."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.gpu.ptxsim.ptx.matmuls import Edit, change, drop
from tests.gpu.target.strategies import points
from tests.gpu.target.strategies.points import compiled, mma_sync, require_right, wgmma
from tests.support.gpu_point import GpuPoint
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.ptxsim.target.evaluator import simulate_program

pytestmark = pytest.mark.mlir
WAIT = r"mbarrier\.try_wait\.parity\.shared\.b64 P1, [^;]*;"  # of any role


def only(number: int, pattern: str, text: str) -> Edit:
    def edit(ptx: str) -> str:
        match = list(re.finditer(pattern, ptx))[number]
        return ptx[: match.start()] + match.expand(text) + ptx[match.end() :]

    return edit


def exchanging(problem: Problem, chip: str = "sm_90", block_n: int = 32) -> GpuPoint:
    knobs: dict[str, Any] = {"block_m": 32, "warps_m": 2, "warps_n": 1, "exchange": 1}
    return mma_sync(problem, chip, **knobs, block_n=block_n)


@dataclass(frozen=True)
class Breaks:
    one: GpuPoint
    edits: tuple[tuple[str, Edit], ...]


DESCRIPTOR = 4611686293305360384  # of A: swizzle 128 bytes, stride 1024
EMPTY = r"(mbarrier\.init\S+\s+\[[^\]]+\]), %r\d+;"
EXPECTED = r"mbarrier\.arrive\.expect_tx\S+(\s+%rd\d+, \[[^\]]+\]), %r\d+;"
PLACED = r"(cvt\.u32\.u64\s+(%r\d+), %rd\d+;)"
ARRIVAL = r"mbarrier.arrive.expect_tx.shared.b64\1, 0;"
# Of as many steps as LLVM wants to keep the loops, and no more; the last one is cut.
RING = Breaks(wgmma(Matmul(128, 64, 1160, "f16"), block_m=128, stages=3, consumers=2), (
    ("consumers take the first tile before it is there", only(0, WAIT, "mov.pred P1, -1;")),
    ("consumers take other tiles before they are there", only(1, WAIT, "mov.pred P1, -1;")),
    ("the producer overwrites stages that are read", only(2, WAIT, "mov.pred P1, -1;")),
    ("a stage is released while it is read", change(r"(wgmma\.wait_group\.sync\.aligned\s+)1;", r"\g<1>2;")),
    ("the last products are not waited for", drop(r"wgmma\.wait_group\.sync\.aligned\s+0;")),
    ("stages are never released", drop(r"mbarrier\.arrive\.shared\.b64[^;]*;")),
    ("both consumers' arrivals count as one", only(1, EMPTY, r"\1, 1;")),
    ("a stage waits for a third consumer", only(1, EMPTY, r"\1, 3;")),
    ("one mbarrier is not made", only(-1, r"mbarrier\.init[^;]*;", "")),
    ("roles begin before the mbarriers are made", only(0, r"bar\.sync\s+0;", "")),
    ("no bytes are announced", change(EXPECTED, ARRIVAL)),
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
    ("the descriptors' swizzle is another", change(r"46116862\d{11}", lambda m: str(int(m[0]) ^ 3 << 62))),
    ("the stride of A's descriptor is wrong", change(str(DESCRIPTOR), str(DESCRIPTOR - (1 << 32)))),
    ("a product takes the same k again", change("4611686293305360390", "4611686293305360388")),
    ("tiles do not begin at an atom of the swizzle", change(PLACED, r"\1 add.s32 \2, \2, 128;")),
    ("consumers take others' rows", change(r"shl\.b32\s+(%r\d+), (%r\d+), 13;", r"shl.b32 \1, \2, 12;")),
))  # fmt: skip
# Fragments of B in registers, two sets in turn; of few steps, LLVM unrolls the loop.
FRAGMENT = r"ld\.shared\.v2\.b32 \{(%r\d+), (%r\d+)\}, (\[%r\d+\+\d+\]);"
OPERANDS = r"(\{(%r\d+), %r\d+, %r\d+, %r\d+\}, %rd\d+, p, 1, 1; \})"
REGISTERS = Breaks(wgmma(Matmul(72, 128, 676, "tf32"), block_k=32, block_n=128, stages=3, consumers=2), (
    ("rows of a pair are exchanged", only(4, FRAGMENT, r"ld.shared.v2.b32 {\2, \1}, \3;")),
    ("the stage is not there when fragments are read", only(1, WAIT, "mov.pred P1, -1;")),
    ("a stage is released while it is read", change(r"(wgmma\.wait_group\.sync\.aligned\s+)1;", r"\g<1>2;")),
    ("other lanes may not have read their fragments", drop(r"bar\.warp\.sync\s+-1;")),
    ("one warp releases a stage for all", change(r"(mbarrier\.init\S+\s+\[[^\]]+\]), %r\d+;", r"\1, 1;")),
    ("the last products are not waited for", drop(r"wgmma\.wait_group\.sync\.aligned\s+0;")),
    ("there is no wgmma.fence", drop(r"wgmma\.fence\.sync\.aligned;")),
    ("sums begin with what was in the registers", change(r"setp\.ne\.b32 p, 0, 0;", "setp.ne.b32 p, 1, 0;")),
    ("fragments are written while they are read", only(5, OPERANDS, r"\1 mov.b32 \2, 0;")),
))  # fmt: skip
COPY = r"(cp\.async\.bulk\.tensor\.2d\S+?)\.multicast::cluster ([^;]*), %rs\d+;"
BARRIER = r"barrier\.cluster\.arrive;\s+barrier\.cluster\.wait;"
REMOTE = r"mapa\.shared::cluster\.u64\s+(%rd\d+), (%rd\d+), %r\d+;"
# Of as many steps as LLVM wants to keep the loops.
CLUSTERS = Breaks(wgmma(Matmul(128, 64, 1160, "f16"), cluster="2x1", stages=3), (
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
    ("stages are never released", drop(r"mbarrier\.arrive\.shared::cluster[^;]*;")),
    ("producers overwrite stages that are read", only(2, WAIT, "mov.pred P1, -1;")),
    ("consumers take tiles before they are there", only(1, WAIT, "mov.pred P1, -1;")),
    ("copies begin before the other block has mbarriers", only(0, BARRIER, "bar.sync 0;")),
    ("the first barrier orders nothing", change(r"(barrier\.cluster\.arrive);", r"\1.relaxed;", 1)),
    ("blocks end while others release their stages", only(-1, BARRIER, "")),
    ("nothing is waited for at the end", only(-1, r"barrier\.cluster\.wait;", "")),
    ("there are no clusters", drop(r"\.explicitcluster\s+\.reqnctapercluster 1, 2, 1")),
))  # fmt: skip
PART_OF_K = r"(%r\d+, %ctaid\.z;\s+shl\.b32\s+%r\d+, %r\d+), 7;"
PART_OF_SUMS = r"(%r\d+, %ctaid\.z;\s+shl\.b32\s+%r\d+, %r\d+), 12;"
PARTS_OF_K = Breaks(wgmma(Matmul(64, 64, 256, "f16"), splits=2), (
    ("parts overlap", change(PART_OF_K, r"\1, 6;")),
    ("parts begin too late", change(PART_OF_K, r"\1, 8;")),
    ("all blocks sum the first part", only(-1, r"(mov\.u32\s+%r\d+), %ctaid\.z;", r"\1, 0;")),
    ("parts are stored in one place", only(0, r"(mov\.u32\s+%r\d+), %ctaid\.z;", r"\1, 0;")),
    ("parts are stored partly over others", change(PART_OF_SUMS, r"\1, 11;")),
    ("the second part is not added", change(r"\+16384\]", "]")),
    ("nothing is added up", drop(r"st\.global\.v4\.b32[^;]*;")),
))  # fmt: skip
ARRIVES, COUNT = r"atom\.acq_rel\.gpu", r"(setp\.ne\.b32\s+%p\d+, (%r\d+)), 3;"
LAST_BLOCK = Breaks(
    wgmma(Matmul(8, 64, 512, "f16", "nt"), block_m=8, splits=4, stages=2, split_by="last_block"), (
    ("the arrival orders nothing", change(ARRIVES, "atom.relaxed.gpu")),
    ("the arrival releases nothing", change(ARRIVES, "atom.acquire.gpu")),
    ("the arrival acquires nothing", change(ARRIVES, "atom.release.gpu")),
    ("the arrival is one of the block alone", change(ARRIVES, "atom.acq_rel.cta")),
    ("a warp arrives before all of its lanes have stored", only(0, r"bar\.warp\.sync\s+-1;", "")),
    ("lanes do not wait for the arrival of their warp", only(-1, r"bar\.warp\.sync\s+-1;", "")),
    ("the last block but one adds the parts", only(0, COUNT, r"\1, 2;")),
    ("each block adds the parts", only(0, COUNT, r"\1, \2;")),
    ("the second part is not added", change(r"\+2048\]", "]")),
    ("the sums are not stored", only(-1, r"st\.global\.v2\.b32[^;]*;", "")),
))  # fmt: skip
RELEASE = r"mbarrier\.arrive\.shared\.b64[^;]*;"
# What each loop over tiles of C begins with, and its stage and parity.
FETCHING = r"(?s)(elect\.sync.*?\n\$\w+:)(.*?shl\.b32\s+%r\d+, (%r\d+), 3;.*?P1, \[%r\d+\], (%r\d+), )"
MULTIPLYING = r"(?s)(mov\.b32\s+(%r\d+), 0;.*?mov\.b32\s+(%r\d+), \2;\s+bra\.uni\s+(\$\w+);.*?\n\4:)"
NEXT, ANY_LEFT = r"(add\.s32\s+%r\d+, %r\d+), 2;", r"(setp\.lt\.u32\s+%p\d+, %r\d+), 4;"
# Four tiles of k through three stages: each tile of C begins at another place of the ring.
TILES = Breaks(wgmma(Matmul(192, 128, 200, "f16"), stages=3, tiles=3), (
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
))  # fmt: skip
BOX = r"cp\.async\.bulk\.tensor\.2d\.global[^;]*;"
PLACE = r"(2d\.global\.\S+\s+\[%rd\d+, \{)"
FREED = r"(cp\.async\.bulk\.wait_group\.read\s+)1;"
FILLED = r"(fence\.proxy\.async\S*;\s+)bar\.warp\.sync\s+-1;"
# Each warp stores four boxes, the later two where the first ones were.
STORES = Breaks(wgmma(Matmul(64, 256, 8, "f16", output="f16"), stores="tma", block_n=128, tiles=2), (
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
))  # fmt: skip

# Lanes of mma.sync exchange pieces of rows before they store them.
ROW_STORE = r"(st\.global\.v4\.b32\s+\[[^\]]+\], \{)(%r\d+), (%r\d+)"
SHUFFLE = r"(shfl\.sync\.bfly\.b32\s+[^,]+, [^,]+), {0},"
EXCHANGE = Breaks(exchanging(Matmul(32, 32, 32, "f16", output="f16")), (
    ("a lane exchanges with the next but one", change(SHUFFLE.format(1), r"\1, 2,", 1)),
    ("a lane exchanges with the next but two", change(SHUFFLE.format(2), r"\1, 3,", 1)),
    ("the wrong tile is sent", change(r"(selp\.b32\s+%r\d+), (%r\d+), (%r\d+),", r"\1, \3, \2,", 1)),
    ("columns are stored in another order", only(0, ROW_STORE, r"\1\3, \2")),
))  # fmt: skip
# Operands change places for few rows: two lanes exchange sums of neighbouring columns.
PAIR_STORE = r"(st\.global\.v2\.b32\s+\[[^\]]+\], \{)(%r\d+), (%r\d+)"
SWAPPED = Breaks(wgmma(Matmul(12, 72, 136, "bf16", "nt"), block_m=16), (
    ("a lane exchanges with the next but one", change(SHUFFLE.format(4), r"\1, 8,", 1)),
    ("the wrong sum is sent", change(r"(selp\.f32\s+%r\d+), (%r\d+), (%r\d+),", r"\1, \3, \2,", 1)),
    ("columns are stored in another order", only(0, PAIR_STORE, r"\1\3, \2")),
))  # fmt: skip
BREAKS = {
    "ring": RING,
    "clusters": CLUSTERS,
    "parts of K": PARTS_OF_K,
    "last block": LAST_BLOCK,
    "tiles": TILES,
}
BREAKS |= {"stores": STORES, "exchange": EXCHANGE, "registers": REGISTERS, "few rows": SWAPPED}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("breaks", BREAKS.values(), ids=BREAKS)
@pytest.mark.parametrize("seed", [None, 1])
def test_the_kernel_that_is_broken_below_is_right(breaks: Breaks, seed: int | None) -> None:
    require_right(breaks.one, seed=seed)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("one", "edit"),
    [
        pytest.param(breaks.one, edit, id=f"{kernel}: {name}")
        for kernel, breaks in BREAKS.items()
        for name, edit in breaks.edits
    ],
)
def test_a_broken_kernel_is_noticed(one: GpuPoint, edit: Edit) -> None:
    assert points.is_noticed(one, edit)


def test_both_loops_over_tiles_are_broken_above() -> None:
    ptx = compiled(TILES.one).text
    assert len(re.findall(NEXT, ptx)) == len(re.findall(ANY_LEFT, ptx)) == 2


@pytest.mark.slow
def test_parts_are_added_up_to_the_same_bits_in_any_order_of_blocks() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 256), (256, 64)))
    found = []
    for seed in (None, 1, 2):
        c = np.full((64, 64), np.nan, np.float32)
        simulate_program(compiled(PARTS_OF_K.one), {"a": a, "b": b, "c": c}, schedule_seed=seed)
        found.append(c)
    assert all(np.array_equal(found[0], other) for other in found[1:])


@pytest.mark.slow
def test_the_last_block_adds_to_the_same_bits_whichever_it_is_and_leaves_zeros_for_the_next_run() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((8, 512), (64, 512)))
    program = compiled(LAST_BLOCK.one)
    counters = np.zeros(program.buffers[-1].bytes // 4, np.int32)
    results = []
    for seed in (None, 1, 2):
        c = np.full((8, 64), np.nan, np.float32)
        arrays: dict[str, Any] = {"a": a, "b": b, "c": c, program.buffers[-1].name: counters}
        simulate_program(program, arrays, schedule_seed=seed)
        results.append(c)
        assert not counters.any()
    assert all(np.array_equal(results[0], other) for other in results[1:])
    np.testing.assert_allclose(results[0], a.astype(np.float64) @ b.astype(np.float64).T, atol=1e-3)


def test_boxes_are_filled_without_bank_conflicts() -> None:
    (simulation,) = require_right(STORES.one)
    assert any(each.instruction.startswith("stmatrix") for each in simulation.conflicts)
    assert simulation.conflict_ratio == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "one",
    [
        EXCHANGE.one,
        exchanging(Matmul(33, 64, 32, "bf16", "nt", "bias_relu", "bf16"), "sm_80"),  # rows past the end
        exchanging(Matmul(32, 64, 32, "f16", "tn", "bias_relu"), block_n=64),  # f32
        exchanging(Matmul(40, 32, 32, "tf32", "nt")),
    ],
    ids=points.by_name,
)
def test_exchanged_rows_are_right_in_any_order_and_stored_by_16_bytes(one: GpuPoint) -> None:
    assert points.is_feasible(one)
    ptx = compiled(one).text
    assert ptx.count("st.global") == ptx.count("st.global.v4") > 0
    for seed in (None, 1, 2):
        require_right(one, seed=seed)
