"""Which row of the table of epilogues follows a product, in whatever order its operations come."""

import pytest

from tests import fusion_texts as texts
from tuner.core.epilogues import EPILOGUES, OPERATIONS
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem_classes import PackedProblem
from tuner.mlir.epilogues import RULES
from tuner.mlir.fusions.facts import facts_of

pytestmark = pytest.mark.mlir
PRODUCT = texts.product(8, 16, 4, "bias")
ADDED = PRODUCT[PRODUCT.index("%r = arith.addf") :].partition("\n")[0]


def with_body(*lines: str) -> str:
    """Returns a product whose epilogue is ``lines`` on %x0, a sum, and %x1, a bias; %r is its result."""
    assert PRODUCT.count(ADDED) == 1
    return PRODUCT.replace(ADDED, "\n".join(lines))


def test_each_operation_of_epilogues_has_a_rule() -> None:
    assert OPERATIONS.keys() - RULES.keys() == set(), "RULES of tuner/mlir/epilogues.py lacks an operation"


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8"])
@pytest.mark.parametrize("epilogue", [name for name, row in EPILOGUES.items() if not row.reads_output])
def test_each_row_is_recognized_in_the_text_of_its_matmul(epilogue: str, dtype: str) -> None:
    try:
        problem = Matmul(8, 16, 64, dtype, epilogue=epilogue, weights="constant")
    except UsageError:
        assert dtype == "i8"
        return
    assert isinstance(problem, PackedProblem)
    facts = facts_of(problem.text)
    assert (facts.epilogue, facts.output) == (epilogue, problem.result_dtype)


SHIFTED = "%s = arith.addf %x1, %x0 : f32"


@pytest.mark.parametrize(
    ("lines", "epilogue"),
    [
        ((SHIFTED, "%r = arith.maximumf %cz, %s : f32"), "bias_relu"),
        ((SHIFTED, "%g = arith.cmpf ugt, %s, %cz : f32", "%r = arith.select %g, %s, %cz : f32"), "bias_relu"),
        ((SHIFTED, "%g = arith.cmpf ult, %s, %cz : f32", "%r = arith.select %g, %s, %cz : f32"), ""),
        (  # as torch-mlir writes x * sigmoid(x)
            (
                *(SHIFTED, "%c1 = arith.constant 1.0 : f32", "%n = arith.negf %s : f32"),
                *("%power = math.exp %n : f32", "%d = arith.addf %power, %c1 : f32"),
                *("%q = arith.divf %c1, %d : f32", "%r = arith.mulf %q, %s : f32"),
            ),
            "bias_silu",
        ),
        (  # as torch-mlir writes GELU
            (
                *(SHIFTED, "%c1 = arith.constant 1.0 : f32", "%two = arith.constant 1.41421354 : f32"),
                *("%h = arith.constant 0.5 : f32", "%q = arith.divf %s, %two : f32"),
                "%erf = math.erf %q : f32",
                *(
                    "%d = arith.addf %erf, %c1 : f32",
                    "%halved = arith.mulf %d, %h : f32",
                    "%r = arith.mulf %s, %halved : f32",
                ),
            ),
            "bias_gelu",
        ),
        (("%r = arith.mulf %x0, %x1 : f32",), ""),
        ((SHIFTED, "%r = arith.addf %s, %x1 : f32"), ""),
        ((SHIFTED, "%r = math.sqrt %s : f32"), ""),
        ((SHIFTED, "%c1 = arith.constant 1.0 : f32", "%r = arith.maximumf %s, %c1 : f32"), ""),
        (("%r = arith.addf %x1, %x1 : f32",), ""),
    ],
)
def test_an_order_of_operations_is_none_of_an_epilogue(lines: tuple[str, ...], epilogue: str) -> None:
    assert facts_of(with_body(*lines)).epilogue == epilogue


def test_what_is_no_matmul_of_two_arguments_has_no_epilogue_of_the_table() -> None:
    assert facts_of(texts.product(8, 16, 4)).epilogue == "none"
    for text in (texts.product(8, 16, 4, batch=3), texts.product(8, 16, 4, "silu", pairs=True)):
        assert facts_of(text).epilogue == ""
    assert facts_of(texts.softmax(5, 7)).epilogue == ""
    assert "none" in EPILOGUES
