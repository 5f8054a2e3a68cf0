"""The op of a script that fails is found where MLIR names the payload op alone."""

import pytest

from tests.mlir.scripts import PAYLOAD, script
from tuner.core.errors import SCRIPT, CandidateError, OpPlace
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.transform import failing_op

pytestmark = pytest.mark.mlir

ANNOTATE = 'transform.annotate %product "seen" : !transform.any_op'
VECTORIZE = "transform.structured.vectorize %product vector_sizes [3, 3] : !transform.any_op"


@pytest.mark.parametrize(
    ("ops", "line"),
    [((VECTORIZE,), 5), ((ANNOTATE, VECTORIZE), 6), ((ANNOTATE, VECTORIZE, ANNOTATE, ANNOTATE), 6)],
)
def test_the_op_is_found_wherever_it_stands(ops: tuple[str, ...], line: int) -> None:
    text = script(*ops)
    with (
        transform.new_context(),
        ir.Location.unknown(),
        pytest.raises(CandidateError, match=r"^linalg\.matmul at payload:2:14: Attempted to vectorize"),
    ):
        transform.apply_script(transform.parse(PAYLOAD, "payload"), transform.parse(text, "script"))
    assert failing_op(text, PAYLOAD) == OpPlace(SCRIPT, "transform.structured.vectorize", line, 5)


@pytest.mark.parametrize("text", [script(ANNOTATE), "module {", "module {}"])
def test_a_script_that_applies_or_is_none_has_no_such_op(text: str) -> None:
    assert failing_op(text, PAYLOAD) is None
