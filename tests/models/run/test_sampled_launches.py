"""Programs of which the simulator runs some blocks: the reference's content goes on, errors are told."""

import re
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import CandidateError, Stage
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.run.device_function import DeviceFunction
from tuner.gpu.run.sampled_launches import SampledLaunches

pytestmark = pytest.mark.mlir
SIMULATOR = TargetName.parse("simulator:sm_90")
SIZE = 256
OWN_KERNEL = text_beside(__file__, "OWN_KERNEL")
ROWS = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
ROLLED = np.roll(ROWS, -5, 1) * np.float32(3)


def compiled(text: str, **options: Any) -> Any:
    return compiler_of(SIMULATOR).compile(text, keeps_kernels=True, **options).code


@pytest.fixture(scope="module")
def chain() -> Any:
    return compiled(text_beside(__file__, "CHAIN"))


def ran(code: Any, limit: int, *arguments: Any, order: str = "fifo", **limits: float) -> tuple[Any, Any]:
    """Runs on arrays in place; returns the samples of each launch and the device's reports."""
    samples: list[Any] = []
    run_launch = SampledLaunches(code, limit, samples.append, **limits).run
    device = SimulatedDevice("sm_90", order, run_launch=run_launch)  # type: ignore[arg-type] # one of its words
    with closing(DeviceFunction(code, device)) as program:
        program(*arguments)
    return samples, device.reports


def factors() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((SIZE, 48), (48, SIZE)))
    return a, b, np.zeros((SIZE, SIZE), np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["fifo", "lifo"])
def test_what_was_not_simulated_is_the_references_and_what_was_is_compared(chain: Any, order: str) -> None:
    a, b, d = factors()
    samples, reports = ran(chain, 4, a, b, d, order=order)
    np.testing.assert_allclose(d, 2 * (a.astype(np.float64) @ b), rtol=1e-5, atol=1e-5)
    assert reports == ()
    shares = {sample.reference: (sample.simulated, sample.blocks) for sample in samples}
    assert shares == {"float64 products": (6, 8), "the interpreter": (6, 256)}
    sizes = {sample.reference: sum(each.actual.size for each in sample.compared) for sample in samples}
    assert sizes == {"float64 products": 6 * 128 * 64, "the interpreter": 6 * 256}
    for sample in samples:
        for each in sample.compared:
            assert np.isfinite(each.actual).all()
            np.testing.assert_allclose(each.actual, each.expected, rtol=1e-4, atol=1e-4)


def changed(code: Any, pattern: str, replacement: str) -> Any:
    text, count = re.subn(pattern, replacement, code.llvm, count=1)
    assert count == 1
    return replace(code, llvm=text)


@pytest.mark.parametrize(
    ("pattern", "replacement", "reference"),
    [
        (r"add\.rn\.f32 (\S*%r6, %r5, %r5)", r"mul.rn.f32 \1", "the interpreter"),
        (r"fma\.rn\.f32 (\S*%r\d+), (%r\d+), %r\d+,", r"fma.rn.f32 \1, \2, \2,", "float64 products"),
    ],
)
def test_a_wrong_kernel_is_reported_alone(chain: Any, pattern: str, replacement: str, reference: str) -> None:
    a, b, d = factors()
    samples, _ = ran(changed(chain, pattern, replacement), 4, a, b, d)
    np.testing.assert_allclose(d, 2 * (a.astype(np.float64) @ b), rtol=1e-5, atol=1e-5)
    for sample in samples:
        errors = [np.abs(each.actual - each.expected).max() for each in sample.compared]
        assert (max(errors) > 0.01) == (sample.reference == reference)


@pytest.mark.slow
def test_an_element_of_a_product_that_is_not_stored_is_reported(chain: Any) -> None:
    holes = changed(chain, r"(matmul_kernel.*?)st\.global\.v4[^;]*;", r"\1")
    with pytest.raises(CandidateError, match="elements of a tile were not written") as caught:
        ran(holes, 4, *factors())
    assert caught.value.stage is Stage.VERIFY


def test_what_was_not_simulated_is_sampled_also_of_a_reference_out_of_time(chain: Any) -> None:
    holes = changed(chain, r"(add\.rn\.f32 \S*%r6, %r5, %r5;.*?)st\.global\.b32[^;]*;", r"\1")
    samples, _ = ran(holes, 4, *factors())
    (compared,) = next(each.compared for each in samples if each.reference == "the interpreter")
    assert compared.actual.size == 6 * 256
    assert (compared.actual != compared.expected).all()
    a = ROWS.copy()
    (sample,), reports = ran(compiled(OWN_KERNEL), 4, a, 5, 3.0, references_limit_s=-1.0)
    done = (a != ROWS).any(1)
    assert (sample.simulated, sample.finished, int(done.sum())) == (6, 6, 6)
    np.testing.assert_array_equal(a[done], ROLLED[done])
    assert reports == ()


@pytest.mark.parametrize("shape", ["64x32", "?x32"])
def test_a_kernel_of_the_program_with_numbers_and_shared_memory_is_sampled(shape: str) -> None:
    code = compiled(OWN_KERNEL.replace("memref<64x32x", f"memref<{shape}x"))
    a = ROWS.copy()
    samples, reports = ran(code, 4, a, 5, 3.0)
    np.testing.assert_array_equal(a, ROLLED)
    assert [(each.simulated, each.blocks) for each in samples] == [(6, 64)]
    assert reports == ()


@pytest.mark.parametrize(("more", "limit"), [("", 64), ("nvvm.fence.mbarrier.init", 4)])
def test_few_blocks_and_kernels_that_nothing_else_can_do_run_whole(more: str, limit: int) -> None:
    text = OWN_KERNEL.replace("gpu.barrier", f"gpu.barrier {more}")
    a = np.ones((64, 32), np.float32)
    samples, _ = ran(compiled(text), limit, a, 5, 3.0)
    assert [(each.simulated, each.blocks, each.reference) for each in samples] == [(64, 64, "")]
    assert (a == 3).all()
