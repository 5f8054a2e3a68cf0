"""``tuner.element_types``: every type changes, there and back; what computes is refused."""

import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside
from tuner.core.problem import Matmul
from tuner.payload.gpu import Scratch, gpu_payload_mlir

pytestmark = pytest.mark.mlir

LINE = '"tuner.element_types"(%func) {{from = "{0}", to = "{1}"}} : (!transform.any_op) -> ()'
NOTHING = 'transform.annotate %func "tuner.seen" : !transform.any_op'
PAYLOAD = text_beside(__file__, "PAYLOAD")


def with_line(line: str) -> str:
    return PAYLOAD.replace("    return", f"    {line}\n    return")


def test_there_and_back_changes_nothing(apply: Apply) -> None:
    problem = Matmul(16, 16, 16, "bf16")
    payload = gpu_payload_mlir(problem, Scratch()).replace("@matmul", "@f")
    there_and_back = f"{LINE.format('bf16', 'f16')}\n    {LINE.format('f16', 'bf16')}\n    {NOTHING}"
    assert apply(there_and_back, payload) == apply(NOTHING, payload)


def test_bytes_take_the_place_of_8_bit_floats(apply: Apply) -> None:
    text = apply(LINE.format("f8E4M3FN", "i8"), PAYLOAD.replace("bf16", "f8E4M3FN"))
    assert "f8E4M3FN" not in text
    assert "arith.constant 0 : i8" in text
    assert "arith.constant dense<0> : vector<2x2xi8>" in text


SHOWN = LINE.format("bf16", "f16"), PAYLOAD
BECOMES = {
    "element_types": (LINE.format("bf16", "f16"), PAYLOAD),
}
REFUSED = [
    (LINE.format("bf16", "f32"), PAYLOAD, "found bf16 to f32, allowed types of one width"),
    (
        LINE.format("bf16", "f16"),
        with_line("%s = arith.addf %zero, %zero : bf16"),
        r"found arith\.addf on bf16, allowed moves and products",
    ),
]


NUMBERS = ("1.0 : f8E5M2", "dense<1.0> : vector<2xf8E5M2>", "dense<[0.0, 1.0]> : vector<2xf8E5M2>")
REFUSED += [
    (
        LINE.format("f8E5M2", "i8"),
        with_line(f"%one = arith.constant {number}").replace("bf16", "f8E5M2"),
        "found a number of f8E5M2, allowed zeros to become i8",
    )
    for number in NUMBERS
]
