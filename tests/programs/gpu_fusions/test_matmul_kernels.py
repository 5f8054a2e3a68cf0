"""Matmuls with epilogues as kernels of scripts: what is read next to the sums, and what is a kernel apart."""

import numpy as np
import pytest

from tests.programs.fusions.payload_text import PayloadText
from tests.programs.gpu_fusions.simulated import require_close, simulated

pytestmark = pytest.mark.mlir

RNG = np.random.default_rng(11)


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.slow
def test_an_epilogue_reads_matrices_rows_and_columns() -> None:
    payload = PayloadText()
    shapes = ((32, 64), (64, 32), (32, 32), (32,), (32,))
    x, w, residual, bias, scale = (payload.argument(*each) for each in shapes)
    sums = payload.binary("add", payload.matmul(x, w), bias)
    text = payload.text(payload.binary("add", payload.by_row("mul", sums, scale), residual))
    given = [numbers(*shape) for shape in shapes]
    ran = simulated(text, *given)
    wide = given[0].astype(np.float64)
    wanted = (wide @ given[1] + given[3]) * given[4][:, None] + given[2]
    require_close(ran.results[0], wanted)
    assert ran.work.launches == 1
    assert [problem.key for problem in ran.compiled.problems] == ["matmul 32x32x64 f32 nn none"]


@pytest.mark.slow
def test_equal_layers_have_one_kernel() -> None:
    payload, arrays = PayloadText(), [numbers(64, 64) / 8 for _ in range(3)]
    value = payload.argument(32, 64)
    for array in arrays:
        value = payload.unary("tanh", payload.matmul(value, payload.weight(array)))
    text, given = payload.text(value), numbers(32, 64)
    ran = simulated(text, given)
    wanted = given.astype(np.float64)
    for array in arrays:
        wanted = np.tanh(wanted @ array)
    require_close(ran.results[0], wanted)
    assert len(ran.kernels) == 3
    assert len(set(ran.kernels)) == 1


@pytest.mark.slow
def test_a_result_among_others_is_a_kernel_apart_with_its_reason() -> None:
    payload = PayloadText()
    x, w, other = payload.argument(32, 64), payload.argument(64, 32), payload.argument(32, 8)
    product = payload.unary("exp", payload.matmul(x, w))
    text = payload.text(payload.concatenated([product, payload.unary("exp", other)], 1))
    given = [numbers(32, 64) / 8, numbers(64, 32) / 8, numbers(32, 8)]
    ran = simulated(text, *given)
    wanted = np.exp(np.concatenate([given[0].astype(np.float64) @ given[1], given[2]], axis=1))
    require_close(ran.results[0], wanted)
    reasons = [fusion.reason for fusion in ran.compiled.code.fusions]
    assert any("not rows of f32" in reason for reason in reasons)
    assert ran.work.launches == 1 + len(reasons)
