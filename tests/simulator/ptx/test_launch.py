"""Launches that fit and that do not; instructions that the simulator does not know are refused by name."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.simulator.ptx.matmuls import DATA, MATMULS
from tests.simulator.ptx.snippets import each_lane, fault, kernel, run
from tuner.core.errors import UsageError
from tuner.simulator.launch import simulate
from tuner.simulator.ptx.defects import Defect, UnsupportedInstruction

SCALE = kernel(
    """ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; mad.lo.u32 %r1, %b, 32, %t; mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3; ld.global.f32 %r2, [%rd1]; add.f32 %r2, %r2, %r2;
    st.global.f32 [%rd2], %r2;""",
    [".param .u64 x", ".param .u64 y"],
    ".reg .b32 %t, %b, %r<3>; .reg .b64 %rd<4>;",
    "mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x;",
)
BLOCKS, THREADS = (4, 1, 1), (32, 1, 1)
X = np.zeros(128, np.float32)
LIMITS = (".maxntid 64, 1, 1", ".reqntid 8, 8")
UP_TO_64, OF_8_X_8 = (SCALE.replace("\n{", f" {each}\n{{", 1) for each in LIMITS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": "other"}, "kernel.ptx: found no kernel 'other', allowed snippet"),
        ({"arguments": (X,)}, "kernel snippet: found 1 arguments, allowed 2"),
        ({"arguments": (X, X[::2])}, "argument y: the array is not C-contiguous"),
        ({"grid": (0, 1, 1)}, r"found grid \(0, 1, 1\)"),
        ({"block": (32, 33, 1)}, "found a block of 1056 threads, allowed up to 1024"),
        ({"blocks": ((4, 0, 0),)}, r"blocks: found \(4, 0, 0\), allowed blocks of the grid \(4, 1, 1\)"),
        ({"arguments": (X, b"1234")}, "argument y: found 4 bytes, allowed 8"),
        ({"ptx": UP_TO_64, "block": (65, 1, 1)}, "found a block of 65 threads, allowed up to 64"),
        ({"ptx": OF_8_X_8, "block": (64, 1, 1)}, r"found a block of \(64, 1, 1\), allowed \(8, 8, 1\)"),
    ],
)
def test_a_launch_that_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    launch: dict[str, Any] = {"ptx": SCALE, "kernel": "snippet", "grid": BLOCKS, "block": THREADS}
    with pytest.raises(UsageError, match=message):
        simulate(**launch | {"arguments": (X, X)} | changes)


def test_the_same_array_twice_is_one_buffer_and_arrays_of_any_type_and_shape_are_bytes() -> None:
    x = np.ones(128, np.float32)
    assert simulate(SCALE, "snippet", BLOCKS, THREADS, (x, x)).races == ()
    assert x.tolist() == [2] * 128
    halves = np.ones((4, 8, 8), ml_dtypes.bfloat16)
    simulate(SCALE, "snippet", BLOCKS, THREADS, (halves, halves))  # 1.0078125 is 0x3F813F81's value
    assert halves.astype(float).max() == 2


def test_too_little_shared_memory_is_found() -> None:
    matmul = MATMULS[0]
    a, b = matmul.inputs()
    with fault(Defect.OUT_OF_BOUNDS, match=r"shared address .* allowed up to 16384"):
        simulate(matmul.ptx, "matmul_kernel", matmul.grid, matmul.block, (a, b, matmul.output()), 16384)


def test_sampled_blocks_leave_the_rest_alone() -> None:
    matmul = MATMULS[0]
    a, b = matmul.inputs()
    c = matmul.output()
    launch = (matmul.ptx, "matmul_kernel", matmul.grid, matmul.block, (a, b, c), 24576)
    found = simulate(*launch, blocks=((1, 0, 0),))
    np.testing.assert_allclose(c[:64, 64:], matmul.expected(a, b)[:64, 64:], atol=2e-5)
    assert np.isnan(c).sum() == 3 * 64 * 64
    assert found.blocks == 1


def test_a_transpose_of_the_gpu_dialect_with_private_and_shared_memory() -> None:
    x, out = np.arange(64 * 64, dtype=np.float32).reshape(64, 64), np.zeros((64, 64), np.float32)
    found = simulate((DATA / "transpose.ptx").read_text(), "kernel", (2, 2, 1), (32, 8, 1), (x, out))
    tiles = x.reshape(2, 32, 2, 32)
    expected = tiles.transpose(2, 3, 0, 1) + tiles.transpose(2, 1, 0, 3)  # the tile and what the thread kept
    np.testing.assert_array_equal(out.reshape(2, 32, 2, 32), expected)
    assert found.hazards == ()
    assert found.conflict_ratio == 1.0


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("call.uni (%r1), helper, (%r2);", r"line \d+: call.uni .*not know a call of helper; only vprintf"),
        ("tcgen05.fence::before_thread_sync;", "does not know the instruction tcgen05"),
        ("bar.sync 0, 32, 1;", "does not know it with 3 operands"),
        ("brx.idx %r1, table;", "does not know the instruction brx"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%rd2], %r1;", "does not know"),
    ],
)
def test_an_instruction_that_is_not_known_is_named(code: str, message: str) -> None:
    with fault(Defect.UNSUPPORTED, match=message):
        run(code)


def test_a_fence_of_tensor_maps_is_known() -> None:
    run("fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;")


@pytest.mark.slow
def test_blocks_wait_for_a_block_that_runs_later() -> None:
    flag = np.zeros(1, np.uint32)
    code = """setp.eq.u32 %q1, %b, 8; @%q1 bra WRITE;
      LOOP: ld.volatile.global.u32 %r1, [%p0]; setp.eq.u32 %q2, %r1, 0; @%q2 bra LOOP;
      ret;
      WRITE: mov.u32 %r1, 7; st.volatile.global.u32 [%p0], %r1;"""
    simulation = run(code, flag, threads=512, grid=(9, 1, 1))  # 4 blocks are simulated at once
    assert flag.tolist() == [7]
    assert not [race for race in simulation.races if race.kind is not Defect.SAME_VALUE]


# What the simulator does not know is refused by name, before anything runs.
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
    with fault(Defect.UNSUPPORTED, match="does not know"):
        run(code, np.zeros(32, np.float32))
