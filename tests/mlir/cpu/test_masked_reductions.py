"""Rows that no vector divides have the greatest and the least element of numpy, whatever their sign."""

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.mlir.cpu.lowering")


def reduced(operation: str, start: str, rows: Any) -> Any:
    """Returns the reduction of each row by a fusion's code, scheduled by its first configuration."""
    from benchmarks.program_compiler import compiler_of
    from tuner.core.candidate import TargetName
    from tuner.programs.execution import host_function

    height, width = rows.shape
    text = f"""func.func @main(%x: tensor<{height}x{width}xf32>) -> tensor<{height}xf32> {{
      %c = arith.constant {start} : f32
      %e = tensor.empty() : tensor<{height}xf32>
      %f = linalg.fill ins(%c : f32) outs(%e : tensor<{height}xf32>) -> tensor<{height}xf32>
      %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]}}
        ins(%x : tensor<{height}x{width}xf32>) outs(%f : tensor<{height}xf32>) {{
      ^bb0(%in: f32, %out: f32):
        %m = arith.{operation} %in, %out : f32
        linalg.yield %m : f32
      }} -> tensor<{height}xf32>
      return %r : tensor<{height}xf32>
    }}"""
    compiled = compiler_of(TargetName("cpu")).compile(text, as_fusions=True)
    assert compiled.image is not None
    assert [fusion.kind for fusion in compiled.image.code.fusions] == ["rows"]
    return host_function(compiled)(rows)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("width", [2, 6, 16, 17, 40])
def test_rows_of_any_width_and_sign(width: int) -> None:
    rows = 1 + np.random.default_rng(0).random((5, width), np.float32)
    np.testing.assert_array_equal(reduced("maximumf", "0xFF800000", -rows), (-rows).max(1))
    np.testing.assert_array_equal(reduced("minimumf", "0x7F800000", rows), rows.min(1))
