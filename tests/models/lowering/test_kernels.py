"""Parallel loops and matmuls become kernels, by scripts of several kernels; views are packed once."""

import re
from typing import Any

import numpy as np
import pytest

from tests.mlir.documented_ir import missing
from tests.mlir.kernels import parsed
from tests.models.file_check import filled
from tests.models.lowering.compiled import cpu_function, first_script, host_function, on_simulator, read
from tests.support.fuzzing.program_check import SIMULATOR
from tests.support.gpu_point import GpuPoint
from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.candidate import Candidate, TargetName
from tuner.core.device import STREAM_ORDERS, StreamOrder
from tuner.core.device_programs import DeviceOptions, Form
from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu import chip_of
from tuner.core.interfaces import Script
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.lowering import kernels
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.run.device_function import DeviceFunction
from tuner.mlir.programs.matmuls import problems_of
from tuner.models.recording_device import RecordingDevice
from tuner.models.run.host_function import HostFunction
from tuner.payload.reference import NUMPY_DTYPES

pytestmark = pytest.mark.mlir
CONSTANTS = "%c0 = arith.constant 0 : index %c1 = arith.constant 1 : index %c3 = arith.constant 3 : index"
ONE = "%one = arith.constant 1.0 : f32"


def test_loops_around_launches_are_the_hosts_and_others_stay() -> None:
    with parsed(text_beside(__file__, "LOOP")) as module:
        before = str(module)
        assert kernels.make_host_loops(module.operation) == 2
        assert module.operation.verify()
        text = str(module)
    assert missing(kernels.make_host_loops.__doc__ or "", before, text) == []  # the docstring's IR is real
    assert text.count("scf.for") == 3
    assert text.count("scf.parallel") == 1
    assert "scf.for %arg4 = %c1 to %c8" in text.replace("%c1_", "%c1")


def rewrite(payload: Any) -> None:
    kernels.launch_parallel_loops(payload.function)


def filling(bounds: str, kind: str, indices: str = "%i, %j", extra: str = "") -> str:
    parts = {"kind": kind, "extra": extra, "bounds": bounds, "indices": indices}
    return filled(__file__, "FILLING", constants=CONSTANTS, one=ONE, **parts)


def test_every_iteration_runs_once_between_its_bounds() -> None:
    sizes = "%c37 = arith.constant 37 : index %c53 = arith.constant 53 : index"
    text = filling("(%i, %j) = (%c0, %c0) to (%c37, %c53) step (%c1, %c1)", "37x53xf32")
    filled_array = np.zeros((37, 53), np.float32)
    host_function(text.replace(ONE, f"{ONE} {sizes}"), rewrite)(filled_array)
    assert (filled_array == 1).all()
    text = filling("(%i) = (%c1) to (%n) step (%c3)", "?xf32", "%i", ", %n: index")
    function = host_function(text, rewrite)
    for length in (0, 1, 2, 4, 5, 20):
        a, expected = np.zeros(20, np.float32), np.zeros(20)
        function(a, length)
        expected[1:length:3] = 1
        np.testing.assert_array_equal(a, expected)


def test_neighbouring_threads_take_the_last_dimension_and_inner_loops_stay_within() -> None:
    text = read(filling("(%i, %j) = (%c0, %c0) to (%c3, %c3) step (%c1, %c1)", "3x3xf32"), rewrite)
    lines = [line.strip() for line in text.splitlines()]
    column = next(line for line in lines if "arith.remui" in line).split(" =")[0]
    assert f", {column}]" in next(line for line in lines if "memref.load" in line)
    assert text.count("gpu.launch") == 1
    assert "scf.parallel" not in text
    text = filled(__file__, "INNER", constants=CONSTANTS, one=ONE)
    assert read(text, rewrite).count("gpu.launch") == 1
    a = np.zeros((3, 3), np.float32)
    host_function(text, rewrite)(a)
    assert a.all()
    text = text_beside(__file__, "SUM")
    assert "gpu.launch" not in read(text, rewrite)
    assert host_function(text, rewrite)(np.arange(8, dtype=np.float32)) == 4.0


