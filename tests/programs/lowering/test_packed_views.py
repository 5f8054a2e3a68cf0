"""Views that matmuls take are packed once, as long as nobody writes their memory: counted in the trace."""

from typing import Any

import numpy as np
import pytest

from benchmarks.fuzzing.program_check import SIMULATOR
from benchmarks.program_compiler import compiler_of
from tuner.core.candidate import TargetName
from tuner.core.problem import Matmul
from tuner.simulator.device.streams import ORDERS, Order

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.matmul_calls")

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
    return f"""func.func @main(%a: {WHOLE}, %b: {SQUARE}, %c: {SQUARE}, %d: {SQUARE}, %flag: i1) {{
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      {body}
      return
    }}"""


def arrays() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    shapes = ((32, 64), (32, 32), (32, 32), (32, 32))
    return tuple(rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes)


def launches(text: str, *orders: Order) -> tuple[int, int]:
    """Returns the launches of the tuned kernel, and the others: of packing, if that is all there is.

    Each of the orders, of which "lifo" shows most, gives what the host's loops give, and nothing is reported.
    """
    from tuner.programs.run.device_function import DeviceFunction
    from tuner.programs.run.host_function import HostFunction
    from tuner.programs.run.recording_device import RecordingDevice
    from tuner.simulator.device.simulated_device import SimulatedDevice

    expected = arrays()
    HostFunction(compiler_of(TargetName("cpu")).compile(text, "main", None).code)(*expected, True)
    compiled = compiler_of(SIMULATOR).compile(text, "main")
    assert compiled.problems == (Matmul(32, 32, 32),)
    for order in orders or ("lifo",):
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines", [(OF_A, FIRST, SECOND), (OF_A, ALSO_OF_A, FIRST, multiply("w", VIEW, "b", "d"))]
)
def test_a_view_of_two_matmuls_is_packed_once(lines: tuple[str, ...]) -> None:
    assert launches(function(*lines)) == (2, 1)


@pytest.mark.slow
def test_work_between_that_only_reads_leaves_one_copy() -> None:
    load = (f"%x = memref.load %a[%c1, %c1] : {WHOLE}", f"memref.store %x, %c[%c1, %c1] : {SQUARE}")
    assert launches(function(OF_A, FIRST, *load, SECOND)) == (2, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("between", "orders"),
    [
        (STORE, ORDERS),
        (f"scf.if %flag {{ {STORE} }}", ("fifo",)),
        (f"%u = memref.cast %a : {WHOLE} to {OPEN} memref.store %one, %u[%c1, %c1] : {OPEN}", ("random",)),
    ],
    ids=["store", "in a branch", "through a view"],
)
def test_a_view_that_may_be_written_between_is_packed_again(between: str, orders: tuple[Order, ...]) -> None:
    assert launches(function(OF_A, FIRST, between, SECOND), *orders) == (2, 2)


@pytest.mark.slow
def test_another_view_is_packed_by_itself() -> None:
    assert launches(function(OF_A, BESIDE, FIRST, multiply("w", MOVED, "b", "d"))) == (2, 2)


@pytest.mark.slow
def test_a_matmul_into_the_views_buffer_ends_its_copy() -> None:
    """The first product is written beside the view, into the same buffer."""
    into = (
        f"linalg.fill ins(%zero : f32) outs(%w : {MOVED})\n"
        f"linalg.matmul ins(%v, %b : {VIEW}, {SQUARE}) outs(%w : {MOVED})"
    )
    tuned, others = launches(function(OF_A, BESIDE, into, SECOND))
    assert (tuned, others) == (2, 3)  # two of packing, one that puts the first product in its place


@pytest.mark.slow
def test_views_in_a_loop_and_in_front_of_it_have_copies_of_their_own() -> None:
    loop = ("%c3 = arith.constant 3 : index", "scf.for %i = %c1 to %c3 step %c1 {", SECOND, "}")
    assert launches(function(OF_A, FIRST, *loop)) == (3, 3)


@pytest.mark.slow
def test_a_store_around_the_block_of_two_matmuls_leaves_them_one_copy() -> None:
    loop = ("%c3 = arith.constant 3 : index", "scf.for %i = %c1 to %c3 step %c1 {", FIRST, SECOND, "}")
    assert launches(function(OF_A, STORE, *loop)) == (4, 2)


def test_on_the_host_too_one_copy_serves_both() -> None:
    from tuner.programs.run.host_function import HostFunction

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
