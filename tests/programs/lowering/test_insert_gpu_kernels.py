"""Scripts of several kernels instead of a matmul: scratch, zeros and packing, on the simulated GPU."""

from typing import Any

import numpy as np
import pytest

from benchmarks.fuzzing.program_check import SIMULATOR
from benchmarks.gpu_check.gpu_point import GpuPoint
from benchmarks.program_compiler import compiler_of
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Script
from tuner.core.problem import Matmul, Problem
from tuner.payload.reference import NUMPY_DTYPES
from tuner.programs.request import DeviceOptions, Form
from tuner.programs.run.device_function import DeviceFunction
from tuner.simulator.device.simulated_device import SimulatedDevice

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.device")

MMA: dict[str, int | str] = {
    "block_m": 32,
    "block_n": 32,
    "block_k": 16,
    "warps_m": 1,
    "warps_n": 1,
    "depth": 2,
    "shared": "pad",
    "group": 1,
    "splits": 1,
    "split_by": "atomic",
    "exchange": 0,
    "prefetch": 1,
    "pack": 0,
}


def script(problem: Problem, **knobs: Any) -> Script:
    return Script.of(GpuPoint(problem, Candidate.of("matmul_gpu_mma_sync", MMA | knobs)).script())


def payload(problem: Problem, is_filled: bool) -> str:
    m, n, k = problem.sizes
    result = problem.output or "f32"
    a, b, c = (
        f"memref<{m}x{k}x{problem.dtype}>",
        f"memref<{k}x{n}x{problem.dtype}>",
        f"memref<{m}x{n}x{result}>",
    )
    fill = f"linalg.fill ins(%zero : {result}) outs(%c : {c})" if is_filled else ""
    return f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) {{
      %zero = arith.constant 0.0 : {result}
      {fill}
      linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c})
      return
    }}"""


def check(code: Any, device: SimulatedDevice, problem: Problem, *, is_filled: bool = True) -> None:
    """Runs a program twice on random arrays, compares with numpy, and wants no report and no leak."""
    program = DeviceFunction(code, device)
    m, n, k = problem.sizes
    rng = np.random.default_rng(0)
    dtype = NUMPY_DTYPES[problem.dtype]
    for _ in range(2):
        a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))
        c = rng.standard_normal((m, n)).astype(NUMPY_DTYPES[problem.output or "f32"])
        expected = a.astype(np.float64) @ b.astype(np.float64) + (0 if is_filled else c)
        program(a, b, c)
        half_unit = 0.016 if problem.output else 1e-4  # of 16 bits, up to 32
        np.testing.assert_allclose(c.astype(np.float64), expected, rtol=0, atol=half_unit)
    program.close()
    assert device.reports == ()
    assert device.counts.allocations == device.counts.frees


WGMMA: dict[str, int | str] = {
    "block_m": 64,
    "block_n": 64,
    "block_k": 64,
    "stages": 2,
    "consumers": 1,
    "cluster": "1x1",
    "bands": "rows",
    "stores": "direct",
    "splits": 1,
    "tiles": 1,
    "group": 1,
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("dtype", "output", "knobs", "form"),
    [
        ("f16", "", {}, "streams"),
        ("bf16", "", {}, "tokens"),
        ("f16", "", {"cluster": "2x1", "tiles": 2}, "sync"),
        ("f16", "f16", {"stores": "tma"}, "streams"),
    ],
)
def test_kernels_that_take_tensor_maps_give_what_numpy_gives(
    dtype: str, output: str, knobs: dict[str, Any], form: Form
) -> None:
    problem = Matmul(136, 72, 80, dtype, output=output)  # no whole tiles
    point = GpuPoint(problem, Candidate.of("matmul_gpu_wgmma", WGMMA | knobs), "sm_90a")
    compiler = compiler_of(TargetName.parse("simulator:sm_90a"))
    bound = {problem: Script.of(point.script())}
    code = compiler.compile(payload(problem, True), None, bound, DeviceOptions(form)).code
    device = SimulatedDevice("sm_90a", "lifo")
    check(code, device, problem)
    assert device.counts.launches == 2


@pytest.mark.slow
@pytest.mark.parametrize("is_filled", [True, False])
@pytest.mark.parametrize(
    ("sizes", "knobs", "kernels"),
    [
        ((40, 24, 64), {}, 1),
        ((40, 24, 64), {"splits": 2, "split_by": "atomic"}, 2),  # zeros first
        ((40, 24, 64), {"splits": 2, "split_by": "workspace"}, 2),
        ((40, 24, 61), {"pack": 1}, 2),  # A has rows of odd length
    ],
)
def test_kernels_with_scratch_give_what_numpy_gives(
    sizes: tuple[int, int, int], knobs: dict[str, Any], kernels: int, is_filled: bool
) -> None:
    problem = Matmul(*sizes, dtype="f16")
    bound = {problem: script(problem, **knobs)}
    code = compiler_of(SIMULATOR).compile(payload(problem, is_filled), None, bound).code
    device = SimulatedDevice("sm_90", "lifo")
    check(code, device, problem, is_filled=is_filled)
    assert device.counts.launches == 2 * (kernels + (not is_filled))


def test_a_script_for_larger_sizes_is_refused() -> None:
    problem = Matmul(40, 24, 64, dtype="f16")
    other = {problem: script(Matmul(16, 8, 16, dtype="f16"))}
    reason = r"tuner\.pad_views .*: sizes\[0\]: expected 40\.\.2147483647, got 32"
    with pytest.raises(CandidateError, match=reason) as caught:
        compiler_of(SIMULATOR).compile(payload(problem, True), None, other)
    assert caught.value.stage is Stage.COMPILE


def test_a_script_that_makes_no_kernel_is_refused() -> None:
    problem = Matmul(40, 24, 64, dtype="f16")
    nothing = Script.of("""module attributes {transform.with_named_sequence} {
      transform.named_sequence @__transform_main(%root: !transform.any_op) { transform.yield }
    }""")
    with pytest.raises(CandidateError, match=r"outside of every gpu\.launch"):
        compiler_of(SIMULATOR).compile(payload(problem, True), None, {problem: nothing})
