"""Which matmuls of i8 sum in i32 in place of i64, and that they compute the same."""

import numpy as np
import pytest

from tests.programs.fusions.grouped_execution import FusedFunction, formed
from tuner.core.fusions import CONTRACTION

pytestmark = pytest.mark.mlir

TEXT = """func.func @main(%a: tensor<{lead}4x6x{type}>, %b: tensor<{lead}6x5x{type}>) -> {result} {{
  %start = arith.constant {start} : i64
  %e = tensor.empty() : tensor<{lead}4x5xi64>
  %zeros = linalg.fill ins(%start : i64) outs(%e : tensor<{lead}4x5xi64>) -> tensor<{lead}4x5xi64>
  %w = linalg.{name} {cast} ins(%a, %b : tensor<{lead}4x6x{type}>, tensor<{lead}6x5x{type}>)
    outs(%zeros : tensor<{lead}4x5xi64>) -> tensor<{lead}4x5xi64>
  %n = tensor.empty() : tensor<{lead}4x5xi32>
  %r = linalg.generic {{
    indexing_maps = [affine_map<({d}) -> ({d})>, affine_map<({d}) -> ({d})>], iterator_types = [{loops}]
  }} ins(%w : tensor<{lead}4x5xi64>) outs(%n : tensor<{lead}4x5xi32>) {{
    ^bb0(%x: i64, %o: i32):
      %y = arith.trunci %x : i64 to i32
      linalg.yield %y : i32
  }} -> tensor<{lead}4x5xi32>
  return {returned} : {result}
}}"""
PLAIN = {"lead": "", "type": "i8", "start": "0", "cast": "", "name": "matmul", "d": "i, j"}
PLAIN |= {"loops": '"parallel", "parallel"', "returned": "%r", "result": "tensor<4x5xi32>"}
BATCH = {"lead": "3x", "name": "batch_matmul", "d": "b, i, j", "result": "tensor<3x4x5xi32>"}
BATCH |= {"loops": '"parallel", "parallel", "parallel"'}


@pytest.mark.parametrize("change", [{}, BATCH], ids=["matmul", "batch_matmul"])
def test_truncated_sums_of_bytes_are_of_i32(change: dict[str, str]) -> None:
    program = formed(TEXT.format(**PLAIN | change))
    (fusion,) = program.program.fusions
    assert fusion.kind == CONTRACTION
    assert "xi64>" not in fusion.text
    lead = (3,) if change else ()
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, (*lead, *shape)).astype(np.int8) for shape in ((4, 6), (6, 5)))
    (found,) = FusedFunction(program)(a, b)
    np.testing.assert_array_equal(found, a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize(
    "change",
    [
        {"type": "i32"},
        {"start": "1"},
        {"cast": "{cast = #linalg.type_fn<cast_unsigned>}"},
        {"returned": "%w, %r", "result": "(tensor<4x5xi64>, tensor<4x5xi32>)"},
    ],
    ids=["i32", "not zeros", "unsigned", "read as i64"],
)
def test_other_sums_stay_wide(change: dict[str, str]) -> None:
    text = TEXT.format(**PLAIN | change).replace("%r : (tensor", "%r : tensor").replace("i32>)\n}", "i32>\n}")
    fusions = formed(text).program.fusions
    assert any("xi64>" in each.text and "linalg.matmul" in each.ops for each in fusions)
