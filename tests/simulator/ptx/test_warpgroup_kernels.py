"""Whole Hopper kernels out of the compiler, and broken ones that must be noticed."""

import re

import numpy as np
import pytest

from tests.simulator.ptx.mutations import Edit, change, drop, outcome
from tests.simulator.ptx.warpgroups import BY_NAME, shuffled
from tuner.simulator.ptx.defects import Defect

TOLERANCES = {"wgmma_f16_nn": 1e-4, "wgmma_f16_nt": 0.05, "wgmma_tf32_nt": 1e-4}  # f16 results: half a unit
WRONG_NUMBERS = None


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", BY_NAME)
def test_a_kernel_computes_the_product_without_races(name: str) -> None:
    simulation, c, expected = shuffled(name)
    np.testing.assert_allclose(c, expected, rtol=0, atol=TOLERANCES[name])
    assert simulation.races == ()


def test_accumulators_zeroed_after_the_fence_are_reported_but_do_no_harm() -> None:
    simulation, _, _ = shuffled("wgmma_f16_nn")
    assert {hazard.kind for hazard in simulation.benign} == {Defect.LATE_ACCUMULATOR}


def always_pass(after: str, count: int) -> Edit:
    """Returns the edit that takes waits away that stand after a word."""
    wait = re.compile(r"mbarrier\.try_wait\.parity\.shared\.b64 P1, [^;]*;")

    def edit(ptx: str) -> str:
        start = ptx.index(after)
        return ptx[:start] + wait.sub("mov.pred P1, -1;", ptx[start:], count=count)

    return edit


def constant(value: int, other: int) -> Edit:
    """Returns the edit of a constant that is moved into a register."""
    return change(rf"(mov\.b32\s+%r\d+, ){value};", rf"\g<1>{other};")


NN, NT = "wgmma_f16_nn", "wgmma_f16_nt"
DESCRIPTOR = 4611686293305360384  # swizzle 128 bytes, stride 1024, leading 16
MUTATIONS: list[tuple[str, str, Edit, Defect | None]] = [
    ("bytes announced are too few", NT, constant(32768, 31744), Defect.BARRIER),
    ("bytes announced are too many", NT, constant(32768, 32784), Defect.DEADLOCK),
    ("consumers do not wait for the copy", NN, always_pass("setmaxnreg.inc", 1), Defect.IN_FLIGHT),
    ("a barrier's count is too low", NT, change(r"(mov\.b32\s+%r9, )2;", r"\g<1>1;"), Defect.DEADLOCK),
    ("a barrier's count is too high", NT, change(r"(mov\.b32\s+%r9, )2;", r"\g<1>3;"), Defect.DEADLOCK),
    ("no barrier after the mbarriers are made", NT, drop(r"bar\.sync\s+0;", 1), Defect.SHARED_RACE),
    ("no fence before the tensor store", NT, drop(r"fence\.proxy\.async\S*;"), Defect.MISSING_FENCE),
    ("no barrier before the tensor store", NT, drop(r"bar\.sync\s+[^0][^;]*;"), Defect.SHARED_RACE),
    (
        "the tensor store is not waited for",
        NT,
        drop(r"cp\.async\.bulk\.wait_group\S*\s+0;"),
        Defect.UNFINISHED,
    ),
    (
        "registers of stmatrix are swapped",
        NT,
        change(r"(stmatrix[^{]*\{%r\d+), (%r\d+), (%r\d+)", r"\1, \3, \2", 1),
        WRONG_NUMBERS,
    ),
    (
        "the descriptor's stride is wrong",
        NT,
        change(str(DESCRIPTOR), str(DESCRIPTOR - (1 << 32))),
        WRONG_NUMBERS,
    ),
    (
        "the descriptor's swizzle is wrong",
        NT,
        change(r"46116862\d{11}", lambda m: str(int(m[0]) ^ 3 << 62)),
        WRONG_NUMBERS,
    ),
    (
        "a tile is misaligned",
        NT,
        change(r"add\.s64\s+(%rd\d+), (%rd\d+), 16384;", r"add.s64 \1, \2, 16400;"),
        Defect.MISALIGNED,
    ),
    ("there is no wgmma.fence", NT, drop(r"wgmma\.fence\.sync\.aligned;"), Defect.MISSING_FENCE),
    (
        "more registers than there are",
        NT,
        change(r"setmaxnreg\.inc\.sync\.aligned\.u32\s+232", "setmaxnreg.inc.sync.aligned.u32 240"),
        Defect.ILLEGAL,
    ),
    (
        "the last wgmma is not waited for",
        NN,
        drop(r"wgmma\.wait_group\.sync\.aligned\s+0;"),
        Defect.UNFINISHED,
    ),
    (
        "a slot is given back too early",
        NN,
        change(r"(wgmma\.wait_group\.sync\.aligned\s+)1;", r"\g<1>2;"),
        Defect.IN_FLIGHT,
    ),
    ("the producer does not wait for its slot", NN, always_pass("setmaxnreg.dec", 6), Defect.IN_FLIGHT),
]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("name", "kernel", "edit", "kind"), MUTATIONS, ids=[row[0] for row in MUTATIONS])
def test_a_broken_kernel_is_noticed(name: str, kernel: str, edit: Edit, kind: Defect | None) -> None:
    matmul = BY_NAME[kernel]
    broken = edit(matmul.ptx)
    assert broken != matmul.ptx
    found, is_right = outcome(matmul.run, broken, tolerance=0.1)
    if kind is WRONG_NUMBERS:
        assert not is_right
    else:
        assert kind in found
