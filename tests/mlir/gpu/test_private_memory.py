"""Temporaries that threads allocate in kernels: compiled and run, or refused."""

import re
from typing import Any

import numpy as np
import pytest

from benchmarks.fuzzing.program_check import SIMULATOR
from benchmarks.program_compiler import compiler_of
from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.gpu import kernel_memory

pytestmark = pytest.mark.mlir


# Each thread copies its row, and takes the element of it that %n says: LLVM cannot do without the copy.
FORALL = text_beside(__file__, "FORALL")
# The same, a temporary in each of four iterations
LOOP = text_beside(__file__, "LOOP")
TENSORS = text_beside(__file__, "TENSORS")


def ran(text: str, *arguments: Any) -> Any:
    """Runs a program on the simulator, which must find nothing wrong."""
    from tuner.programs.run.device_function import DeviceFunction
    from tuner.simulator.device.simulated_device import SimulatedDevice

    device = SimulatedDevice("sm_90")
    program = DeviceFunction(compiler_of(SIMULATOR).compile(text, None, None).code, device)
    result = program(*arguments)
    program.close()
    assert device.reports == ()
    return result


def inputs() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((64, 16)).astype(np.float32), rng.integers(0, 16, 64, np.int32)


@pytest.mark.parametrize("frees", [True, False])
def test_a_temporary_of_each_thread_is_its_own(frees: bool) -> None:
    x, n = inputs()
    y = np.zeros(64, np.float32)
    ran(FORALL if frees else re.sub(r"memref\.dealloc .*", "", FORALL), x, n, y)
    np.testing.assert_array_equal(y, x[np.arange(64), n])


def test_a_temporary_of_each_turn_of_a_loop_is_one_place() -> None:
    x, n = inputs()
    y = np.zeros(64, np.float32)
    ran(LOOP, x, n, y)
    np.testing.assert_array_equal(y, x[np.arange(64), n] + x[np.arange(64), 8 + n % 4])


def test_a_temporary_tensor_of_each_thread_is_its_own() -> None:
    x, n = inputs()
    np.testing.assert_array_equal(ran(TENSORS, x, n), 2 * x[np.arange(64), n])


KERNEL = """gpu.module @m {{
  gpu.func @k(%g: memref<?xf32>, %n: index, %f: f32) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    {0}
    gpu.return
  }}
}}"""
HANDED_ON = text_beside(__file__, "HANDED_ON")
CHOSEN = text_beside(__file__, "CHOSEN")


def rewritten(body: str) -> str:
    with parsed(KERNEL.format(body)) as module:
        kernel_memory.use_private_memory(module)
        assert module.operation.verify()
        return str(module)


def test_allocations_become_allocas_at_the_start_and_nothing_is_freed() -> None:
    text = rewritten(CHOSEN)
    assert text.count("memref.alloca()") == 2
    assert "memref.alloc()" not in text
    assert "memref.dealloc" not in text
    aligned = rewritten("%t = memref.alloc() {alignment = 32 : i64} : memref<4xf32>")
    assert "memref.alloca() {alignment = 32 : i64} : memref<4xf32>" in aligned


def test_the_alloca_of_a_temporary_in_a_loop_is_outside_of_it() -> None:
    text = rewritten(text_beside(__file__, "FREED_IN_A_LOOP"))
    assert text.index("memref.alloca()") < text.index("scf.for")


@pytest.mark.parametrize("kind", ["alloc", "alloca"])
def test_a_kernel_may_begin_with_its_allocations(kind: str) -> None:
    first = "%c0 = arith.constant 0 : index"
    made = f"%t = memref.{kind}() : memref<4xf32> %u = memref.{kind}() : memref<4xf32>"
    with parsed(KERNEL.format("").replace(first, f"{made} {first}")) as module:
        kernel_memory.use_private_memory(module)
        assert module.operation.verify()
        assert str(module).count("memref.alloca()") == 2


def test_an_alloca_in_a_loop_moves_out_of_it() -> None:
    text = rewritten("""scf.for %i = %c0 to %n step %c1 {
      %own = memref.alloca() : memref<2048xf32, #gpu.address_space<private>>
      memref.store %f, %own[%c1] : memref<2048xf32, #gpu.address_space<private>>
    }""")
    assert text.index("memref.alloca()") < text.index("scf.for")


def test_shared_memory_is_not_a_threads_own() -> None:
    kind = "memref<4xf32, #gpu.address_space<workgroup>>"
    text = rewritten(f"%t = memref.alloc() : {kind}\n memref.dealloc %t : {kind}")
    assert "memref.alloc()" in text
    assert "memref.dealloc" in text


def test_a_temporary_that_is_large_and_slow_has_a_place() -> None:
    assert "memref.alloca() : memref<131072xf32>" in rewritten("%t = memref.alloc() : memref<131072xf32>")


@pytest.mark.parametrize(
    ("body", "stage", "message"),
    [
        (
            "%t = memref.alloc(%n) : memref<?xf32>",
            Stage.COMPILE,
            r"found memref<\?xf32> allocated by each thread, allowed a static shape",
        ),
        (
            "%t = memref.alloc() : memref<65536xf32> %u = memref.alloc() : memref<65537xf32>",
            Stage.RESOURCES,
            r"found 524292 bytes allocated by each thread, allowed 524288",
        ),
        (
            HANDED_ON,
            Stage.COMPILE,
            (
                r"found memory of one iteration of a loop that scf\.yield forwards,"
                r" allowed loads, stores and views"
            ),
        ),
        (
            "memref.dealloc %g : memref<?xf32>",
            Stage.COMPILE,
            r"found memref\.dealloc of other memory, allowed what it allocated itself",
        ),
    ],
)
def test_what_has_no_place_is_refused_in_one_line(body: str, stage: Stage, message: str) -> None:
    with pytest.raises(CandidateError, match=rf"^kernel k: {message} \(at line \d+:\d+\)$") as failure:
        rewritten(body)
    assert failure.value.stage is stage
