"""The table of epilogues: the values of a row are those of its formula, within the errors that it states."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from tuner.core.bounded import FUNCTIONS, INTEGERS, Bounded, Float64
from tuner.core.epilogues import BEFORE, BIAS, EPILOGUES, OPERATIONS, EpilogueStep, epilogue_row
from tuner.core.errors import UsageError
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.payload.reference import after_sums

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
    result = after_sums(epilogue, Bounded.exact(sums, "f64"), named)
    np.testing.assert_allclose(result.value, FORMULAS[name](sums, *arrays), rtol=1e-12)
    singles = [array.astype(np.float32) for array in arrays]
    narrow = sums.astype(np.float32)
    wide = {key: array.astype(np.float64) for key, array in zip(named, singles, strict=True)}
    result = after_sums(epilogue, Bounded.exact(narrow, "f32"), wide)
    computed = FORMULAS[name](narrow, *singles)
    assert np.all(np.abs(computed.astype(np.float64) - result.value) <= result.error)
    assert np.all(result.error <= 3e-6 * (1 + np.abs(result.value)))


def test_an_error_of_a_sum_is_passed_on_by_the_slope() -> None:
    sums = np.array([-3.0, -0.2, 0.0, 0.7, 9.0])
    for name in ("gelu", "gelu_tanh", "silu", "relu"):
        epilogue = EPILOGUES[name]
        exact = after_sums(epilogue, Bounded.exact(sums, "f32"), {})
        moved = after_sums(epilogue, Bounded.exact(sums + 1e-3, "f32"), {})
        result = after_sums(epilogue, Bounded(sums, np.full(5, 1e-3), "f32"), {})
        assert np.all(np.abs(moved.value - exact.value) <= result.error * 1.01)


def test_nan_and_infinity_follow_ieee_754_and_what_overflows_a_type_is_allowed() -> None:
    sums = np.array([np.nan, np.inf, -np.inf, -100.0, -1e30])
    result = after_sums(EPILOGUES["silu"], Bounded.exact(sums, "f32"), {})
    assert np.isnan(result.value[0])
    assert result.value[1] == np.inf
    assert np.isnan(result.value[2])
    exact = -100.0 / (1.0 + np.exp(100.0))  # exp(100) is no float32: there -0
    assert abs(exact - result.value[3]) <= result.error[3]
    assert result.value[4] == 0.0


@pytest.mark.parametrize("name", EPILOGUES)
def test_each_step_is_an_operation_and_each_name_is_defined_once(name: str) -> None:
    epilogue = EPILOGUES[name]
    defined = ["sum", *(argument.name for argument in epilogue.arguments)]
    if epilogue.reads_output:
        defined.append(BEFORE)
    for step in epilogue.steps:
        assert step.operation in OPERATIONS
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


def test_each_operation_has_a_value_with_an_error() -> None:
    assert {operation.op("f32") for operation in OPERATIONS.values()} <= FUNCTIONS.keys()
    assert {operation.op("i32") for operation in OPERATIONS.values()} - {""} <= INTEGERS.keys()


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
