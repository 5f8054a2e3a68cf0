"""Rows that no vector divides have the greatest and the least element of numpy, whatever their sign."""

from typing import Any

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tuner.core.candidate import TargetName

pytestmark = pytest.mark.mlir


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


# Reductions of truths over rows that no vector divides are right, whatever the width.


def with_ones_in_hidden(rows: Any) -> Any:
    """Returns the rows, ones in place of those that are -inf throughout, by a fusion's code."""
    from benchmarks.program_compiler import compiler_of
    from tuner.core.candidate import TargetName
    from tuner.programs.execution import host_function

    height, width = rows.shape
    text = f"""#whole = affine_map<(i, j) -> (i, j)>
    #row = affine_map<(i, j) -> (i)>
    func.func @main(%x: tensor<{height}x{width}xf32>) -> tensor<{height}x{width}xf32> {{
      %least = arith.constant 0xFF800000 : f32
      %one = arith.constant 1.0 : f32
      %true = arith.constant true
      %e = tensor.empty() : tensor<{height}xi1>
      %f = linalg.fill ins(%true : i1) outs(%e : tensor<{height}xi1>) -> tensor<{height}xi1>
      %h = linalg.generic {{indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}}
        ins(%x : tensor<{height}x{width}xf32>) outs(%f : tensor<{height}xi1>) {{
      ^bb0(%in: f32, %out: i1):
        %c = arith.cmpf oeq, %in, %least : f32
        %a = arith.andi %c, %out : i1
        linalg.yield %a : i1
      }} -> tensor<{height}xi1>
      %t = tensor.empty() : tensor<{height}x{width}xf32>
      %r = linalg.generic {{indexing_maps = [#whole, #row, #whole],
          iterator_types = ["parallel", "parallel"]}}
        ins(%x, %h : tensor<{height}x{width}xf32>, tensor<{height}xi1>)
        outs(%t : tensor<{height}x{width}xf32>) {{
      ^bb0(%in: f32, %all: i1, %out: f32):
        %s = arith.select %all, %one, %in : f32
        linalg.yield %s : f32
      }} -> tensor<{height}x{width}xf32>
      return %r : tensor<{height}x{width}xf32>
    }}"""
    compiled = compiler_of(TargetName("cpu")).compile(text, as_fusions=True)
    assert compiled.image is not None
    assert [fusion.kind for fusion in compiled.image.code.fusions] == ["rows"]
    return host_function(compiled)(rows)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("width", [2, 6, 16, 17, 40, 64, 72, 129, 201])
def test_rows_of_any_width_are_hidden_where_every_element_is(width: int) -> None:
    rows = np.full((width + 3, width), -np.inf, np.float32)
    rows[np.arange(width), np.arange(width)] = 2  # one element is seen; of the last three rows none
    expected = rows.copy()
    expected[width:] = 1
    np.testing.assert_array_equal(with_ones_in_hidden(rows), expected)


# Masks that are arguments are read byte by byte, whatever the width of the vectors.


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
