"""What torch-mlir alone gets wrong comes out as from torch: NaN, constants, reciprocals of zero, scans."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.mlir

NO_TORCH = "needs PyTorch: pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
torch = pytest.importorskip("torch", reason=NO_TORCH)
export = pytest.importorskip("tests.programs.exports.export")
exported_module = pytest.importorskip("tuner.torch.export")

F = torch.nn.functional
INF, NAN = float("inf"), float("nan")
NUMBER = torch.tensor(2.0)
SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.5, 1e-40, 3e38, -3e38, 100.0, -100.0, INF, -INF, NAN])
GRID = torch.linspace(-4, 4, 36).reshape(4, 9)
HOLES = torch.tensor(
    [[1, NAN, 3, NAN], [2, 5, 5, -INF], [INF, INF, -1, 0], [-INF, -INF, NAN, INF], [-0.0, 0, -0.0, 0]]
)
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


def shifts(x: Any) -> tuple[Any, ...]:
    numbers = tuple(each for y in (0, 7, 8, 33, 64, -1) for each in (x << y, x >> y))
    tensor = torch.tensor([0, 7, 8, 33, 63, 64, -1])
    return *numbers, x << tensor, x >> tensor, x >> tensor.to(x.dtype)


def constants(x: Any) -> tuple[Any, ...]:
    """Operations of constants alone, which torch-mlir folds wrongly."""
    found: list[Any] = []
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64, torch.bool):
        for number in (-3, -0.25, 0.25, 3):
            y = torch.full((2,), number).to(dtype)
            found += [y < 1, y >= 0, y == 0, y > -1, y != True, y + (-1), y * (-1)]  # noqa: E712
            found += [torch.sign(y), torch.where(y > 0, y, y + 1)]
    for weight in (torch.tensor(-3.0), torch.tensor([-3.0])):
        found += [weight + (-1), weight * (-1), weight < 0, weight - 2]
    return (*found, x + 1)


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "clamp": (lambda x: (x.clamp(-1, 1), x.clamp(min=0.5), x.clamp(max=2)), SPECIAL),
    "clamp of integers": (lambda x: (x.clamp(1, 3),), torch.arange(6)),
    "hard functions": (lambda x: (F.hardtanh(x), F.relu6(x), F.hardsigmoid(x)), SPECIAL),
    "extrema": (lambda x: (torch.maximum(x, x.flip(0)), torch.minimum(x, x.flip(0))), SPECIAL),
    "reciprocals": (lambda x: (x.reciprocal(), 1 / x, 2 / x), SPECIAL),
    "gelu by tanh": (lambda x: (F.gelu(x, approximate="tanh"),), GRID),
    "sums of prefixes": (lambda x: (x.cumsum(0), x.cumsum(-1)), GRID),
    "sums of integers": (lambda x: (x.cumsum(0),), torch.arange(12).reshape(3, 4)),
    "RMS norms": (lambda x: (F.rms_norm(x, (9,)), F.rms_norm(x, (9,), x[2], 1e-3)), SMALL),
    "RMS norm of f64": (lambda x: (F.rms_norm(x, (9,)),), SMALL.double()),
    "extrema and their indices": (
        lambda x: (*x.max(1), *x.min(0), *x.max(0, keepdim=True), x.argmin(1)),
        HOLES,
    ),
    "indices": (
        lambda x: (x.argmax(), x.argmin(), x.argmax(0), x.argmax(-1, keepdim=True), x[1:3].argmax()),
        HOLES,
    ),
    "softmax of a number": (lambda x: (x.softmax(0), (x * INF).softmax(0), x.log_softmax(0)), NUMBER),
    "clamps of booleans": (lambda x: (x.clamp_max(~x), x.clamp_min(~x)), torch.tensor([True, False])),
    "reciprocals of integers": (lambda x: (x.reciprocal(),), torch.tensor([0, 1, -4])),
    "variances of nothing": (
        lambda x: (x.var(), x.var(1), x.std(0), *torch.var_mean(x), *torch.std_mean(x, 0)),
        torch.ones(0, 3),
    ),
    "unordered boundaries": (
        lambda x: (torch.bucketize(x, BOUNDARIES), torch.bucketize(x, BOUNDARIES, right=True)),
        SPECIAL,
    ),
    "RMS norms of f16": (lambda x: (F.rms_norm(x, (9,)),), SMALL.half()),
    "comparisons of i8 with large numbers": (compared_wrapped, WHOLE.char()),
    "comparisons of i32 with large numbers": (compared_wrapped, WHOLE),
    "remainders by large numbers": (lambda x: (torch.fmod(x, 300),), WHOLE.char()),
    "shifts of i8": (shifts, WHOLE.char()),
    "shifts of i64": (shifts, WHOLE.long()),
    "turns of large numbers": (turns, HUGE),
    "turns of large numbers in f64": (turns, HUGE.double() ** 3),
    "comparisons with numbers": (compared, TENTHS),
    "comparisons of integers with floats": (compared, WHOLE),
    "comparisons of i64 with floats": (compared, WHOLE.long() * 2**31),
    "thresholds": (
        lambda x: (F.threshold(x, 0.1, 5.0), F.hardshrink(x, 0.1), F.softplus(x, threshold=0.3)),
        TENTHS,
    ),
    "thresholds of integers": (lambda x: (F.threshold(x, 0.5, 3.5),), WHOLE),
    "classes": (lambda x: (F.one_hot(x, 5), F.one_hot(x[0] % 2, 2)), torch.tensor([[0, 3], [2, 4]])),
    "constants": (constants, GRID),
    "quotients of floats": (lambda x: (x // 0.1, x // -0.1, x // x.flip(0), x // (x * 0)), SPECIAL),
    "remainders of floats": (lambda x: (torch.fmod(x, 0.1), torch.fmod(x, x.flip(0))), SPECIAL),
    "batch norm": (torch.nn.BatchNorm1d(9).eval(), GRID),
}


@pytest.mark.drawn(2)
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")  # torch says so of variances of nothing
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_program_gives_what_torch_gives(name: str) -> None:
    from benchmarks.program_compiler import compiler_of
    from tuner.core.candidate import TargetName
    from tuner.programs.execution import host_function

    function, x = FUNCTIONS[name]
    text = exported_module.export_module(export.Function(function), (x,)).text
    results = host_function(compiler_of(TargetName("cpu")).compile(text, as_fusions=True))(x.numpy())
    with torch.no_grad():
        expected = function(x)
    results = results if isinstance(results, tuple) else (results,)
    for found, wanted in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
        torch.testing.assert_close(torch.from_numpy(found), wanted, rtol=2e-6, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize(
    ("function", "size", "message"),
    [
        (
            lambda x: torch.linspace(0, 9, 7, dtype=torch.int64) + x,  # would round otherwise
            7,
            "linspace of integers is not supported",
        ),
        (
            lambda x: x + torch.ones(3, dtype=torch.int64).bitwise_and(0).remainder(0),
            3,
            r"of constants fails: .*ZeroDivisionError",
        ),
    ],
)
def test_what_torch_computes_otherwise_or_not_at_all_is_refused(
    function: Callable[[Any], Any], size: int, message: str
) -> None:
    from tuner.core.errors import UsageError

    with pytest.raises(UsageError, match=message):
        exported_module.export_module(export.Function(function), (torch.ones(size, dtype=torch.int64),))
