"""Numbers of Python next to tensors: powers that PyTorch computes specially, and what a type cannot hold."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch, about its own code

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

import tuner.torch  # noqa: E402 - after the skip
from tests.models.exports.export import Function  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402

INF, NAN = float("inf"), float("nan")
SPECIAL = torch.tensor([NAN, 0.0, -0.0, INF, -INF, -1.0, -2.5, 2.0, 0.25, -3e38, 1e20] * 2)
EXPONENTS = (0, 0.5, -0.5, 1, 2.0, 3, -1.0, -2, 1.5)


def powers(x: Any) -> tuple[Any, ...]:
    return (*(x**exponent for exponent in EXPONENTS), torch.float_power(x, 0.5), torch.float_power(x, -0.5))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.float16], ids=str)
def test_powers_of_special_numbers_are_those_of_eager_mode(dtype: Any) -> None:
    x = SPECIAL.to(dtype)
    for found, wanted in zip(tuner.torch.compile(Function(powers), (x,))(x), powers(x), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-2, atol=0, equal_nan=True)
        is_number = ~torch.isnan(wanted)
        assert torch.equal(found.signbit()[is_number], wanted.signbit()[is_number])


def powers_of_integers(x: Any) -> tuple[Any, ...]:
    roots = x**0.5, x**-0.5, x**-2.0, x**1.5, x ** torch.tensor(2.0)
    return *roots, torch.pow(2.5, x), x**0, x**1, x**2, x**3, x**10, x**63, x.square()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.uint8, torch.int16, torch.int32], ids=str)
def test_powers_of_integers_are_those_of_eager_mode(dtype: Any) -> None:
    x = torch.tensor([-4, -1, 0, 1, 4, 9]).to(dtype)
    found = tuner.torch.compile(Function(powers_of_integers), (x,))(x)
    for found_power, wanted in zip(found, powers_of_integers(x), strict=True):
        torch.testing.assert_close(found_power, wanted, equal_nan=True)


def wrapped(x: Any) -> tuple[Any, ...]:
    sums = x * 300, x * 44, x + 300, x - 300, x - 7, 300 - x, x * -300
    return *sums, x == 300, x < 300, x & 300, x << 256


def divided(x: Any) -> tuple[Any, ...]:
    return (
        *(x // 300, x % 300, torch.fmod(x, 300), torch.div(x, 300, rounding_mode="trunc")),
        torch.maximum(x, torch.tensor(300)),
    )


def wrapped_wide(x: Any) -> tuple[Any, ...]:
    return x * 2**40, x + 2**40, x - (2**40 + 7), x // (2**40 + 3)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (wrapped, torch.int8),
        (wrapped, torch.uint8),
        (divided, torch.int8),
        (wrapped, torch.int16),
        (wrapped_wide, torch.int32),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_numbers_that_a_type_cannot_hold_lose_their_high_bits(function: Any, dtype: Any) -> None:
    x = torch.tensor([-128, -5, 0, 3, 127, 255]).to(dtype)
    for found, wanted in zip(tuner.torch.compile(Function(function), (x,))(x), function(x), strict=True):
        assert torch.equal(found, wanted)


def around_numbers(x: Any) -> tuple[Any, ...]:
    differences = 0.1 - x, 1e40 - x, 1 / 3 - x, 70000.0 - x
    rests = torch.fmod(x, INF), torch.fmod(x, 2.5), 3 % x, 2.5 % x, 3 // x, 2.7 // x
    return *differences, *rests


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_what_is_subtracted_from_a_number_or_divides_one_is_as_in_eager_mode(dtype: Any) -> None:
    x = SPECIAL.to(dtype)
    found = tuner.torch.compile(Function(around_numbers), (x,))(x)
    for found_number, wanted in zip(found, around_numbers(x), strict=True):
        torch.testing.assert_close(found_number, wanted, rtol=0, atol=0, equal_nan=True)
        is_number = ~torch.isnan(wanted)
        assert torch.equal(found_number.signbit()[is_number], wanted.signbit()[is_number])


def with_factors(x: Any, y: Any) -> tuple[Any, ...]:
    sums = torch.add(x, y, alpha=0.7), torch.add(x, 0.3, alpha=0.7), x.clone().add_(y, alpha=-0.3), x + 0.3
    differences = torch.sub(x, y, alpha=0.7), torch.sub(x, 0.3, alpha=0.7), x - 0.3, torch.sub(x, y, alpha=2)
    from_numbers = torch.rsub(x, 0.3, alpha=0.7), torch.rsub(x, y, alpha=0.7), torch.rsub(x, 3, alpha=2)
    quotients = torch.floor_divide(x, 0.3), torch.div(x, -0.7, rounding_mode="floor"), x / 0.3
    return *sums, *differences, *from_numbers, *quotients, torch.addcdiv(x, y, x, value=0.7)


def with_0d_tensors(x: Any, number: Any) -> tuple[Any, ...]:
    sums = torch.add(x, number, alpha=0.7), torch.sub(x, number, alpha=0.7), x + number, number - x
    quotients = x / number, number / x, x // number, torch.div(x, number, rounding_mode="trunc")
    return *sums, x * number, number * x, *quotients


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_numbers_next_to_narrow_floats_are_rounded_where_eager_mode_rounds_them(dtype: Any) -> None:
    draws = torch.Generator().manual_seed(0)
    x, y = torch.randn((2, 32, 64), generator=draws).to(dtype)
    for function, other in ((with_factors, y), (with_0d_tensors, torch.tensor(0.3))):
        found = tuner.torch.compile(Function(function), (x, other))(x, other)
        for index, wanted in enumerate(function(x, other)):
            assert found[index].dtype is wanted.dtype
            assert torch.equal(found[index], wanted), (function.__name__, index)


def test_a_limit_that_is_nan_makes_all_elements_nan() -> None:
    function: Callable[[Any], Any] = lambda x: (x.clamp(min=NAN), x.clamp(-3, NAN), x.clamp(max=NAN))  # noqa: E731
    for found in tuner.torch.compile(Function(function), (SPECIAL,))(SPECIAL):
        assert torch.isnan(found).all()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.clamp(-300, 300), r"aten\.clamp at .* fails: value cannot be converted to type int8_t"),
        (lambda x: x.clamp(max=300), r"aten\.clamp at .* fails: value cannot be converted to type int8_t"),
        (lambda x: x.masked_fill(x > 3, 300), r"aten\.masked_fill\.Scalar at .*: value cannot be converted"),
        (lambda x: torch.where(x > 3, x, 300), r"aten\.where\.ScalarOther at .*: value cannot be converted"),
        (lambda x: torch.full_like(x, 300), r"aten\.full_like at .*: value cannot be converted"),
        (
            lambda x: torch.nn.functional.pad(x, (1, 1), value=300),
            r"aten\.pad.* at .*: value cannot be converted",
        ),
    ],
)
def test_what_eager_mode_does_not_convert_is_refused_with_its_error(function: Any, message: str) -> None:
    x = torch.tensor([-5, 3], dtype=torch.int8)
    with pytest.raises(RuntimeError, match="cannot be converted"):
        function(x)
    with pytest.raises(UsageError, match=message):
        tuner.torch.compile(Function(function), (x,))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda x: x - 1,
            r"aten\.sub\.Tensor at .* fails: Subtraction, the `-` operator, with a bool tensor",
        ),
        (lambda x: 0.5 - x, r"aten\.rsub\.Scalar at .* fails: Subtraction, the `-` operator, with a bool"),
        (
            lambda x: x.long() - x,
            r"aten\.sub\.Tensor at .* fails: Subtraction, the `-` operator, with a bool",
        ),
        (
            lambda x: x.long() - True,
            r"aten\.sub\.Tensor at .* fails: Subtraction, the `-` operator, with a b",
        ),
        (lambda x: x * 2**63, r"aten\.mul\.Tensor at .* fails: Promotion for uint16, uint32, uint64 types"),
    ],
)
def test_what_eager_mode_refuses_of_booleans_is_refused_with_its_error(function: Any, message: str) -> None:
    x = torch.tensor([True, False])
    with pytest.raises(RuntimeError, match=r"Subtraction, the|Promotion for"):
        function(x)
    with pytest.raises(UsageError, match=message):
        tuner.torch.compile(Function(function), (x,))


def test_sums_and_comparisons_of_booleans_with_numbers_are_as_in_eager_mode() -> None:
    x = torch.tensor([True, False])
    function: Callable[[Any], Any] = lambda x: (x + True, True + x, x == 2**40, x < 2**31, x >= 2**40)  # noqa: E731
    for found, wanted in zip(tuner.torch.compile(Function(function), (x,))(x), function(x), strict=True):
        assert torch.equal(found, wanted)


def test_whole_exponents_that_a_float_lacks_are_rounded_to_one() -> None:
    x = torch.tensor([-3.0, -1.0, 0.5])
    function: Callable[[Any], Any] = lambda x: (x ** (2**63 - 1), x ** (2**24 + 1), x.double() ** (2**53 + 1))  # noqa: E731
    for found, wanted in zip(tuner.torch.compile(Function(function), (x,))(x), function(x), strict=True):
        assert torch.equal(found, wanted)


def test_indices_beyond_the_numbers_of_a_type_are_no_numbers_of_it() -> None:
    x = torch.arange(400).to(torch.int8)
    function: Callable[[Any], Any] = lambda x: x[300] + x[10:310].sum()  # noqa: E731
    assert torch.equal(tuner.torch.compile(Function(function), (x,))(x), function(x))
