"""Masks that are arguments are read byte by byte, whatever the width of the vectors."""

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tuner.core.candidate import TargetName

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.cpu.masks")


def choosing(width: int) -> str:
    return f"""func.func @main(%m: tensor<{width}xi1>, %x: tensor<4x{width}xf32>) -> tensor<4x{width}xf32> {{
      %c = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4x{width}xf32>
      %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>,
          affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
        ins(%m, %x : tensor<{width}xi1>, tensor<4x{width}xf32>) outs(%e : tensor<4x{width}xf32>) {{
      ^bb0(%k: i1, %in: f32, %out: f32):
        %s = arith.select %k, %in, %c : f32
        linalg.yield %s : f32
      }} -> tensor<4x{width}xf32>
      return %r : tensor<4x{width}xf32>
    }}"""


@pytest.mark.drawn(2)
@pytest.mark.parametrize("width", [7, 16, 40, 128])
def test_a_mask_chooses_the_columns_that_numpy_chooses(width: int) -> None:
    from tuner.programs.execution import host_function

    rng = np.random.default_rng(0)
    mask, x = rng.random(width) > 0.5, rng.standard_normal((4, width), np.float32)
    compiled = compiler_of(TargetName("cpu")).compile(choosing(width), as_fusions=True)
    assert compiled.image is not None
    assert [fusion.strategy for fusion in compiled.image.code.fusions] == ["elementwise_cpu"]
    np.testing.assert_array_equal(host_function(compiled)(mask, x), np.where(mask, x, 0))