def test_a_grid_is_never_empty_has_a_limit_and_the_blocks_and_threads_of_a_mapped_loop() -> None:
    text = filling("(%i) = (%c0) to (%n) step (%c1)", "?xf32", "%i", ", %n: index")
    lines = read(text, rewrite).splitlines()
    (largest,) = (line for line in lines if "arith.maxsi" in line and "%c1" in line)
    assert f"= {largest.split('=')[0].strip()}" in next(line for line in lines if "gpu.launch" in line)
    text = filling("(%i) = (%c0) to (%n) step (%c1)", "?xf32", "%i")
    with pytest.raises(CandidateError, match="found 549755813889 parallel iterations, allowed 549755813632"):
        read(text.replace(ONE, f"{ONE} %n = arith.constant 549755813889 : index"), rewrite)
    text = read(text_beside(__file__, "MAPPED"), launched({}))
    assert re.search(r"blocks\(.*\) in \(%\w+ = %c20\w*, %\w+ = %c1\w*, ", text)
    assert re.search(r"threads\(.*\) in \(%\w+ = %c12\w*, %\w+ = %c1\w*, ", text)


# Programs whose work became kernels, run on the host: same numbers, nothing leaked.

CHIP = chip_of("sm_90")
MATMUL = "linalg.matmul ins(%a, %b : memref<20x7xf32>, memref<7x12xf32>) outs(%c : memref<20x12xf32>)"
PROBLEM = Matmul(20, 12, 7)


def launched(scripts: dict[Problem, Any]) -> Any:
    return lambda payload: kernels.launch_kernels(payload, scripts, CHIP)


@pytest.mark.parametrize("is_scripted", [True, False])
@pytest.mark.parametrize("is_filled", [True, False])
def test_a_matmul_gives_the_same_as_kernels(is_scripted: bool, is_filled: bool) -> None:
    scripts = {PROBLEM: first_script(PROBLEM)} if is_scripted else {}
    function = host_function(payload(PROBLEM, is_filled), launched(scripts))
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(size).astype(np.float32) for size in ((20, 7), (7, 12), (20, 12)))
    expected = a @ b + (0 if is_filled else c)
    function(a, b, c)
    np.testing.assert_allclose(c, expected, rtol=0, atol=1e-5)
    assert function.allocations == 0


def test_two_matmuls_of_one_problem_share_a_kernel_with_its_name_and_leave_no_fill() -> None:
    found: list[Problem] = []
    once, by_script = payload(PROBLEM, is_filled=True), launched({PROBLEM: first_script(PROBLEM)})
    assert "gpu.launch blocks" not in read(once, by_script)
    twice = once.replace("return", f"{MATMUL}\n      return")
    read(twice, lambda payload: found.extend(problems_of(payload)))
    assert found == [PROBLEM]
    text = read(twice, by_script)
    assert (text.count("gpu.func"), text.count("gpu.launch_func")) == (1, 2)
    assert "@kernels_20x12x7_f32_nn::@matmul_kernel_20x12x7_f32_nn" in text


def test_elementwise_ops_and_reductions_become_kernels() -> None:
    text = text_beside(__file__, "SQUARES")
    made = read(text, launched({}))
    assert (made.count("linalg."), made.count("gpu.launch blocks")) == (0, 4)
    x = np.random.default_rng(0).standard_normal((9, 33)).astype(np.float32)
    turned, sums = host_function(text, launched({}))(x)
    np.testing.assert_array_equal(turned, (x * x).T)
    np.testing.assert_allclose(sums, (x * x).sum(1), rtol=1e-5)


MMA: dict[str, int | str] = {"block_m": 32, "block_n": 32, "block_k": 16, "warps_m": 1, "warps_n": 1}
MMA |= {"depth": 2, "shared": "pad", "group": 1, "splits": 1, "split_by": "atomic", "exchange": 0}
MMA |= {"prefetch": 1, "pack": 0, "promote": 0}
WGMMA: dict[str, int | str] = {"block_m": 64, "block_n": 64, "block_k": 64, "stages": 2, "consumers": 1}
WGMMA |= {
    "cluster": "1x1",
    "bands": "rows",
    "stores": "direct",
    "splits": 1,
    "split_by": "workspace",
    "tiles": 1,
    "group": 1,
}


def script(problem: Problem, **knobs: Any) -> Script:
    return Script.of(GpuPoint(problem, Candidate.of("matmul_gpu_mma_sync", MMA | knobs)).script())


