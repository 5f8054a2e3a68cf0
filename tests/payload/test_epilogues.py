"""The table of epilogues: the values of a row are those of its formula, within the errors that it states."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from tuner.core.epilogues import BEFORE, BIAS, EPILOGUES, OPERATIONS, EpilogueStep, epilogue_row
from tuner.core.errors import UsageError
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.payload.epilogue_values import EVALUATIONS, Arithmetic, BoundedValue, Float64, evaluate

SINGLE = Arithmetic(2.0**-24, 2.0**-24, 3.4e38, 2.0**-149)
ROWS, COLUMNS = 7, 5


def erf(numbers: Float64) -> Float64:
    return np.asarray(np.vectorize(math.erf)(numbers))


def gelu(numbers: Float64) -> Float64:
    return np.asarray(numbers * (1 + erf(numbers / math.sqrt(2))) / 2)


def silu(numbers: Float64) -> Float64:
    return np.asarray(numbers / (1 + np.exp(-numbers)))


def gelu_tanh(numbers: Float64) -> Float64:
    inner = math.sqrt(2 / math.pi) * (numbers + 0.044715 * numbers**3)
    return np.asarray(numbers * (1 + np.tanh(inner)) / 2)


FORMULAS: dict[str, Callable[..., Float64]] = {
    "none": lambda c: c,
    "bias": lambda c, bias: c + bias,
    "relu": lambda c: np.maximum(c, 0),
    "bias_relu": lambda c, bias: np.maximum(c + bias, 0),
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu,
    "bias_gelu": lambda c, bias: gelu(c + bias),
    "bias_silu": lambda c, bias: silu(c + bias),
    "residual": lambda c, addend: c + addend,
    "bias_residual": lambda c, bias, addend: c + bias + addend,
    "bias_relu_residual": lambda c, bias, addend: np.maximum(c + bias, 0) + addend,
    "scale": lambda c, factor: c * factor,
    "accumulate": lambda c, before: c + before,
}


@pytest.mark.parametrize("name", EPILOGUES)
def test_values_are_those_of_the_formula_and_float32_is_within_the_error(name: str) -> None:
    epilogue, rng = EPILOGUES[name], np.random.default_rng(0)
    sums = rng.standard_normal((ROWS, COLUMNS)) * 4
    shapes = [argument.shape(ROWS, COLUMNS) for argument in epilogue.arguments]
    arrays = [np.asarray(rng.standard_normal(shape)) for shape in shapes]
    names = [argument.name for argument in epilogue.arguments]
    if epilogue.reads_output:
        names.append(BEFORE)
        arrays.append(rng.standard_normal((ROWS, COLUMNS)))
    named = dict(zip(names, arrays, strict=True))
    values, errors = evaluate(epilogue, BoundedValue(sums, np.zeros_like(sums)), named, SINGLE)
    np.testing.assert_allclose(values, FORMULAS[name](sums, *arrays), rtol=1e-12)
    singles = [array.astype(np.float32) for array in arrays]
    narrow = sums.astype(np.float32)
    wide = {key: array.astype(np.float64) for key, array in zip(named, singles, strict=True)}
    exact = BoundedValue(narrow.astype(np.float64), np.zeros_like(sums))
    values, errors = evaluate(epilogue, exact, wide, SINGLE)
    computed = FORMULAS[name](narrow, *singles)
    assert np.all(np.abs(computed.astype(np.float64) - values) <= 4 * errors + 1e-30)
    assert np.all(errors <= 1e-5 * (1 + np.abs(values)))


def test_an_error_of_a_sum_is_passed_on_by_the_slope() -> None:
    sums = np.array([-3.0, -0.2, 0.0, 0.7, 9.0])
    for name in ("gelu", "gelu_tanh", "silu", "relu"):
        epilogue = EPILOGUES[name]
        exact, _ = evaluate(epilogue, BoundedValue(sums, np.zeros(5)), {}, SINGLE)
        moved, _ = evaluate(epilogue, BoundedValue(sums + 1e-3, np.zeros(5)), {}, SINGLE)
        _, errors = evaluate(epilogue, BoundedValue(sums, np.full(5, 1e-3)), {}, SINGLE)
        assert np.all(np.abs(moved - exact) <= errors * 1.01)


def test_nan_and_infinity_follow_ieee_754_and_what_overflows_a_type_is_allowed() -> None:
    sums = np.array([np.nan, np.inf, -np.inf, -100.0, -1e30])
    values, errors = evaluate(EPILOGUES["silu"], BoundedValue(sums, np.zeros(5)), {}, SINGLE)
    assert np.isnan(values[0])
    assert values[1] == np.inf
    assert np.isnan(values[2])
    assert abs(values[3]) <= errors[3]  # exp(100) is no float32: such a kernel returns -0
    assert values[4] == 0.0


@pytest.mark.parametrize("name", EPILOGUES)
def test_each_step_has_an_evaluation_and_each_name_is_defined_once(name: str) -> None:
    epilogue = EPILOGUES[name]
    defined = ["sum", *(argument.name for argument in epilogue.arguments)]
    if epilogue.reads_output:
        defined.append(BEFORE)
    for step in epilogue.steps:
        assert step.operation in OPERATIONS.keys() & EVALUATIONS.keys()
        assert all(operand in defined for operand in step.operands if isinstance(operand, str))
        assert step.name not in (*defined, "zero", "before", "old", "rounded", "narrow", "wide")
        defined.append(step.name)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("total = add summ bias", "total reads 'summ', not defined before"),
        ("tanh = tanh sum", "a step cannot be called 'tanh', which is taken"),
        ("bias = add sum bias", "a step cannot be called 'bias', which is taken"),
        ("i = exp sum", "a step cannot be called 'i', which is taken"),
    ],
)
def test_a_row_whose_names_clash_or_are_not_defined_is_refused(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^epilogue wrong: {message}"):
        epilogue_row("wrong", (BIAS,), (line,), "no formula")


def test_the_operations_of_both_tables_are_the_same() -> None:
    assert OPERATIONS.keys() == EVALUATIONS.keys()


@pytest.mark.parametrize("line", ["x = add", "x add sum bias", "x = softplus sum"])
def test_a_step_of_another_form_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="epilogue: found"):
        EpilogueStep.parsed(line)


def test_arguments_are_those_of_the_table_with_the_type_of_c() -> None:
    problem = BatchMatmul(3, 4, 5, 6, "bf16", epilogue="bias_relu_residual", output="bf16")
    named = {argument.name: (argument.shape, argument.dtype) for argument in problem.arguments}
    assert [*named] == ["a", "b", "bias", "addend", "c"]
    assert named["bias"] == ((5,), "bf16")
    assert named["addend"] == ((3, 4, 5), "bf16")
    assert [argument.matrix_bytes for argument in problem.arguments] == [48, 60, 0, 40, 40]
    assert problem.bytes == 2 * 3 * (24 + 30 + 20 + 20) + 2 * 5


def test_integers_take_the_rows_of_integer_operations_only() -> None:
    assert Matmul(4, 4, 4, "i8", epilogue="bias_residual").extra_arguments[1].dtype == "i32"
    with pytest.raises(
        UsageError, match=r"^epilogue of i8: found 'silu', allowed none, bias_relu, bias, relu"
    ):
        Matmul(4, 4, 4, "i8", epilogue="silu")
