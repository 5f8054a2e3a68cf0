"""Scripts of several kernels instead of a matmul, and views that are packed once, on the simulated GPU."""

from typing import Any

import numpy as np
import pytest

from benchmarks.fuzzing.program_check import SIMULATOR
from benchmarks.gpu_check.gpu_point import GpuPoint
from benchmarks.program_compiler import compiler_of
from tests.programs.file_check import filled
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Script
from tuner.core.problem import Matmul, Problem
from tuner.payload.reference import NUMPY_DTYPES
from tuner.programs.request import DeviceOptions, Form
from tuner.programs.run.device_function import DeviceFunction
from tuner.programs.run.host_function import HostFunction
from tuner.programs.run.recording_device import RecordingDevice
from tuner.simulator.device.simulated_device import SimulatedDevice
from tuner.simulator.device.streams import ORDERS, Order

pytestmark = pytest.mark.mlir


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
    return filled(__file__, "MATMUL", of_a=a, of_b=b, of_c=c, result=result, fill=fill)


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


def test_a_script_for_other_sizes_is_refused() -> None:
    problem = Matmul(40, 24, 64, dtype="f16")
    other = {problem: script(Matmul(16, 8, 16, dtype="f16"))}
    reason = "this schedule is for one linalg.matmul, tensor<16x16xf16> .* to be equal to 1, got 0"
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


WHOLE, VIEW = "memref<32x64xf32>", "memref<32x32xf32, strided<[64, 1]>>"
MOVED = "memref<32x32xf32, strided<[64, 1], offset: 32>>"
SQUARE, OPEN = "memref<32x32xf32>", "memref<?x64xf32>"
OF_A = f"%v = memref.subview %a[0, 0] [32, 32] [1, 1] : {WHOLE} to {VIEW}"
ALSO_OF_A = OF_A.replace("%v =", "%w =")
BESIDE = f"%w = memref.subview %a[0, 32] [32, 32] [1, 1] : {WHOLE} to {MOVED}"


def multiply(view: str, kind: str, other: str, target: str) -> str:
    return (
        f"linalg.fill ins(%zero : f32) outs(%{target} : {SQUARE})\n"
        f"linalg.matmul ins(%{view}, %{other} : {kind}, {SQUARE}) outs(%{target} : {SQUARE})"
    )


FIRST, SECOND = multiply("v", VIEW, "b", "c"), multiply("v", VIEW, "b", "d")
STORE = f"memref.store %one, %a[%c1, %c1] : {WHOLE}"


def function(*lines: str) -> str:
    body = "\n".join(lines)
    return filled(__file__, "VIEWS", whole=WHOLE, square=SQUARE, body=body)


def arrays() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    shapes = ((32, 64), (32, 32), (32, 32), (32, 32))
    return tuple(rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes)


def launches(text: str, *orders: Order) -> tuple[int, int]:
    """Returns the launches of the tuned kernel, and the others: of packing, if that is all there is.

    Each of the orders, of which "lifo" shows most, gives what the host's loops give, and nothing is reported.
    """
    expected = arrays()
    HostFunction(compiler_of(TargetName("cpu")).compile(text, "main", None).code)(*expected, True)
    compiled = compiler_of(SIMULATOR).compile(text, "main")
    assert compiled.problems == (Matmul(32, 32, 32),)
    for order in orders:
        device = SimulatedDevice("sm_90", order, seed=1)
        recorder = RecordingDevice(device)
        program, found = DeviceFunction(compiled.code, recorder), arrays()
        program(*found, True)
        program.close()
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        assert device.reports == ()
        assert device.counts.allocations == device.counts.frees
    launched = [line for line in recorder.trace if line.startswith("launch")]
    tuned = sum("32x32x32" in line for line in launched)
    return tuned, len(launched) - tuned


LOAD = (f"%x = memref.load %a[%c1, %c1] : {WHOLE}", f"memref.store %x, %c[%c1, %c1] : {SQUARE}")
LOOP = ("%c3 = arith.constant 3 : index", "scf.for %i = %c1 to %c3 step %c1 {")
OPENED = f"%u = memref.cast %a : {WHOLE} to {OPEN} memref.store %one, %u[%c1, %c1] : {OPEN}"
INTO_A = (  # the first product is written next to the view, into the same buffer
    f"linalg.fill ins(%zero : f32) outs(%w : {MOVED})\n"
    f"linalg.matmul ins(%v, %b : {VIEW}, {SQUARE}) outs(%w : {MOVED})"
)
CASES: dict[str, tuple[tuple[str, ...], tuple[int, int], tuple[Order, ...]]] = {
    "one copy for two": ((OF_A, FIRST, SECOND), (2, 1), ("lifo",)),
    "equal views": ((OF_A, ALSO_OF_A, FIRST, multiply("w", VIEW, "b", "d")), (2, 1), ("lifo",)),
    "only reads between": ((OF_A, FIRST, *LOAD, SECOND), (2, 1), ("lifo",)),
    "a store between": ((OF_A, FIRST, STORE, SECOND), (2, 2), ORDERS),
    "a store in a branch": ((OF_A, FIRST, f"scf.if %flag {{ {STORE} }}", SECOND), (2, 2), ("fifo",)),
    "a store through a view": ((OF_A, FIRST, OPENED, SECOND), (2, 2), ("random",)),
    "another view": ((OF_A, BESIDE, FIRST, multiply("w", MOVED, "b", "d")), (2, 2), ("lifo",)),
    # two of packing, one that puts the first product in its place
    "a matmul into the view's buffer": ((OF_A, BESIDE, INTO_A, SECOND), (2, 3), ("lifo",)),
    "in front of a loop and in it": ((OF_A, FIRST, *LOOP, SECOND, "}"), (3, 3), ("lifo",)),
    "a store around their block": ((OF_A, STORE, *LOOP, FIRST, SECOND, "}"), (4, 2), ("lifo",)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_view_is_packed_once_as_long_as_nobody_may_write_its_memory(name: str) -> None:
    lines, expected, orders = CASES[name]
    assert launches(function(*lines), *orders) == expected


def test_on_the_host_too_one_copy_serves_both() -> None:
    text = function(OF_A, FIRST, SECOND)
    compiled = compiler_of(TargetName("cpu")).compile(text, "main")
    assert compiled.problems == (Matmul(32, 32, 32),)
    caller, _, _ = compiled.code.llvm.partition("llvm.func @matmul_0(")  # which packs B on some processors
    assert caller.count("llvm.call @malloc(") == 1
    found = arrays()
    program = HostFunction(compiled.code)
    program(*found, True)
    a, b, c, d = found
    np.testing.assert_allclose(c, a[:, :32] @ b, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(c, d)
    assert program.allocations == 0