def payload(problem: Problem, is_filled: bool) -> str:
    (m, n, k), kind, result = problem.sizes, problem.dtype, problem.output or "f32"
    a, b, c = f"memref<{m}x{k}x{kind}>", f"memref<{k}x{n}x{kind}>", f"memref<{m}x{n}x{result}>"
    fill = f"linalg.fill ins(%zero : {result}) outs(%c : {c})" if is_filled else ""
    return filled(__file__, "MATMUL", of_a=a, of_b=b, of_c=c, result=result, fill=fill)


def check(code: Any, problem: Problem, launches: int, *, chip: str = "sm_90", is_filled: bool = True) -> None:
    """Runs a program twice on random arrays, compares with numpy, and counts the launches of a call."""
    m, n, k = problem.sizes
    rng = np.random.default_rng(0)
    dtype = NUMPY_DTYPES[problem.dtype]
    half_unit = 0.016 if problem.output else 1e-4  # of 16 bits, up to 32
    with on_simulator(code, chip=chip, order="lifo") as (program, device):
        for _ in range(2):
            a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))
            c = rng.standard_normal((m, n)).astype(NUMPY_DTYPES[problem.output or "f32"])
            expected = a.astype(np.float64) @ b.astype(np.float64) + (0 if is_filled else c)
            program(a, b, c)
            np.testing.assert_allclose(c.astype(np.float64), expected, rtol=0, atol=half_unit)
    assert device.counts.launches == 2 * launches


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
def test_kernels_of_tensor_maps_are_right(dtype: str, output: str, knobs: dict[str, Any], form: Form) -> None:
    problem = Matmul(136, 72, 80, dtype, output=output)  # no whole tiles
    point = GpuPoint(problem, Candidate.of("matmul_gpu_wgmma", WGMMA | knobs), "sm_90a")
    bound, compiler = {problem: Script.of(point.script())}, compiler_of(TargetName.parse("simulator:sm_90a"))
    code = compiler.compile(payload(problem, True), None, bound, DeviceOptions(form)).code
    check(code, problem, 1, chip="sm_90a")


@pytest.mark.parametrize("is_filled", [True, False])
@pytest.mark.parametrize(
    ("k", "knobs", "kernels"),
    [
        (64, {}, 1),
        (64, {"splits": 2, "split_by": "atomic"}, 2),  # zeros first
        (64, {"splits": 2, "split_by": "workspace"}, 2),
        (64, {"splits": 2, "split_by": "last_block"}, 2),  # zeros first
        (61, {"pack": 1}, 2),  # A has rows of odd length
    ],
)
def test_kernels_with_scratch_are_right(k: int, knobs: dict[str, Any], kernels: int, is_filled: bool) -> None:
    problem = Matmul(40, 24, k, dtype="f16")
    bound = {problem: script(problem, **knobs)}
    code = compiler_of(SIMULATOR).compile(payload(problem, is_filled), None, bound).code
    check(code, problem, kernels + (not is_filled), is_filled=is_filled)


def test_a_script_for_other_sizes_or_without_a_kernel_is_refused() -> None:
    problem = Matmul(40, 24, 64, dtype="f16")
    of_other_sizes = "this schedule is for one linalg.matmul, tensor<16x16xf16> .* to be equal to 1, got 0"
    refused = {of_other_sizes: script(Matmul(16, 8, 16, dtype="f16"))}
    refused[r"outside of every gpu\.launch"] = Script.of(text_beside(__file__, "NO_KERNEL"))
    for reason, wrong in refused.items():
        with pytest.raises(CandidateError, match=reason) as caught:
            compiler_of(SIMULATOR).compile(payload(problem, True), None, {problem: wrong})
        assert caught.value.stage is Stage.COMPILE


WHOLE, VIEW = "memref<32x64xf32>", "memref<32x32xf32, strided<[64, 1]>>"
MOVED = "memref<32x32xf32, strided<[64, 1], offset: 32>>"
SQUARE, OPEN = "memref<32x32xf32>", "memref<?x64xf32>"
OF_A = f"%v = memref.subview %a[0, 0] [32, 32] [1, 1] : {WHOLE} to {VIEW}"
ALSO_OF_A = OF_A.replace("%v =", "%w =")
BESIDE = f"%w = memref.subview %a[0, 32] [32, 32] [1, 1] : {WHOLE} to {MOVED}"


