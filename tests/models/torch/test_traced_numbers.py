"""What a module computes of its sizes, as numbers, is what Python computes at each call, or is refused."""

import math
import operator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402
from torch.fx.experimental.sym_node import METHOD_TO_OPERATOR  # noqa: E402

import tuner.torch  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402
from tuner.models.torch.partition import partitioned  # noqa: E402
from tuner.models.torch.traced_numbers import EXTREMUM, floored, rounded  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch, about its own code

SIZES = (1, 2, 3, 5, 7, 8, 16)
WIDTH = 4

# by the name of a function of symbols in PyTorch: one of a size n
COMPUTED: dict[str, Any] = {
    "abs": lambda n: abs(n - 4),
    "add": lambda n: n + 1,
    "and": lambda n: (n > 4) & (n < 9),
    "bitwise_and": lambda n: n & 6,
    "bitwise_or": lambda n: n | 6,
    "ceil": lambda n: math.ceil(-n / 3),
    "eq": lambda n: n == 5,
    "float_pow": lambda n: (n / 2) ** 2.5,
    "float_truediv": lambda n: (n / 2) / 1.5,
    "floor": lambda n: math.floor(-n / 3),
    "ge": lambda n: n >= 5,
    "gt": lambda n: n > 5,
    "int_floordiv": lambda n: -n // 3,
    "int_truediv": lambda n: n / 3,
    "le": lambda n: n <= 5,
    "lshift": lambda n: 1 << n,
    "lt": lambda n: n < 5,
    "mod": lambda n: -n % 4,
    "mul": lambda n: n * n,
    "ne": lambda n: n != 5,
    "neg": operator.neg,
    "or": lambda n: (n > 4) | (n < 2),
    "pos": operator.pos,
    "pow_by_natural": lambda n: n**2,
    "round": lambda n: round(n / 2) + round(n / 4, 1) + round(n * 1.7, -1),
    "rshift": lambda n: -n >> 1,
    "sub": lambda n: 9 - n,
    "sym_float": lambda n: torch.sym_float(n),
    "sym_ite": lambda n: torch.sym_ite(n > 4, n, 2 * n),
    "sym_max": lambda n: torch.sym_max(n // 2, 3),
    "sym_min": lambda n: torch.sym_min(n, 5),
    "sym_not": lambda n: torch.sym_not(n > 4),
    "sym_sqrt": lambda n: torch.sym_sqrt(n),
    "trunc": lambda n: math.trunc(-n / 3),
}
# functions of Python
OF_PYTHON: dict[str, Any] = {
    "round to tens": lambda n: round(n, -1),
    "round to tens, ties": lambda n: round(5 * n, -1),
    "round to hundreds": lambda n: round(50 * (3 - n), -2),
    "round to decimals": lambda n: round(n, 2),
    "quotient by a float": lambda n: n // 0.1,
    "quotient of floats": lambda n: (n / 2) // 0.1,
    "quotient of a float": lambda n: 7.5 // n,
    "remainder of a float": lambda n: n % 0.7,
    "quotient of an int": lambda n: -7 // n,
    "remainder of an int": lambda n: -7 % n,
    "power": lambda n: 1.5**n,
    "root": lambda n: n**0.5,
    "inverse": lambda n: n**-1,
    "len": lambda n: len(torch.empty(n)),
    "int": lambda n: int(n) + int(n / 3) - int(-n / 3),
    "float": lambda n: float(n) / 3,
    "bool": lambda n: bool(n % 2),
    "min": lambda n: min(n, 5, 2 * n - 3),
    "max": lambda n: max(n // 2, 3),
    "sqrt": lambda n: 1 / math.sqrt(n),
    "floor of a root": lambda n: math.floor(math.sqrt(n)),
    "sum": lambda n: sum([n, n, 2]) + torch.sym_sum([n, n, 1]),
    "prod": lambda n: math.prod([n, n, 2]),
    "class": lambda n: 2 if isinstance(n, int) else 3,
    "type": lambda n: 2 if type(n) is int else 3,
}


def of_a_fraction(name: str) -> Any:
    function = getattr(torch, name)
    return lambda n: function(1 / (n + 1))


OPERATORS = "it has no operator _?sym_{} of sizes"
CONSTANT = "its code makes a constant of the size n"
REFUSED: dict[str, tuple[Any, str]] = {
    **{
        f"sym_{name}": (of_a_fraction(f"_sym_{name}"), OPERATORS.format(name))
        for name in ("acos", "asin", "atan", "cos", "cosh", "log2", "sin", "sinh", "tan", "tanh")
    },
    "bitwise_xor": (lambda n: n ^ 6, "it has no operator xor of sizes"),
    "is_integer": (lambda n: (n / 2).is_integer(), "torch.export refuses the module"),
    "log2": (math.log2, CONSTANT),
    "log": (math.log, rf"{CONSTANT}, at .*test_traced_numbers.py:\d+"),
    "exp": (math.exp, CONSTANT),
    "isqrt": (math.isqrt, CONSTANT),
    "gcd": (lambda n: math.gcd(n, 6), CONSTANT),
    "range": (lambda n: sum(range(n)), CONSTANT),
    "list": (lambda n: len([0] * n), CONSTANT),
    "bit_length": (lambda n: n.bit_length(), CONSTANT),
    "text": (lambda n: len(f"{n}"), CONSTANT),
    "text of a shape": (lambda n: len(f"{torch.empty(n).shape}"), CONSTANT),
    "condition": (lambda n: 2 if n > 4 else 3, "its code decides by the size n: 5 <= n and n <= 16"),
    "parity": (lambda n: 2 if n % 2 else 3, r"its code decides by the size n: \(n % 2\) != 0"),
    "one": (lambda n: 2 if n == 1 else 3, "decides by dimension 0 of argument 0, and computes .* is 1"),
    "less than two": (lambda n: 2 if n < 2 else 3, "decides by dimension 0 of argument 0"),
    "or": (lambda n: n - 1 or 7, "decides by dimension 0 of argument 0"),
}


class Scaled(nn.Module):  # type: ignore[misc,unused-ignore]
    """Rows times numbers that depend on how many there are."""

    def __init__(self, functions: Any) -> None:
        super().__init__()
        self.functions = functions
        torch.manual_seed(0)
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        x = self.linear(x)
        return [x * function(x.shape[0]) for function in self.functions]


class RunByPyTorch:
    """A part that is not compiled."""

    def __init__(self, module: Any, _tensors: Any) -> None:
        self.module = module

    def run(self, tensors: Any) -> Any:
        return self.module(*tensors)


def rows_of(n: int) -> Any:
    return torch.randn(n, WIDTH, generator=torch.Generator().manual_seed(n))


def parted(module: Any, *arguments: Any, shapes: Any = None) -> Any:
    shapes = shapes or ({0: Dim("n", min=1, max=16)},)
    compiled: Any = RunByPyTorch
    parts = partitioned(
        module.eval(),
        arguments,
        {},
        UsageError("dynamic"),
        compiled,
        is_all_supported=True,
        dynamic_shapes=shapes,
    )
    return parts.function


def test_all_functions_of_symbols_are_in_a_table() -> None:
    assert {*COMPUTED, *REFUSED} >= METHOD_TO_OPERATOR.keys()


def test_numbers_that_depend_on_a_size_are_those_of_the_call() -> None:
    functions = {**COMPUTED, **OF_PYTHON}
    module = Scaled(tuple(functions.values()))
    function = parted(module, rows_of(5))
    for n in SIZES:
        for name, found, expected in zip(functions, function([rows_of(n)]), module(rows_of(n)), strict=True):
            torch.testing.assert_close(found, expected, msg=f"{name} at {n}")


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_follow_a_size_is_refused_in_one_line(name: str) -> None:
    function, message = REFUSED[name]
    with pytest.raises(UsageError, match=message) as refusal:
        parted(Scaled((function,)), rows_of(5))
    assert "\n" not in str(refusal.value)


OF_TYPES: dict[str, Any] = {
    "i64": lambda x, n: (9 * x).long() * (n // 2) + (9 * x).long() % (n // 2 + 1),
    "f64": lambda x, n: x.double() * (n / 3),
    "truths": lambda x, n: (9 * x).int() * (n > 4),
    "from a number": lambda x, n: (n // 2 - x) + (n / 3 - x) + (n - x) + (n / 3) / x,
    "multiples": lambda x, n: torch.add(x, n // 2, alpha=2) - torch.sub(x, n / 3, alpha=2),
    "comparison": lambda x, n: (x * 0 + n / 3) == n / 3,
    "rounding": lambda x, n: torch.div(x, n / 3, rounding_mode="trunc"),
}


class Typed(Scaled):
    def forward(self, x: Any) -> Any:
        return [function(self.linear(x), x.shape[0]) for function in self.functions]


def test_a_number_next_to_a_tensor_has_the_type_that_pytorch_gives_it() -> None:
    module = Typed(tuple(OF_TYPES.values()))
    function = parted(module, rows_of(5))
    for n in SIZES:
        for name, found, expected in zip(OF_TYPES, function([rows_of(n)]), module(rows_of(n)), strict=True):
            torch.testing.assert_close(found, expected, msg=f"{name} at {n}")


BY_EXTREMUM: tuple[Any, ...] = (
    lambda x, n: x.long() * max(n, 2.5),
    lambda x, n: x.int() + min(100.0, n),
    lambda x, n: (x > 0) * (max(3.0, n) + 1),
    lambda x, n: torch.full((2,), max(n, 2.5)) + x.sum().long(),
)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, n: (9 * x).int() * (n // 2), "would be rounded to the type of the tensor"),
        (lambda x, n: (9 * x).long() * (n / 2), "would be rounded to the type of the tensor"),
        (lambda x, n: x.bfloat16() * (n // 2), "would be rounded to the type of the tensor"),
        *((function, EXTREMUM) for function in BY_EXTREMUM),
        (lambda x, n: x.clamp(max=n), r"aten.clamp at .* \(a number that it takes is a dynamic size\)"),
    ],
)
def test_a_number_that_would_be_converted_otherwise_is_refused(function: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parted(Typed((function,)), rows_of(5))


def test_a_number_beyond_64_bits_is_refused_at_the_call() -> None:
    function = parted(Scaled((lambda n: n**n,)), rows_of(5))
    with pytest.raises(UsageError, match="out of the range of 64 bits: 18446744073709551616"):
        function([rows_of(16)])


def test_integers_are_rounded_to_powers_of_ten_as_python_does() -> None:
    for number in range(-400, 400):
        for digits in (-3, -2, -1, 0, 1, None):
            assert rounded(number, digits) == round(number, digits)  # type: ignore[arg-type,unused-ignore]


def test_quotients_of_floats_are_floored_as_python_does() -> None:
    for number in (-40, -3, -0.7, 0, 1, 2.5, 3, 39):
        for divisor in (0.1, -0.3, 0.7, 2.5, 1 / 3, 7, -1e9):
            assert floored(float(number), divisor) == float(number) // divisor
    assert floored(1.0, "2") is NotImplemented


@pytest.mark.mlir
@pytest.mark.usefixtures("fresh_back_end")
def test_the_back_end_leaves_the_greater_of_a_size_and_a_float_to_eager_mode() -> None:
    def computed(x: Any) -> Any:
        results = [function(x, x.shape[0]) for function in BY_EXTREMUM]
        return *results, x * max(x.shape[0], 2.5)

    compiled: Any = torch.compile(computed, backend="tuner", dynamic=True)
    for n in (2, 3, 5):
        for found, expected in zip(compiled(rows_of(n)), computed(rows_of(n)), strict=True):
            assert found.dtype is expected.dtype
            assert torch.equal(found, expected)


@pytest.mark.mlir
@pytest.mark.usefixtures("fresh_back_end")
def test_the_back_end_rounds_sizes_to_powers_of_ten() -> None:
    def scaled(x: Any) -> Any:
        return x * round(x.shape[0], -1) + 5 * x.shape[0] // 0.1

    compiled: Any = torch.compile(scaled, backend="tuner", dynamic=True)
    for n in (5, 7, 15, 35):
        torch.testing.assert_close(compiled(rows_of(n)), scaled(rows_of(n)))


@pytest.mark.slow
@pytest.mark.mlir
def test_a_compiled_family_takes_numbers_of_the_call_and_is_not_exported() -> None:
    pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")
    functions = (lambda n: n // 2, lambda n: 1 / math.sqrt(n), lambda n: n > 4)
    module = Scaled(functions).eval()
    program = tuner.torch.compile(module, (rows_of(3),), dynamic_shapes=({0: Dim("n", min=2, max=8)},))
    with torch.no_grad():
        for n in (3, 4, 5):
            torch.testing.assert_close(program(rows_of(n)), module(rows_of(n)))
    with pytest.raises(UsageError, match="a number that is not a multiple of n plus a constant"):
        program.export("folder")


class Two(nn.Module):  # type: ignore[misc,unused-ignore]
    """Two arguments whose sizes depend on one n."""

    def forward(self, x: Any, y: Any) -> Any:
        return x * 3, y * len(x)


def test_arguments_of_n_and_2n_rows_are_compiled_without_weights_and_checked_at_calls() -> None:
    n = Dim("n", min=1, max=16)
    module = Two()
    function = parted(module, rows_of(5), rows_of(10), shapes=({0: n}, {0: 2 * n}))
    for size in SIZES:
        arguments = [rows_of(size), rows_of(2 * size)]
        torch.testing.assert_close(tuple(function(arguments)), module(*arguments))
    for rows in (7, 3, 2):
        with pytest.raises(UsageError, match=rf"argument 1: found size {rows} of .*, allowed 2 to 32, as 2n"):
            function([rows_of(3), rows_of(rows)])


def test_an_argument_whose_rows_are_one_more_than_a_size_is_compiled() -> None:
    more = Dim("n", min=1, max=16) + 1
    module = Two()
    function = parted(module, rows_of(5), rows_of(5), shapes=({0: more}, {0: more}))
    for rows in (3, 17):
        arguments = [rows_of(rows), rows_of(rows)]
        torch.testing.assert_close(tuple(function(arguments)), module(*arguments))
    with pytest.raises(UsageError, match=r"found size 18 of dimension 0, allowed 2 to 17, as n\+1"):
        function([rows_of(18), rows_of(18)])


def test_two_sizes_that_do_not_depend_on_each_other_are_refused_by_name() -> None:
    shapes = ({0: Dim("n", min=1, max=16)}, {0: Dim("m", min=1, max=16)})
    with pytest.raises(UsageError, match=r"aten.mul.Tensor at .* \(its sizes are those of several symbols\)"):
        parted(Two(), rows_of(5), rows_of(6), shapes=shapes)
