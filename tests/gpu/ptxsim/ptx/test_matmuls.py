"""Kernels out of the compiler compute C = A B in any order of threads; of broken ones the kind is found."""

import re
import sys

import numpy as np
import pytest

from tests.gpu.ptxsim.ptx.matmuls import BY_NAME, Edit, Matmul, WarpgroupMatmul, change, drop, shuffled
from tuner.gpu.ptxsim.ptx.defects import Defect, SimulationError

CALLS_LIMIT = 100_000  # of Python functions: 73,597 when this was written, 128 times as many one by one
# half a unit of the largest results
TOLERANCES = {"mma_f16_epi": 2e-2, "wgmma_f16_nn": 1e-4, "wgmma_f16_nt": 0.05, "wgmma_tf32_nt": 1e-4}
NO_CONFLICTS = ("mma_f16", "mma_bf16", "mma_f16_tn", "mma_f16_odd", "mma_tf32_nt", "simt_f32_sync")


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", BY_NAME)
def test_a_kernel_computes_the_product_without_races(name: str) -> None:
    simulation, c, expected = shuffled(name)
    np.testing.assert_allclose(c.astype(np.float64), expected, rtol=0, atol=TOLERANCES.get(name, 2e-5))
    assert simulation.races == ()
    if isinstance(matmul := BY_NAME[name], Matmul):
        assert simulation.hazards == ()
        assert simulation.blocks == np.prod(matmul.grid)


def test_accumulators_zeroed_after_the_fence_are_reported_but_do_no_harm() -> None:
    simulation, _, _ = shuffled("wgmma_f16_nn")
    assert {hazard.kind for hazard in simulation.benign} == {Defect.LATE_ACCUMULATOR}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", NO_CONFLICTS)
def test_a_good_kernel_is_free_of_bank_conflicts(name: str) -> None:
    simulation, _, _ = shuffled(name)
    assert simulation.conflict_ratio == 1.0
    assert simulation.conflicts != ()


@pytest.mark.slow
def test_scalar_loads_of_a_layout_for_vectors_have_bank_conflicts() -> None:
    simulation, _, _ = shuffled("simt_f32")
    ratios = {conflict.ratio for conflict in simulation.conflicts if "ld.shared.b32" in conflict.instruction}
    assert ratios == {2.0}
    assert simulation.conflict_ratio > 1.5


def test_the_order_of_threads_does_not_change_what_is_counted() -> None:
    fixed, c, _ = BY_NAME["mma_f16"].run()
    other, again, _ = shuffled("mma_f16")
    assert (fixed.instructions, fixed.conflicts) == (other.instructions, other.conflicts)
    np.testing.assert_array_equal(c, again)


def test_a_block_takes_few_calls_since_its_threads_are_computed_together() -> None:
    matmul, calls = BY_NAME["mma_f16"], [0]  # four blocks of 64x64x64 are the work of one of 128x128x64

    def count(_frame: object, event: str, _argument: object) -> None:
        calls[0] += event == "call"

    sys.setprofile(count)
    try:
        matmul.run()
    finally:
        sys.setprofile(None)
    assert calls[0] <= CALLS_LIMIT


def drop_last(word: str) -> Edit:
    return lambda ptx: re.sub(rf"(?s)(.*\n)[^\n]*{re.escape(word)}[^\n]*\n", r"\1", ptx, count=1)


def outcome(matmul: Matmul | WarpgroupMatmul, ptx: str, tolerance: float) -> tuple[set[Defect], bool]:
    try:
        simulation, result, expected = matmul.run(ptx)
    except SimulationError as error:
        return {error.kind}, False
    kinds = {hazard.kind for hazard in simulation.races}
    return kinds, bool(np.allclose(result.astype(np.float64), expected, rtol=0, atol=tolerance))


def wait_less(ptx: str) -> str:
    return re.sub(r"(wait_group\s+)(\d+)", lambda m: f"{m[1]}{int(m[2]) + 1}", ptx)


def swap_fragment(ptx: str) -> str:
    return re.sub(r"(mma\.sync\S+\s*\{[^}]*\},\s*\{)(%r\d+), (%r\d+)", r"\1\3, \2", ptx, count=1)


