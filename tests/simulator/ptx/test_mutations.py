"""Kernels that are broken on purpose: every defect is found, and as the kind it is."""

import re
from dataclasses import dataclass

import pytest

from tests.simulator.ptx.matmuls import BY_NAME
from tests.simulator.ptx.mutations import Edit, change, drop, drop_last, outcome
from tuner.simulator.ptx.defects import Defect

WRONG_NUMBERS = None  # only the result shows the mutation


@dataclass(frozen=True)
class Mutation:
    """One defect put into one kernel."""

    name: str
    kernel: str
    edit: Edit
    kind: Defect | None


def wait_less(ptx: str) -> str:
    """Lets one more group stay in flight."""
    return re.sub(r"(wait_group\s+)(\d+)", lambda m: f"{m[1]}{int(m[2]) + 1}", ptx)


def swap_fragment(ptx: str) -> str:
    """Swaps two registers of the first A fragment."""
    return re.sub(r"(mma\.sync\S+\s*\{[^}]*\},\s*\{)(%r\d+), (%r\d+)", r"\1\3, \2", ptx, count=1)


RACE, FLIGHT = Defect.SHARED_RACE, Defect.IN_FLIGHT
MUTATIONS = (
    Mutation("no barriers", "mma_f16", drop(r"bar\.sync\s+0;"), RACE),
    Mutation("no barrier in the loop", "mma_f16", drop_last("bar.sync"), RACE),
    Mutation("no barrier before the loop", "simt_f32_sync", drop(r"bar\.sync\s+0;", 1), RACE),
    Mutation("no waits", "mma_f16", drop(r"cp\.async\.wait_group\s+\d+;"), FLIGHT),
    Mutation("no last wait", "mma_f16", drop_last("cp.async.wait_group"), FLIGHT),
    Mutation("waits for too few groups", "mma_f16", wait_less, FLIGHT),
    Mutation("waits for too few groups, SIMT", "simt_f32", wait_less, FLIGHT),
    Mutation("a group is not committed", "mma_f16", drop(r"cp\.async\.commit_group;", 1), FLIGHT),
    Mutation("tiles of A and B overlap", "mma_f16", change(r"\+12288\]", "+8192]"), RACE),
    Mutation("stages overlap", "mma_f16", change(r"\+4096\]", "+2048]"), RACE),
    Mutation("a copy is missing", "mma_f16", drop(r"cp\.async\.cg[^;]*;", 1), Defect.UNINITIALISED),
    Mutation(
        "the tile is smaller than it is read",
        "simt_f32_sync",
        drop(r"st\.shared[^;]*;", 1),
        Defect.UNINITIALISED,
    ),
    Mutation(
        "the swizzle is missing",
        "mma_f16",
        change(r"xor\.b64\s+(%rd\d+), (%rd\d+), %rd\d+;", r"mov.b64 \1, \2;", 1),
        WRONG_NUMBERS,
    ),
    Mutation("a fragment's registers are swapped", "mma_f16", swap_fragment, WRONG_NUMBERS),
    Mutation("ldmatrix does not transpose", "mma_f16", change(r"\.trans\.", "."), WRONG_NUMBERS),
    Mutation("ldmatrix transposes A", "mma_f16", change(r"x4\.shared", "x4.trans.shared"), WRONG_NUMBERS),
    Mutation(
        "stores are not guarded",
        "mma_f16_odd",
        change(r"@!?%p\d+ bra \t?\$L__BB0_\d+;", "", 0),
        Defect.OUT_OF_BOUNDS,
    ),
    Mutation(
        "copies are not cut at the edge",
        "mma_f16_odd",
        change(r"(cp\.async\.c[ag][^;]*), 16, %r\d+;", r"\1, 16;"),
        Defect.OUT_OF_BOUNDS,
    ),
    Mutation(
        "a vector store is misaligned",
        "mma_f16",
        change(r"(st\.global\.v2\.b32\s+\[%rd\d+)\]", r"\1+4]", 1),
        Defect.MISALIGNED,
    ),
    Mutation(
        "a copy is misaligned",
        "mma_f16",
        change(r"(cp\.async\.cg\.shared\.global \[%rd\d+)\]", r"\1+8]", 1),
        Defect.MISALIGNED,
    ),
    Mutation(
        "a row of ldmatrix is misaligned",
        "mma_f16",
        change(r"(ldmatrix[^;]*)\];", r"\1+8];", 1),
        Defect.MISALIGNED,
    ),
    Mutation(
        "partial sums are stored, not added",
        "mma_f16_splitk",
        change(r"(?:atom|red)[\w.]*\.add\.f32\s+(?:%r\d+, )?", "st.global.f32 \t"),
        Defect.BLOCK_RACE,
    ),
    Mutation(
        "two blocks write one tile",
        "mma_f16",
        change(r"mov\.u32\s+(%r\d+), %ctaid\.x;", r"mov.u32 \1, 0;"),
        WRONG_NUMBERS,
    ),
    Mutation("the epilogue overwrites tiles in use", "mma_f16_epi", drop(r"bar\.sync\s+0;"), RACE),
    Mutation(
        "half a warp multiplies",
        "mma_f16",
        change(
            r"(mov\.u32\s+(%r\d+), %laneid;)", r"\1 .reg .pred %half; setp.lt.u32 %half, \2, 16; @%half ret;"
        ),
        Defect.DIVERGENCE,
    ),
)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_broken_kernel_is_noticed(mutation: Mutation) -> None:
    matmul = BY_NAME[mutation.kernel]
    broken = mutation.edit(matmul.ptx)
    assert broken != matmul.ptx
    found, is_right = outcome(matmul.run, broken, tolerance=2e-2)
    if mutation.kind is WRONG_NUMBERS:
        assert not is_right
    else:
        assert mutation.kind in found
