"""``tuner.element_types``: every type changes, there and back; what computes is refused."""

from collections.abc import Callable

import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.core.problem import Matmul
from tuner.payload.gpu import Scratch, gpu_payload_mlir

pytestmark = pytest.mark.mlir

LINE = '"tuner.element_types"(%func) {{from = "{0}", to = "{1}"}} : (!transform.any_op) -> ()'
NOTHING = 'transform.annotate %func "tuner.seen" : !transform.any_op'
PAYLOAD = text_beside(__file__, "PAYLOAD")


def test_every_type_and_constant_changes(apply: Apply, golden: Callable[[str, str], None]) -> None:
    text = apply(LINE.format("bf16", "f16"), PAYLOAD)
    assert "bf16" not in text
    golden("element_types.mlir", text)


def test_there_and_back_changes_nothing(apply: Apply) -> None:
    problem = Matmul(16, 16, 16, "bf16")
    payload = gpu_payload_mlir(problem, Scratch()).replace("@matmul", "@f")
    there_and_back = f"{LINE.format('bf16', 'f16')}\n    {LINE.format('f16', 'bf16')}\n    {NOTHING}"
    assert apply(there_and_back, payload) == apply(NOTHING, payload)


def test_types_of_other_sizes_are_refused(apply: Apply) -> None:
    with pytest.raises(CandidateError, match="found bf16 to f32, allowed types of one width"):
        apply(LINE.format("bf16", "f32"), PAYLOAD)


def test_arithmetic_on_the_type_is_refused(apply: Apply) -> None:
    adding = PAYLOAD.replace("    return", "    %s = arith.addf %zero, %zero : bf16\n    return")
    with pytest.raises(CandidateError, match=r"found arith\.addf on bf16, allowed moves and products"):
        apply(LINE.format("bf16", "f16"), adding)


def test_bytes_take_the_place_of_8_bit_floats(apply: Apply) -> None:
    text = apply(LINE.format("f8E4M3FN", "i8"), PAYLOAD.replace("bf16", "f8E4M3FN"))
    assert "f8E4M3FN" not in text
    assert "arith.constant 0 : i8" in text
    assert "arith.constant dense<0> : vector<2x2xi8>" in text


@pytest.mark.parametrize(
    "number", ["1.0 : f8E5M2", "dense<1.0> : vector<2xf8E5M2>", "dense<[0.0, 1.0]> : vector<2xf8E5M2>"]
)
def test_a_float_that_an_integer_would_not_be_is_refused(apply: Apply, number: str) -> None:
    payload = PAYLOAD.replace("bf16", "f8E5M2").replace(
        "    return", f"    %one = arith.constant {number}\n    return"
    )
    with pytest.raises(CandidateError, match="found a number of f8E5M2, allowed zeros to become i8"):
        apply(LINE.format("f8E5M2", "i8"), payload)
