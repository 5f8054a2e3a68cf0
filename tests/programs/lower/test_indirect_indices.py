"""Indices that are data are asserted to be inside their tensor; indices of the iteration are not."""

import pytest

from tests.mlir.kernels import parsed
from tuner.mlir.bindings import ir
from tuner.mlir.rewrite.walking import walk
from tuner.programs.lower.entry import function_named
from tuner.programs.lower.indirect_indices import assert_indirect_indices

pytestmark = pytest.mark.mlir

GATHER = """
#map = affine_map<(d0) -> (d0)>
func.func @main(%table: tensor<ROWSx4xf32>, %at: tensor<5xi64>) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<5xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
    ins(%at : tensor<5xi64>) outs(%e : tensor<5xf32>) {
  ^bb0(%i: i64, %out: f32):
    %row = arith.index_cast %i : i64 to index
    %c4 = arith.constant 4 : index
    %n = linalg.index 0 : index
    %column = arith.remsi %n, %c4 : index
    %x = tensor.extract %table[%row, %column] : tensor<ROWSx4xf32>
    linalg.yield %x : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}"""
LOOP = """
func.func @main(%table: tensor<8xi64>, %first: index) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0 : i64
  %sum, %last = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero, %at = %first) -> (i64, index) {
    %x = tensor.extract %table[%i] : tensor<8xi64>
    %y = tensor.extract %table[%at] : tensor<8xi64>
    %next = arith.index_cast %y : i64 to index
    %t = arith.addi %s, %x : i64
    scf.yield %t, %next : i64, index
  }
  return %sum : i64
}"""


def asserted(text: str) -> list[str]:
    with parsed(text) as module:
        assert_indirect_indices(function_named(module, "main"))
        assert module.operation.verify()
        return [ir.StringAttr(op.attributes["msg"]).value for op in walk(module, "cf.assert")]


@pytest.mark.parametrize("rows", ["9", "?"])
def test_only_the_index_that_is_data_is_asserted(rows: str) -> None:
    said = f"an index into tensor<{rows}x4xf32> is outside of dimension 0"
    assert asserted(GATHER.replace("ROWS", rows)) == [said]


def test_what_a_loop_carries_is_data_and_its_number_is_not() -> None:
    assert asserted(LOOP) == ["an index into tensor<8xi64> is outside of dimension 0"]