def times_b(view: str, kind: str, target: str, target_kind: str = SQUARE) -> str:
    return (
        f"linalg.fill ins(%zero : f32) outs(%{target} : {target_kind})\n"
        f"linalg.matmul ins(%{view}, %b : {kind}, {SQUARE}) outs(%{target} : {target_kind})"
    )


FIRST, SECOND = times_b("v", VIEW, "c"), times_b("v", VIEW, "d")
STORE = f"memref.store %one, %a[%c1, %c1] : {WHOLE}"


def function(*lines: str) -> str:
    return filled(__file__, "VIEWS", whole=WHOLE, square=SQUARE, body="\n".join(lines))


def integers() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    shapes = ((32, 64), (32, 32), (32, 32), (32, 32))
    return tuple(rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes)


def launches(text: str, *orders: StreamOrder) -> tuple[int, int]:
    """Returns the launches of the tuned kernel, and the others: of packing, if that is all there is.

    Each of the orders, of which "lifo" shows most, gives what the host's loops give, and nothing is reported.
    """
    expected = integers()
    cpu_function(text)(*expected, True)
    compiled = compiler_of(SIMULATOR).compile(text, "main")
    assert compiled.problems == (Matmul(32, 32, 32),)
    for order in orders:
        device = SimulatedDevice("sm_90", order, seed=1)
        recorder = RecordingDevice(device)
        program, found = DeviceFunction(compiled.code, recorder), integers()
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
REPEATED = ("%c3 = arith.constant 3 : index", "scf.for %i = %c1 to %c3 step %c1 {")
OPENED = f"%u = memref.cast %a : {WHOLE} to {OPEN} memref.store %one, %u[%c1, %c1] : {OPEN}"
INTO_A = times_b("v", VIEW, "w", MOVED)  # the first product is written next to the view, into its buffer
CASES: dict[str, tuple[tuple[str, ...], tuple[int, int], tuple[StreamOrder, ...]]] = {
    "one copy for two": ((OF_A, FIRST, SECOND), (2, 1), ("lifo",)),
    "equal views": ((OF_A, ALSO_OF_A, FIRST, times_b("w", VIEW, "d")), (2, 1), ("lifo",)),
    "only reads between": ((OF_A, FIRST, *LOAD, SECOND), (2, 1), ("lifo",)),
    "a store between": ((OF_A, FIRST, STORE, SECOND), (2, 2), STREAM_ORDERS),
    "a store in a branch": ((OF_A, FIRST, f"scf.if %flag {{ {STORE} }}", SECOND), (2, 2), ("fifo",)),
    "a store through a view": ((OF_A, FIRST, OPENED, SECOND), (2, 2), ("random",)),
    "another view": ((OF_A, BESIDE, FIRST, times_b("w", MOVED, "d")), (2, 2), ("lifo",)),
    # two of packing, one that puts the first product in its place
    "a matmul into the view's buffer": ((OF_A, BESIDE, INTO_A, SECOND), (2, 3), ("lifo",)),
    "in front of a loop and in it": ((OF_A, FIRST, *REPEATED, SECOND, "}"), (3, 3), ("lifo",)),
    "a store around their block": ((OF_A, STORE, *REPEATED, FIRST, SECOND, "}"), (4, 2), ("lifo",)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_view_is_packed_once_as_long_as_nobody_may_write_its_memory(name: str) -> None:
    lines, expected, orders = CASES[name]
    assert launches(function(*lines), *orders) == expected


def test_on_the_host_too_one_copy_serves_both() -> None:
    compiled = compiler_of(TargetName("cpu")).compile(function(OF_A, FIRST, SECOND))
    assert compiled.problems == (Matmul(32, 32, 32),)
    caller, _, _ = compiled.code.llvm.partition("llvm.func @matmul_0(")  # which packs B on some processors
    assert caller.count("llvm.call @malloc(") == 1
    program, (a, b, c, d) = HostFunction(compiled.code), integers()
    program(a, b, c, d, True)
    np.testing.assert_allclose(c, a[:, :32] @ b, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(c, d)
    assert program.allocations == 0
