"""Strategies for AMX and VNNI on any processor: right with tiles and dot products as vectors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as draw

from benchmarks.fuzzing.cpu_points import CpuPoint, CpuPoints, KernelKind, emulated_machine
from tuner.core.problem import EPILOGUES, LAYOUTS
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator

pytestmark = pytest.mark.mlir

POINTS = CpuPoints(emulated_machine())
COMPILER, EVALUATOR = CpuCompiler(emulates=True), CpuEvaluator(1)
KINDS = (
    ("matmul_cpu_amx", "bf16", ""),
    ("matmul_cpu_amx", "bf16", "bf16"),
    ("matmul_cpu_amx", "i8", ""),
    ("matmul_cpu_vnni", "i8", ""),
)
SIZES = draw.integers(1, 300)


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "dtype", "output"), KINDS)
@settings(max_examples=5)
@given(
    sizes=draw.tuples(SIZES, SIZES, SIZES),
    layout=draw.sampled_from(LAYOUTS),
    epilogue=draw.sampled_from(EPILOGUES),
    seed=draw.integers(0, 2**32 - 1),
)
def test_any_size_layout_and_epilogue_is_right(
    strategy: str, dtype: str, output: str, sizes: tuple[int, int, int], layout: str, epilogue: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    kind = KernelKind(strategy, dtype, layout, epilogue, 1, output)
    problem = kind.problem(sizes)
    point = CpuPoint(problem, 1, POINTS.draw_again(kind, problem, rng))
    loaded = EVALUATOR.load(problem, COMPILER.compile(problem, POINTS.bind(point)))
    verdict = EVALUATOR.verify(problem, loaded, rng)
    assert verdict.elements == sizes[0] * sizes[1]
    assert verdict.max_error == 0.0 if dtype == "i8" else verdict.max_error <= 1.0, point.text
