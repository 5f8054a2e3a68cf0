"""``tuner.set_aside_epilogue``: a scalar function from what follows a matmul."""

from collections.abc import Callable

import pytest

from tests.mlir.ops.conftest import Apply
from tuner.core.errors import CandidateError
from tuner.core.problem import Matmul
from tuner.payload.gpu import Scratch, gpu_payload_mlir

pytestmark = pytest.mark.mlir

LINE = '"tuner.set_aside_epilogue"(%func) : (!transform.any_op) -> ()'
PADDED = '"tuner.pad_views"(%func) {sizes = array<i64: 16, 32, 8>} : (!transform.any_op) -> ()\n    ' + LINE


def payload(dtype: str, epilogue: str, output: str = "") -> str:
    problem = Matmul(15, 30, 7, dtype, epilogue=epilogue, output=output)
    return gpu_payload_mlir(problem, Scratch()).replace("@matmul(", "@f(")


@pytest.mark.parametrize(
    ("dtype", "epilogue", "output"),
    [("f16", "bias_relu", ""), ("bf16", "bias_relu", "bf16"), ("f16", "none", "f16")],
)
def test_the_body_becomes_a_function_and_the_sums_go_to_the_output(
    dtype: str, epilogue: str, output: str, apply: Apply, golden: Callable[[str, str], None]
) -> None:
    text = apply(PADDED, payload(dtype, epilogue, output))
    assert "linalg.generic" not in text
    golden(f"set_aside_epilogue_{dtype}_{epilogue}_{output or 'f32'}.mlir", text)


def test_a_matmul_without_an_epilogue_is_refused(apply: Apply) -> None:
    with pytest.raises(CandidateError, match=r"found no elementwise linalg\.generic that consumes another"):
        apply(LINE, payload("f16", "none"))


def test_an_operand_that_is_computed_is_refused(apply: Apply) -> None:
    text = payload("f32", "bias_relu")
    own = "%BIAS = tensor.empty() : tensor<30xf32>"
    line = next(line for line in text.splitlines() if line.strip().startswith("%BIAS ="))
    with pytest.raises(
        CandidateError, match="an operand is computed before the epilogue; operands must be arguments"
    ):
        apply(LINE, text.replace(line, own))
