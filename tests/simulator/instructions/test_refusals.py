"""What the simulator does not know is refused by name, before anything runs."""

from typing import Any

import numpy as np
import pytest

from tests.simulator.ptx.snippets import each_lane, run
from tuner.simulator.ptx.defects import UnsupportedInstruction

OF_LANES = [
    ("setp.foo.u32 %q, %a, 1; mov.b32 %d, 0;", "u4", "u4", "does not know it with"),
    ("setp.lt.f16x2 %q, %a, %a; mov.b32 %d, 0;", "u4", "u4", "does not know it with"),
    ("cvt.rn.e4m3x2.f32 %d, %a, %a;", "f4", "u2", "the simulator does not know"),
    ("cvt.f16.f32 %d, %a;", "f4", "u2", "the simulator does not know"),
    ("cvt.rn.satfinite.f16.f32 %d, %a;", "f4", "u2", "the simulator does not know"),
    ("add.rz.f32 %d, %a, %a;", "f4", "f4", r"does not know \.rz"),
    ("fma.rp.f32 %d, %a, %a, %a;", "f4", "f4", r"does not know \.rp"),
    ("rem.f32 %d, %a, %a;", "f4", "f4", "does not know it for floats"),
    ("add.cc.u32 %d, %a, %a;", "u4", "u4", "the simulator does not know"),
    ("mul24.lo.u32 %d, %a, %a;", "u4", "u4", "the simulator does not know"),
    ("add.sat.u32 %d, %a, %a;", "u4", "u4", "the simulator does not know"),
    ("wmma.sync %d, %a;", "u4", "u4", "does not know it without load, store, mma"),
    ("mov.u32 %d, %clock;", "u4", "u4", "the register %clock, which is not declared"),
    ("mov.u32 %d, %a9;", "u4", "u4", "the register %a9, which is not declared"),
    ("mov.b64 %e, %a;", "u4", "u4", "%a as a value of type .b64"),
    ("mov.u32 %d, nowhere;", "u4", "u4", "the name nowhere, which is not declared"),
    ("mov.b32 {%d, %d, %d}, %a;", "u4", "u4", "3 parts of .b32"),
]


@pytest.mark.parametrize(("code", "dtype", "result", "reason"), OF_LANES)
def test_an_instruction_of_lanes(code: str, dtype: str, result: str, reason: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=reason):
        each_lane(code, np.zeros(4, dtype), result=result, declare=".reg .pred %q; .reg .b64 %e;")


@pytest.mark.parametrize(
    "code",
    [
        "ld.global.v2.b32 %r1, [%p0];",
        "ld.global.L2::cache_hint.b32 %r1, [%p0], %rd1;",
        "red.global.add.f16x2 [%p0], %r1;",
        "atom.global.add.v2.f32 {%r1, %r2}, [%p0], %r3;",
        "red.global.sub.u32 [%p0], %r1;",
        "cp.async.cg.shared.global [%r1], [%rd1], 8;",
        "cp.async.ca.shared.global [%r1], [%rd1], 32;",
        "cp.async.mbarrier.arrive.shared.b64 [%r1];",
        "cp.async.ca.shared.global.L2::cache_hint [%r1], [%rd1], 16, %rd2;",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%r1}, [%r8];",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r8];",
    ],
)
def test_an_access(code: str) -> None:
    given: Any = np.zeros(32, np.float32)
    with pytest.raises(UnsupportedInstruction, match="does not know"):
        run(code, given)
