"""Trials of a matmul with an epilogue schedule the fusion of a program that is this matmul."""

import math
from pathlib import Path

import numpy as np
import pytest

import tuner
from tuner.core.programs import SAME_CONTRACTION, TUNED
from tuner.models.run.fused_program import FusedFunction

pytestmark = [pytest.mark.mlir, pytest.mark.slow]
M, N, K = 8, 48, 32
WEIGHTS = np.resize(np.array([0.25, -0.5, 0.75], np.float32), (K, N))
MODEL = """
#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
func.func @main(%x: tensor<8x32xf32>, %b: tensor<48xf32>) -> tensor<8x48xf32> {
  %w = arith.constant dense<WEIGHTS> : tensor<32x48xf32>
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 1.41421354 : f32
  %e = tensor.empty() : tensor<8x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x48xf32>) -> tensor<8x48xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x32xf32>, tensor<32x48xf32>) outs(%f : tensor<8x48xf32>)
    -> tensor<8x48xf32>
  %y = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
    ins(%p, %b : tensor<8x48xf32>, tensor<48xf32>) outs(%e : tensor<8x48xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.addf %in, %bias : f32
    %q = arith.divf %s, %root : f32
    %erf = math.erf %q : f32
    %d = arith.addf %erf, %one : f32
    %g = arith.mulf %d, %half : f32
    %r = arith.mulf %s, %g : f32
    linalg.yield %r : f32
  } -> tensor<8x48xf32>
  return %y : tensor<8x48xf32>
}
"""


@pytest.mark.parametrize(("weights", "origin"), [("constant", TUNED), ("", SAME_CONTRACTION)])
def test_a_program_takes_what_tuning_its_matmul_with_the_epilogue_found(
    tmp_path: Path, weights: str, origin: str
) -> None:
    db = tmp_path / "results.db"
    problem = tuner.Matmul(M, N, K, epilogue="bias_gelu", weights=weights)
    run = tuner.tune(problem, "cpu", trials=3, db=db, workers=1, baseline="openblas" if not weights else "")
    assert run.best is not None
    program = tuner.compile_program(MODEL.replace("WEIGHTS", str(WEIGHTS.tolist())), "cpu", db=db)
    assert isinstance(program, FusedFunction)
    (fusion,) = program.code.fusions
    assert fusion.origin == origin
    best = run.best.record.candidate
    if origin == TUNED:
        assert (fusion.strategy, fusion.knobs) == (best.strategy, best.choices)
    x, b = np.ones((M, K), np.float32), np.linspace(-9, 1, N, dtype=np.float32)
    sums = WEIGHTS.sum(axis=0) + b
    row = [0.5 * number * (1 + math.erf(number / 2**0.5)) for number in sums.tolist()]
    np.testing.assert_allclose(program(x, b), np.tile(row, (M, 1)), rtol=1e-5, atol=1e-5)
