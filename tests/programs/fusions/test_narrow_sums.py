"""Which matmuls of i8 sum in i32 in place of i64, and that they compute the same."""

import numpy as np
import pytest

from tests.programs.fusions.grouped_execution import FusedFunction, formed
from tests.texts import text_beside
from tuner.core.fusions import CONTRACTION

pytestmark = pytest.mark.mlir


PLAIN = {"lead": "", "type": "i8", "start": "0", "cast": "", "name": "matmul", "dims": "i, j"}
PLAIN |= {"loops": '"parallel", "parallel"', "returned": "%r", "result": "tensor<4x5xi32>"}
BATCH = {"lead": "3x", "name": "batch_matmul", "dims": "b, i, j", "result": "tensor<3x4x5xi32>"}
BATCH |= {"loops": '"parallel", "parallel", "parallel"'}


def payload(change: dict[str, str]) -> str:
    text = text_beside(__file__, "TEXT")
    for name, part in (PLAIN | change).items():
        text = text.replace(name.upper(), part)
    return text


@pytest.mark.parametrize("change", [{}, BATCH], ids=["matmul", "batch_matmul"])
def test_truncated_sums_of_bytes_are_of_i32(change: dict[str, str]) -> None:
    program = formed(payload(change))
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
    text = payload(change).replace("%r : (tensor", "%r : tensor").replace("i32>)\n}", "i32>\n}")
    fusions = formed(text).program.fusions
    assert any("xi64>" in each.text and "linalg.matmul" in each.ops for each in fusions)
