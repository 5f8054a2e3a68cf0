"""What is tuned is what runs: the PTX of a kernel in a program is that of its trial, but for its name."""

import functools
import re
from typing import Any

import numpy as np
import pytest

from tests.gpu.target.strategies.points import simt
from tests.mlir.kernels import parsed
from tests.models.lowering.test_kernels import MMA
from tests.support.fuzzing.program_check import SIMULATOR
from tests.support.gpu_point import GpuPoint
from tests.support.program_compiler import compiler_of
from tests.texts import filled, text_beside
from tuner.core.candidate import Candidate
from tuner.core.interfaces import Script
from tuner.core.matmul import Matmul
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.run.device_function import DeviceFunction
from tuner.mlir.bindings import gpu, ir
from tuner.mlir.ir.reading import walk

POINTS = {
    "naive": GpuPoint(Matmul(40, 24, 64), Candidate.of("matmul_gpu_naive", {"block_m": 4, "block_n": 32})),
    "simt": simt(Matmul(64, 64, 40)),
    "mma_sync": GpuPoint(Matmul(40, 24, 64, "f16"), Candidate.of("matmul_gpu_mma_sync", MMA)),
}
# Beside the matmul: nothing, work of static size, work of a size that is known at run time alone.
STATIC = """linalg.fill ins(%zero : f32) outs(%e : memref<8xf32>)"""
DYNAMIC = text_beside(__file__, "DYNAMIC")


def texts_of(llvm: str) -> list[str]:
    with parsed(llvm) as module:
        binaries = walk(module, "gpu.binary")
        objects = [gpu.ObjectAttr(ir.ArrayAttr(each.attributes["objects"])[0]) for each in binaries]
        return [bytes(each.object).rstrip(b"\0").decode() for each in objects]


@functools.cache
def compiled(strategy: str, surrounding: str, *, keeps_kernels: bool = False) -> Any:
    problem, script = POINTS[strategy].problem, Script.of(POINTS[strategy].script())
    (m, n, k), dtype = problem.sizes, problem.dtype
    a, b, c = f"memref<{m}x{k}x{dtype}>", f"memref<{k}x{n}x{dtype}>", f"memref<{m}x{n}xf32>"
    text, scripts = filled(__file__, "PROGRAM", a=a, b=b, c=c, surrounding=surrounding), {problem: script}
    return compiler_of(SIMULATOR).compile(text, "f", scripts, keeps_kernels=keeps_kernels).code


@pytest.mark.drawn(2)
@pytest.mark.parametrize("surrounding", ["", STATIC, DYNAMIC], ids=["alone", "static", "dynamic"])
@pytest.mark.parametrize("strategy", POINTS)
def test_the_ptx_in_a_program_is_that_of_the_trial(strategy: str, surrounding: str) -> None:
    expected = POINTS[strategy].program().text
    (name,) = set(re.findall(r"\.entry (\w+)\(", expected))
    texts = texts_of(compiled(strategy, surrounding).llvm)
    found = [re.sub(rf"\b{name}_\w+?(?=_param|\b)", name, text) for text in texts]
    assert expected in found
    assert len(found) == 1 + bool(surrounding)


def test_the_reference_of_a_program_does_not_say_how_long_its_kernels_took_to_make() -> None:
    assert "properties = {O = 3 : i32}" in compiled("naive", STATIC, keeps_kernels=True).reference


@pytest.mark.drawn(2)
@pytest.mark.parametrize("strategy", POINTS)
def test_a_tuned_kernel_runs_next_to_one_that_takes_descriptors(strategy: str) -> None:
    point = POINTS[strategy]
    m, n, k = point.problem.sizes
    rng, dtype = np.random.default_rng(0), np.float16 if point.problem.dtype == "f16" else np.float32
    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((m, k), (k, n)))
    c, d, e = np.full((m, n), np.nan, np.float32), np.arange(5, dtype=np.float32), np.zeros(8, np.float32)
    device = SimulatedDevice(order="lifo")
    DeviceFunction(compiled(strategy, DYNAMIC), device)(a, b, c, d, e)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert d.tolist() == [0, 2, 4, 6, 8]
    assert not device.reports
