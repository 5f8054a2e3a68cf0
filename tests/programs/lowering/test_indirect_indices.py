"""Indices that are data are asserted to be inside their tensor; indices of the iteration are not."""

import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.mlir.bindings import ir
from tuner.mlir.ir.reading import walk
from tuner.programs.lowering.entry import function_named
from tuner.programs.lowering.read_program import assert_indirect_indices

pytestmark = pytest.mark.mlir

GATHER = text_beside(__file__, "GATHER")
LOOP = text_beside(__file__, "LOOP")


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
