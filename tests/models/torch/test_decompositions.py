"""What torch-mlir alone gets wrong comes out as import math
from torch: NaN, constants, reciprocals of zero, scans.

Integers are computed exactly, or refused: large ones, negative divisors, all 256 numbers of uint8.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tuner
from tests.support.program_compiler import compiler_of
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

import tuner.torch  # noqa: E402 - after the skip
from tests.models.exports.export import Function  # noqa: E402
from tuner.core import fusions  # noqa: E402
from tuner.mlir.fusions.facts import fusion_problem  # noqa: E402
from tuner.models.execution import host_function  # noqa: E402
from tuner.models.fusions.pipeline import FormedText, form_text  # noqa: E402
from tuner.models.torch.export import export_module  # noqa: E402

F = torch.nn.functional
INF, NAN = float("inf"), float("nan")
NUMBER = torch.tensor(2.0)
ONES = torch.ones(4, 4096).half()  # sums of more than 2048 need f32
LONG = torch.linspace(-2, 3, 4 * 70).reshape(4, 70)
LONG[1, 40], LONG[2, 9], LONG[3, 5], LONG[3, 66] = NAN, INF, -INF, INF
SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.5, 1e-40, 3e38, -3e38, 100.0, -100.0, INF, -INF, NAN])
CUBE = torch.linspace(-3, 3, 5 * 6 * 70).reshape(5, 6, 70)
CUBE[4, 5, 3], CUBE[0, 5, 0], CUBE[1, 5, 1] = NAN, INF, -INF
GRID = torch.linspace(-4, 4, 36).reshape(4, 9)
ROWS = [[1, NAN, 3, NAN], [2, 5, 5, -INF], [INF, INF, -1, 0], [-INF, -INF, NAN, INF], [-0.0, 0, -0.0, 0]]
HOLES = torch.tensor(ROWS)
SMALL = torch.stack([torch.zeros(9), torch.full((9,), 1e-4), GRID[0]])
BOUNDARIES = torch.tensor([1.0, -1.5, 0.0, 100.0, -100.0])
HUGE = torch.tensor([1e18, -1e30, 3.4e38, 0.5, INF, NAN, -0.0, 2.0**32, 6e4] * 3)
TENTHS = torch.tensor([0.1, 0.3, -0.1, 0.7, 16777216.0, 3.4e38, INF, NAN])
WHOLE = torch.tensor([0, 1, 16777216, 16777217, 16777219, 2**31 - 1, -16777217], dtype=torch.int32)


def turns(x: Any) -> tuple[Any, ...]:
    return x.sin(), x.cos(), x.tan()


def compared(x: Any) -> tuple[Any, ...]:
    numbers: tuple[float, ...] = (0.1, 0.3, 0.5, 16777217.0, 16777217, 2.0**31, 2**53 + 1, 1e300, INF, NAN)
    if not x.is_floating_point():
        numbers = tuple(each for each in numbers if isinstance(each, float))
    return tuple(each for y in numbers for each in (x < y, x <= y, x == y, x != y, x > y, y > x, y <= x))


def compared_wrapped(x: Any) -> tuple[Any, ...]:
    """Compares with integers that the type of x does not have, of which PyTorch takes the low bits."""
    numbers = (300, 200, -300, 2**32 + 44, -(2**40), 2**31)
    return tuple(each for y in numbers for each in (x < y, x <= y, x == y, x != y, x > y, x >= y))


def narrow_sums(x: Any) -> tuple[Any, ...]:
    return x.norm(dim=1), F.normalize(x), F.avg_pool2d(x.reshape(1, 4, 64, 64), 64)


def reduced(x: Any) -> tuple[Any, ...]:
    sums = x.sum((0, 2)), x.mean((0, 2), keepdim=True), x.mean(1), x.norm(dim=0), x[..., 1:].mean(-1)
    return *sums, x.amax((0, 2)), x.amin(1), x.softmax(1), x.log_softmax(0), x.logsumexp(1)


def shifts(x: Any) -> tuple[Any, ...]:
    numbers = tuple(each for y in (0, 7, 8, 33, 64, -1) for each in (x << y, x >> y))
    tensor = torch.tensor([0, 7, 8, 33, 63, 64, -1])
    return *numbers, x << tensor, x >> tensor, x >> tensor.to(x.dtype)


def constants(x: Any) -> tuple[Any, ...]:
    found: list[Any] = []
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64, torch.bool):
        for number in (-3, -0.25, 0.25, 3):
            y = torch.full((2,), number).to(dtype)
            found += [y < 1, y >= 0, y == 0, y > -1, y != True, y + (-1), y * (-1)]  # noqa: E712
            found += [torch.sign(y), torch.where(y > 0, y, y + 1)]
    for weight in (torch.tensor(-3.0), torch.tensor([-3.0])):
        found += [weight + (-1), weight * (-1), weight < 0, weight - 2]
    return (*found, x + 1)


EXTREME = torch.tensor([[1e30, 1e30, 1e-30, 1e-30, 3.0, 0.5], [2.0, 0.0, INF, 1.0, -1.0, 4.0], [NAN] * 6])
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "clamp": (lambda x: (x.clamp(-1, 1), x.clamp(min=0.5), x.clamp(max=2)), SPECIAL),
    "clamp of integers": (lambda x: (x.clamp(1, 3),), torch.arange(6)),
    "hard functions": (lambda x: (F.hardtanh(x), F.relu6(x), F.hardsigmoid(x), F.hardswish(x)), SPECIAL),
    "hard functions of f16": (lambda x: (F.hardsigmoid(x), F.hardswish(x)), TENTHS.half()),
    "extrema": (lambda x: (torch.maximum(x, x.flip(0)), torch.minimum(x, x.flip(0))), SPECIAL),
    "reciprocals": (lambda x: (x.reciprocal(), 1 / x, 2 / x), SPECIAL),
    "gelu by tanh": (lambda x: (F.gelu(x, approximate="tanh"),), GRID),
    "sums of prefixes": (lambda x: (x.cumsum(0), x.cumsum(-1)), GRID),
    "sums of integers": (lambda x: (x.cumsum(0),), torch.arange(12).reshape(3, 4)),
    "sums of long prefixes": (lambda x: (x.cumsum(1), x.flip(1).cumsum(0)), LONG),
    "sums of long prefixes of f16": (lambda x: (x.cumsum(1),), ONES[:, :700] / 10),  # rounded once
    "sums of long prefixes of integers": (lambda x: (x.cumsum(0), x.bool().cumsum(0)), torch.arange(130)),
    # beyond f32 and back, which PyTorch's f64 holds; then a zero, infinity and NaN
    "products in order": (lambda x: (x.cumprod(0), x.cumprod(1)), EXTREME),
    "products in order of f16": (lambda x: (x.cumprod(1),), EXTREME[1:].half()),
    "products of integers": (lambda x: (x.cumprod(0), x.bool().cumprod(0)), torch.arange(1, 30)),
    "RMS norms": (lambda x: (F.rms_norm(x, (9,)), F.rms_norm(x, (9,), x[2], 1e-3)), SMALL),
    "RMS norm of f64": (lambda x: (F.rms_norm(x, (9,)),), SMALL.double()),
    "extrema, indices": (lambda x: (*x.max(1), *x.min(0), *x.max(0, keepdim=True), x.argmin(1)), HOLES),
    "indices": (lambda x: (x.argmax(), x.argmin(), x.argmax(0)), HOLES),
    "indices of parts": (lambda x: (x.argmax(-1, keepdim=True), x[1:3].argmax()), HOLES),
    "softmax of a number": (lambda x: (x.softmax(0), (x * INF).softmax(0), x.log_softmax(0)), NUMBER),
    "clamps of booleans": (lambda x: (x.clamp_max(~x), x.clamp_min(~x)), torch.tensor([True, False])),
    "reciprocals of integers": (lambda x: (x.reciprocal(),), torch.tensor([0, 1, -4])),
    "variances of nothing": (lambda x: (x.var(), x.var(1), x.std(0)), torch.ones(0, 3)),
    "means of nothing": (lambda x: (*torch.var_mean(x), *torch.std_mean(x, 0)), torch.ones(0, 3)),
    "unordered boundaries": (lambda x: (torch.bucketize(x, BOUNDARIES),), SPECIAL),
    "unordered right boundaries": (lambda x: (torch.bucketize(x, BOUNDARIES, right=True),), SPECIAL),
    "RMS norms of f16": (lambda x: (F.rms_norm(x, (9,)),), SMALL.half()),
    "comparisons of i8 with large numbers": (compared_wrapped, WHOLE.char()),
    "comparisons of i32 with large numbers": (compared_wrapped, WHOLE),
    "remainders by large numbers": (lambda x: (torch.fmod(x, 300),), WHOLE.char()),
    "shifts of i8": (shifts, WHOLE.char()),
    "shifts of i64": (shifts, WHOLE.long()),
    "bits of i8": (lambda x: (x | 5, x ^ -7, x & 12, 9 | x, 9 ^ x), WHOLE.char()),
    "finite numbers": (lambda x: (x.isfinite(), x.bfloat16().isfinite(), x.int().isfinite()), SPECIAL),
    "bits of booleans": (lambda x: (x | True, x ^ True, x | 6, x ^ 6), WHOLE > 0),
    "turns of large numbers": (turns, HUGE),
    "turns of large numbers in f64": (turns, HUGE.double() ** 3),
    "comparisons with numbers": (compared, TENTHS),
    "comparisons of integers with floats": (compared, WHOLE),
    "comparisons of i64 with floats": (compared, WHOLE.long() * 2**31),
    "thresholds": (lambda x: (F.threshold(x, 0.1, 5.0), F.hardshrink(x, 0.1)), TENTHS),
    "threshold of softplus": (lambda x: (F.softplus(x, threshold=0.3),), TENTHS),
    "thresholds of integers": (lambda x: (F.threshold(x, 0.5, 3.5),), WHOLE),
    "classes": (lambda x: (F.one_hot(x, 5), F.one_hot(x[0] % 2, 2)), torch.tensor([[0, 3], [2, 4]])),
    "constants": (constants, GRID),
    "quotients of floats": (lambda x: (x // 0.1, x // -0.1, x // x.flip(0), x // (x * 0)), SPECIAL),
    "remainders of floats": (lambda x: (torch.fmod(x, 0.1), torch.fmod(x, x.flip(0))), SPECIAL),
    "closeness": (lambda x: (torch.isclose(x, x.flip(0)), torch.isclose(x, x, equal_nan=True)), SPECIAL),
    "norms and pools of f16": (narrow_sums, ONES),
    "reductions over other dimensions": (reduced, CUBE),
    "group norms": (
        lambda x: (F.group_norm(x, 2, x[0, 0, :4], x[1, 1, :4]), F.instance_norm(x, weight=x[0, 1, :4])),
        (40 * CUBE[:, :4]).sin(),
    ),
    "batch norm": (torch.nn.BatchNorm1d(9).eval(), GRID),
}


def test_prefixes_are_summed_by_rows_of_vectors() -> None:
    """Sums over the last dimension would add the lanes of a register for each prefix."""
    exported = export_module(Function(lambda x: x.cumsum(1)), (torch.ones(48, 700),), None)
    formed = form_text(exported.payload.text, None)
    assert isinstance(formed, FormedText)
    rows = [each for each in formed.program.fusions if each.kind == fusions.ROWS]
    texts = [fusion_problem(each).text for each in rows]
    assert texts
    assert all("tuner.reduced" in text for text in texts)


@pytest.mark.drawn(2)
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")  # torch says so of variances of nothing
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_program_gives_what_torch_gives(name: str) -> None:
    function, x = FUNCTIONS[name]
    text = export_module(Function(function), (x,)).text
    results = host_function(compiler_of(TargetName("cpu")).compile(text, as_fusions=True))(x.numpy())
    with torch.no_grad():
        expected = function(x)
    results = results if isinstance(results, tuple) else (results,)
    for found, wanted in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
        torch.testing.assert_close(torch.from_numpy(found), wanted, rtol=2e-6, atol=1e-6, equal_nan=True)


LARGEST = {torch.int32: 2**31 - 1, torch.int64: 2**63 - 1}
BYTES, WIDE = torch.arange(256, dtype=torch.uint8), torch.uint16


def quotients(x: Any) -> tuple[Any, ...]:
    return (
        -x,
        *(x // 3, x // -3, x % 3, x % -3, torch.div(x, 7, rounding_mode="trunc"), torch.remainder(x, 5)),
        *(x.abs(), x * x - 3, x.sum(), x.amax(), x.argmax(), x >> 3, ~x, x.clamp(-3, 16777217), x.cumsum(0)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("dtype", LARGEST, ids=str)
def test_operations_of_large_integers_are_exact(dtype: Any) -> None:
    most = LARGEST[dtype]
    numbers = [0, 1, -1, 3, -7, 16777217, -16777217, most, -most, most // 2 + 85, -most // 3]
    x = torch.tensor(numbers, dtype=dtype)
    for found, expected in zip(tuner.torch.compile(Function(quotients), (x,))(x), quotients(x), strict=True):
        assert found.dtype is expected.dtype
        assert torch.equal(found, expected)


def test_constants_of_equal_elements_are_computed_by_one_of_them() -> None:
    """All elements would take 4 TiB."""

    def function(x: Any) -> Any:
        return (torch.full((1 << 20, 1 << 20), 2.0) * 3 == 6.0)[0, :4] + x

    assert "1048576" not in export_module(Function(function), (torch.arange(4.0),)).text


def divided(x: Any) -> Any:
    return x + torch.ones(4, dtype=torch.int64).bitwise_and(0).remainder(0)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda x: torch.linspace(0, 9, 4, dtype=torch.int64) + x,
            r"aten\.linspace at .* \(of integers: its steps",
        ),
        (divided, r"of constants fails: .*ZeroDivisionError"),
    ],
    ids=["rounded otherwise", "constants"],
)
def test_what_torch_computes_otherwise_or_not_at_all_is_refused(function: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        export_module(Function(function), (torch.arange(4),))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("function", [lambda x: x // (x + 1), lambda x: x % x, lambda x: x // 0])
def test_a_divisor_that_may_be_0_is_refused(function: Any) -> None:
    line = r"^operators that are not supported: .* \(integers are divided by what may be 0\)$"
    with pytest.raises(UsageError, match=line):
        export_module(Function(function), (torch.arange(4),))


BEYOND = [0.5, -1.9, 127.9, 128, -129, 255.9, 256, 300, -300, 32768, -70000, 2.0**31, -(2.0**31) - 256]
BEYOND += [3e9, -5e9, 2.0**32, 1e10 + 3e5, 2.0**62, 2.0**63, -1e19, 1.5e19, 1e30, 448, 464.1]
BEYOND += [math.inf, -math.inf, math.nan]
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool)
NARROW = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float16, torch.bfloat16)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("source", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("targets", [INTEGERS, NARROW])
def test_numbers_beyond_the_range_of_a_type_become_what_eager_mode_makes_of_them(
    source: Any, targets: tuple[Any, ...]
) -> None:
    x = torch.tensor(BEYOND, dtype=torch.float64).to(source)
    function = Function(lambda x: tuple(x.to(target) for target in targets if target is not source))
    program = tuner.torch.compile(function, (x,))
    for found, expected in zip(program(x), function(x), strict=True):
        assert found.dtype is expected.dtype
        torch.testing.assert_close(found.double(), expected.double(), rtol=0, atol=0, equal_nan=True)


VARIANCES: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((5, 7), {"dim": -1}),
    ((5, 7), {"dim": (0, 1)}),
    ((5, 1), {"dim": 1}),  # NaN: one number less than that is divided by
    ((3, 4, 5), {"dim": 1, "correction": 0}),
    ((3, 4, 5), {"correction": 2}),
    ((3, 4), {"dim": 0, "keepdim": True, "correction": 5}),
    ((3, 4), {"dim": 1, "correction": 1.5}),
    ((2, 70_000), {"dim": 1}),  # a long sum
)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize(("shape", "how"), VARIANCES)
def test_variances_are_those_of_eager_mode(shape: tuple[int, ...], how: dict[str, Any], dtype: Any) -> None:
    x = (torch.linspace(-3, 5, math.prod(shape)).reshape(shape) + 100).to(dtype)
    function = Function(lambda x: (torch.var(x, **how), *torch.var_mean(x, **how), torch.std(x, **how)))
    for found, expected in zip(tuner.torch.compile(function, (x,))(x), function(x), strict=True):
        torch.testing.assert_close(found, expected, equal_nan=True)


def test_rows_are_normalized_in_f32() -> None:
    for function in (lambda x: F.layer_norm(x, (4, 5), eps=1e-3), lambda x: torch.var_mean(x, (-2, -1))):
        text = export_module(Function(function), (torch.ones(3, 4, 5),)).text
        assert "to f64" not in text
        assert "linalg.generic" in text


def test_a_variance_of_f16_is_rounded_once() -> None:
    x = torch.linspace(-3, 5, 111).reshape(3, 37)
    function = Function(lambda x: (x.half().var(), x.half().std(1), x.double().half()))
    for found, expected in zip(tuner.torch.compile(function, (x,))(x), function(x), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=0)


BYTE_OPERATIONS: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda x, _, floats: (floats.to(torch.uint8), x.int().mul(-1).to(torch.uint8), x.to(torch.int8)),
    lambda x, *_: (x.float(), x.double(), x.bfloat16(), x.half(), x.int(), x.long(), x.bool(), ~x),
    lambda x, y, z: (x / 255, x * 0.5, x + z, x / y.clamp(min=1), x + y.int(), x.sum(), x.cumsum(0)),
    lambda x, y, _: (x + y, x - y, x * y, x + 200, 1 - x, -x, x & y, x ^ y, x | y, x & 15, x >> 1, x << 1),
    lambda x, y, floats: (x < y, x >= y, x == y, x != y, x > 200, x == 200, x <= 127.5, x < floats),
    lambda x, y, _: (x.amax(), x.amin(), torch.maximum(x, y), torch.minimum(x, y), x.clamp(10, 150)),
    lambda x, y, _: (torch.where(x == y, x, y), x.masked_fill(x == 1, 250)),
    lambda x, *_: (torch.full((3,), 200).byte() + x[:3],),
    lambda x, y, _: (torch.cat([x, y]), torch.stack([x, y]).t(), x.flip(0), x.repeat(2), y.split(128)[1]),
    lambda x, *_: (x.view(16, 16)[:, 3:5].sum(), x.index_select(0, torch.arange(3))),
    lambda x, *_: (x[torch.tensor([1, 200])], x.gather(0, torch.tensor([1, 200]))),
    lambda x, *_: (F.pad(x, (1, 2)), F.pad(x.view(2, 128), (0, 3, 1, 0), value=200)),
)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("number", range(len(BYTE_OPERATIONS)))
def test_uint8_is_as_in_eager_mode(number: int) -> None:
    function, arguments = BYTE_OPERATIONS[number], (BYTES, BYTES.flip(0) * 3, torch.linspace(-300, 300, 256))
    program = tuner.torch.compile(Function(function), arguments)
    for found, expected in zip(program(*arguments), function(*arguments), strict=True):
        assert found.dtype is expected.dtype
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x // 2, r"aten\.\w+(\.\w+)? at .* \(of uint8: convert to int32 before it\)"),
        (lambda x: x.abs(), r"aten\.abs at .* \(of uint8: "),
        (lambda x: x.to(WIDE).view(16, 16), "uint16.* is not supported: of unsigned types, only uint8"),
    ],
)
def test_what_would_need_a_sign_is_refused(function: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        export_module(Function(function), (BYTES,))


def test_a_program_of_uint8_is_not_exported(tmp_path: Path) -> None:
    program = tuner.torch.compile(Function(lambda x: x + x), (BYTES,))
    with pytest.raises(UsageError, match="a program of unsigned integers is not exported"):
        program.export(tmp_path / "bytes")