def always_pass(after: str, count: int) -> Edit:
    wait = re.compile(r"mbarrier\.try_wait\.parity\.shared\.b64 P1, [^;]*;")

    def edit(ptx: str) -> str:
        start = ptx.index(after)
        return ptx[:start] + wait.sub("mov.pred P1, -1;", ptx[start:], count=count)

    return edit


def constant(value: int, other: int) -> Edit:
    return change(rf"(mov\.b32\s+%r\d+, ){value};", rf"\g<1>{other};")


WRONG_NUMBERS = None  # only the result shows the mutation
RACE, FLIGHT, UNFINISHED = Defect.SHARED_RACE, Defect.IN_FLIGHT, Defect.UNFINISHED
BOUNDS, MISALIGNED, UNINITIALISED = Defect.OUT_OF_BOUNDS, Defect.MISALIGNED, Defect.UNINITIALISED
NN, NT = "wgmma_f16_nn", "wgmma_f16_nt"
DESCRIPTOR = 4611686293305360384  # swizzle 128 bytes, stride 1024, leading 16
VECTOR_STORE = r"(st\.global\.v2\.b32\s+\[%rd\d+)\]"
ASYNC_COPY = r"(cp\.async\.cg\.shared\.global \[%rd\d+)\]"
XOR, ADD_SUM = r"xor\.b64\s+(%rd\d+), (%rd\d+), %rd\d+;", r"(?:atom|red)[\w.]*\.add\.f32\s+(?:%r\d+, )?"
LANE = r"(mov\.u32\s+(%r\d+), %laneid;)"
HALF = r"\1 .reg .pred %half; setp.lt.u32 %half, \2, 16; @%half ret;"
CUT, STMATRIX = r"(cp\.async\.c[ag][^;]*), 16, %r\d+;", r"(stmatrix[^{]*\{%r\d+), (%r\d+), (%r\d+)"
SET_REGISTERS, COUNT = r"(setmaxnreg\.inc\.sync\.aligned\.u32)\s+232", r"(mov\.b32\s+%r9, )2;"
TILE_START, WGMMA_WAIT = r"add\.s64\s+(%rd\d+), (%rd\d+), 16384;", r"(wgmma\.wait_group\.sync\.aligned\s+)1;"
OTHER_STRIDE = change(str(DESCRIPTOR), str(DESCRIPTOR - (1 << 32)))
OTHER_SWIZZLE = change(r"46116862\d{11}", lambda m: str(int(m[0]) ^ 3 << 62))
BARRIER, FIRST_COLUMN = r"bar\.sync\s+0;", change(r"mov\.u32\s+(%r\d+), %ctaid\.x;", r"mov.u32 \1, 0;")
MUTATIONS: dict[str, tuple[str, Edit, Defect | None]] = {
    "no barriers": ("mma_f16", drop(BARRIER), RACE),
    "no barrier in the loop": ("mma_f16", drop_last("bar.sync"), RACE),
    "no barrier before the loop": ("simt_f32_sync", drop(BARRIER, 1), RACE),
    "no waits": ("mma_f16", drop(r"cp\.async\.wait_group\s+\d+;"), FLIGHT),
    "no last wait": ("mma_f16", drop_last("cp.async.wait_group"), FLIGHT),
    "waits for too few groups": ("mma_f16", wait_less, FLIGHT),
    "waits for too few groups, SIMT": ("simt_f32", wait_less, FLIGHT),
    "a group is not committed": ("mma_f16", drop(r"cp\.async\.commit_group;", 1), FLIGHT),
    "tiles of A and B overlap": ("mma_f16", change(r"\+12288\]", "+8192]"), RACE),
    "stages overlap": ("mma_f16", change(r"\+4096\]", "+2048]"), RACE),
    "a copy is missing": ("mma_f16", drop(r"cp\.async\.cg[^;]*;", 1), UNINITIALISED),
    "the tile is smaller than it is read": ("simt_f32_sync", drop(r"st\.shared[^;]*;", 1), UNINITIALISED),
    "the swizzle is missing": ("mma_f16", change(XOR, r"mov.b64 \1, \2;", 1), WRONG_NUMBERS),
    "a fragment's registers are swapped": ("mma_f16", swap_fragment, WRONG_NUMBERS),
    "ldmatrix does not transpose": ("mma_f16", change(r"\.trans\.", "."), WRONG_NUMBERS),
    "ldmatrix transposes A": ("mma_f16", change(r"x4\.shared", "x4.trans.shared"), WRONG_NUMBERS),
    "stores are not guarded": ("mma_f16_odd", change(r"@!?%p\d+ bra \t?\$L__BB0_\d+;", "", 0), BOUNDS),
    "copies are not cut at the edge": ("mma_f16_odd", change(CUT, r"\1, 16;"), BOUNDS),
    "a vector store is misaligned": ("mma_f16", change(VECTOR_STORE, r"\1+4]", 1), MISALIGNED),
    "a copy is misaligned": ("mma_f16", change(ASYNC_COPY, r"\1+8]", 1), MISALIGNED),
    "a row of ldmatrix is misaligned": ("mma_f16", change(r"(ldmatrix[^;]*)\];", r"\1+8];", 1), MISALIGNED),
    "partial sums are stored": ("mma_f16_splitk", change(ADD_SUM, "st.global.f32 \t"), Defect.BLOCK_RACE),
    "two blocks write one tile": ("mma_f16", FIRST_COLUMN, WRONG_NUMBERS),
    "the epilogue overwrites tiles in use": ("mma_f16_epi", drop(BARRIER), RACE),
    "half a warp multiplies": ("mma_f16", change(LANE, HALF), Defect.DIVERGENCE),
    "bytes announced are too few": (NT, constant(32768, 31744), Defect.BARRIER),
    "bytes announced are too many": (NT, constant(32768, 32784), Defect.DEADLOCK),
    "consumers do not wait for the copy": (NN, always_pass("setmaxnreg.inc", 1), FLIGHT),
    "a barrier's count is too low": (NT, change(COUNT, r"\g<1>1;"), Defect.DEADLOCK),
    "a barrier's count is too high": (NT, change(COUNT, r"\g<1>3;"), Defect.DEADLOCK),
    "no barrier after the mbarriers are made": (NT, drop(BARRIER, 1), RACE),
    "no fence before the tensor store": (NT, drop(r"fence\.proxy\.async\S*;"), Defect.MISSING_FENCE),
    "no barrier before the tensor store": (NT, drop(r"bar\.sync\s+[^0][^;]*;"), RACE),
    "the tensor store is not waited for": (NT, drop(r"cp\.async\.bulk\.wait_group\S*\s+0;"), UNFINISHED),
    "registers of stmatrix are swapped": (NT, change(STMATRIX, r"\1, \3, \2", 1), WRONG_NUMBERS),
    "the descriptor's stride is wrong": (NT, OTHER_STRIDE, WRONG_NUMBERS),
    "the descriptor's swizzle is wrong": (NT, OTHER_SWIZZLE, WRONG_NUMBERS),
    "a tile is misaligned": (NT, change(TILE_START, r"add.s64 \1, \2, 16400;"), MISALIGNED),
    "there is no wgmma.fence": (NT, drop(r"wgmma\.fence\.sync\.aligned;"), Defect.MISSING_WGMMA_FENCE),
    "more registers than there are": (NT, change(SET_REGISTERS, r"\1 240"), Defect.ILLEGAL),
    "the last wgmma is not waited for": (NN, drop(r"wgmma\.wait_group\.sync\.aligned\s+0;"), UNFINISHED),
    "a slot is given back too early": (NN, change(WGMMA_WAIT, r"\g<1>2;"), FLIGHT),
    "the producer does not wait for its slot": (NN, always_pass("setmaxnreg.dec", 6), FLIGHT),
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_kernel_is_noticed(name: str) -> None:
    kernel, edit, kind = MUTATIONS[name]
    broken = edit(BY_NAME[kernel].ptx)
    assert broken != BY_NAME[kernel].ptx
    found, is_right = outcome(BY_NAME[kernel], broken, tolerance=0.1 if "wgmma" in kernel else 2e-2)
    if kind is WRONG_NUMBERS:
        assert not is_right
    else:
        assert kind in found
