"""The epilogue accumulate, C += A B: C is read, restored between timed calls, and nothing else is added."""

import ml_dtypes
import numpy as np
import pytest

from tests.support.own_script import own_script
from tuner.core.errors import CandidateError, UsageError
from tuner.core.interfaces import Effort
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.core.problem import Problem
from tuner.core.problem_classes import PackedProblem
from tuner.targets.cpu.callables import load_callable
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator
from tuner.targets.cpu.loaded_kernel import LoadedKernel
from tuner.targets.cpu.packed_callables import PackingKernel

pytestmark = pytest.mark.mlir
ADDED = Matmul(33, 40, 64, epilogue="accumulate")
BRIEF = Effort(budget_s=0.01, min_samples=3, max_samples=5)


def loaded(problem: Problem, evaluator: CpuEvaluator) -> LoadedKernel:
    return evaluator.load(problem, CpuCompiler().compile(problem, own_script(problem)))


def test_each_call_adds_a_product_to_the_array_that_is_needed() -> None:
    problem = BatchMatmul(2, 9, 40, 16, "bf16", "nt", "accumulate", "bf16")
    kernel = load_callable(problem, own_script(problem).text, 1)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, argument.shape) for argument in problem.arguments[:2])
    c = rng.integers(-4, 5, problem.c_shape).astype(ml_dtypes.bfloat16)
    expected = c.astype(np.float64) + 2 * (a @ b.swapaxes(1, 2))
    narrow = [array.astype(ml_dtypes.bfloat16) for array in (a, b)]
    for _ in range(2):
        assert kernel(*narrow, out=c) is c
    np.testing.assert_array_equal(c.astype(np.float64), expected)
    with pytest.raises(UsageError, match="out: is missing, but is added to"):
        kernel(*narrow)


@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_values_do_not_grow_while_a_kernel_is_timed(cache: str) -> None:
    problem = Matmul(33, 40, 64, epilogue="accumulate", cache=cache)
    evaluator = CpuEvaluator(1)
    kernel = loaded(problem, evaluator)
    rng = np.random.default_rng(0)
    evaluator.verify(problem, kernel, rng)
    assert evaluator.measure(problem, kernel, BRIEF, rng).median_s > 0
    evaluator._arrays[problem].evaluate()  # noqa: SLF001 - of the last timed call


@pytest.mark.parametrize("epilogue", ["none", "relu"])
def test_a_kernel_that_does_not_add_is_wrong(epilogue: str) -> None:
    evaluator = CpuEvaluator(1)
    other = loaded(Matmul(33, 40, 64, epilogue=epilogue), evaluator)
    with pytest.raises(CandidateError, match="elements are wrong"):
        evaluator.verify(ADDED, other, np.random.default_rng(0))


def test_a_kernel_that_reads_c_is_wrong_where_c_is_only_written() -> None:
    evaluator = CpuEvaluator(1)
    adding = loaded(ADDED, evaluator)
    with pytest.raises(CandidateError, match="elements are wrong"):
        evaluator.verify(Matmul(33, 40, 64), adding, np.random.default_rng(0))


# The same with a constant B.


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("dtype", "output", "layout"),
    [("f32", "", "nn"), ("i8", "", "nt"), ("bf16", "bf16", "nt"), ("f16", "f16", "nn"), ("f64", "", "nt")],
)
def test_products_by_a_constant_matrix_are_added_and_kernels_that_do_not_add_are_wrong(
    dtype: str, output: str, layout: str
) -> None:
    problem = Matmul(33, 40, 64, dtype, layout, "accumulate", output, weights="constant")
    evaluator = CpuEvaluator(1)
    rng = np.random.default_rng(0)
    kernel = loaded(problem, evaluator)
    assert evaluator.verify(problem, kernel, rng).max_error <= 1.0
    evaluator.verify_on_extremes(problem, (kernel,), rng)
    assert evaluator.measure(problem, kernel, BRIEF, rng).median_s > 0
    evaluator._arrays[problem].evaluate()  # noqa: SLF001 - of the last timed call
    other = loaded(Matmul(33, 40, 64, dtype, layout, "none", output, weights="constant"), evaluator)
    with pytest.raises(CandidateError, match="elements are wrong"):
        evaluator.verify(problem, other, rng)
    with pytest.raises(CandidateError, match="elements are wrong"):
        evaluator.verify(Matmul(33, 40, 64, dtype, layout, output=output, weights="constant"), kernel, rng)


def test_each_call_by_packed_weights_adds_to_the_array_that_is_needed() -> None:
    problem = Matmul(5, 33, 17, epilogue="accumulate", weights="constant")
    assert isinstance(problem, PackedProblem)
    script = own_script(problem)
    kernel = load_callable(problem, script.text, 1)
    assert isinstance(kernel, PackingKernel)
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (5, 17)).astype(np.float32)
    b = rng.integers(-2, 3, (17, 33)).astype(np.float32)
    c = np.ones((5, 33), np.float32)
    layer = kernel.pack(b)
    for _ in range(2):
        assert layer(a, out=c) is c
    np.testing.assert_array_equal(c, 1 + 2 * (a @ b))
    with pytest.raises(UsageError, match="out: is missing, but is added to"):
        layer(a)
