"""Writes at positions that come with a call are eager's: duplicates, negative positions, none at all."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch, about its own code

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402

import tuner.torch  # noqa: E402
from tests.models.exports.export import Function  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402

ROWS = 6
WIDTH = 4
NAN = float("nan")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "bool")
# a step of the largest sums: eager mode rounds sums of narrow floats once, or each, by the shape
TOLERANCES = {"float16": 0.0625, "bfloat16": 0.5}


class Written(nn.Module):
    """Rows of a product, written at positions in several ways."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any, positions: Any, rows: Any) -> Any:
        x = self.linear(x)
        last = positions % ROWS  # of operators that take no negative positions
        at = last[:, None].expand(-1, WIDTH)
        return (
            x.index_put((positions,), rows) * 2,
            x.index_put((positions,), rows, accumulate=True),
            x.index_fill(0, positions, 3.0),
            x.index_copy(0, last, rows),
            x.index_add(0, last, rows, alpha=2),
            x.scatter(0, at, rows) + 1,
            x.scatter(0, at, 2.5),
            x.scatter_add(0, at, rows),
            x.scatter_reduce(0, at, rows, "amax"),
        )


def called(function: Any, positions: list[int]) -> Any:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(ROWS, WIDTH, generator=generator)
    rows = torch.randn(len(positions), WIDTH, generator=generator)
    with torch.no_grad():
        return function(x, torch.tensor(positions, dtype=torch.int64), rows)


def program_for(module: Any, positions: list[int], fallback: str) -> Any:
    return called(lambda *given: tuner.torch.compile(module, given, fallback=fallback), positions)


def test_no_positions_are_no_writes_in_a_program() -> None:
    module = Written().eval()
    program = program_for(module, [], "none")
    torch.testing.assert_close(called(program, []), called(module, []))


@pytest.mark.parametrize("count", [3, 9])
def test_writes_keep_the_last_of_duplicates_and_count_negative_positions_from_the_end(
    count: int,
) -> None:
    """Of nine positions, sums run by PyTorch, of three only the greatest."""
    module = Written().eval()
    more = [0] * (count - 3)
    program = program_for(module, [0, 2, 4, *more], "eager")
    for positions in ([0, 2, 4], [1, 1, 3], [-1, -6, 0], [5, 5, 5]):
        torch.testing.assert_close(called(program, positions + more), called(module, positions + more))
    for positions in ([0, 6, 1], [0, -7, 1]):
        with pytest.raises(IndexError, match=r"out of (bounds|range)|outside of dimension 0"):
            called(program, positions + more)


def filled(shape: tuple[int, ...], dtype: Any, seed: int) -> Any:
    """Returns numbers of a type, one of them NaN if it has NaN."""
    numbers = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 20
    if dtype.is_floating_point:
        numbers.view(-1)[seed % numbers.numel()] = NAN
    elif dtype is torch.uint8:
        numbers = numbers.abs()
    return numbers.to(dtype)


def along_a_dimension(x: Any, at: Any, rows: Any, elements: Any) -> tuple[Any, ...]:
    """Writes rows and elements along the second dimension, at positions that are not negative."""
    results = [
        x.index_copy(1, at, rows),
        x.index_copy(-2, at[:1], rows[:, :1]),
        x.index_add(1, at.int(), rows),
        x.index_fill(1, at, 2),
        x.index_fill(1, at[0], True),
        x.scatter(1, elements, rows),
        x.scatter(-2, elements[:2, :, 1:], rows),
        x.scatter(1, elements, 3),
        x.scatter_add(1, elements[1:], rows),
    ]
    if x.dtype is not torch.bool:
        results.append(x.index_add(1, at, rows, alpha=2))
    return tuple(results)


def by_indices(x: Any, at: Any, rows: Any, _elements: Any) -> tuple[Any, ...]:
    """Writes at positions of one dimension or more, some of which count from the end, and at truths."""
    put = torch.ops.aten.index_put.default  # takes None for a whole dimension
    last = at - 5
    every = torch.arange(x.shape[0])
    two = torch.stack([at, last])
    return (
        put(x, [every[:, None], at], rows),
        put(x, [None, last], rows, accumulate=True),
        put(x, [None, last], rows[:, :1]),
        put(x, [None, two], rows[:, None]),
        put(x, [every[1], last], rows[0, 0]),
        put(x, [two % 3 - 3], rows[0, 0, 0]),
        put(x, [last % 3, None, at % 2], rows[0, :, :1]),
        put(x, [at % 3, last, at[0] % 2], rows[0, 0, :1], accumulate=True),
        put(x, [x > 2], rows[0, 0, 0]),
        put(x, [None, x[0, :, 0] > 2], rows[0, 0, 0]),
    )


WAYS: dict[str, Callable[..., Any]] = {way.__name__: way for way in (along_a_dimension, by_indices)}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("count", [3, 1, 8])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", WAYS)
def test_a_program_writes_as_eager_mode(way: str, dtype: str, count: int) -> None:
    element = getattr(torch, dtype)
    x = filled((3, 5, 4), element, 1)
    rows = filled((3, count, 4), element, 2)
    generator = torch.Generator().manual_seed(3)
    program = None
    for most in (5, 2, 1):  # numbers of different positions
        at = torch.randint(most, (count,), generator=generator)
        elements = torch.randint(most, (3, count, 4), generator=generator)
        given = (x, at, rows, elements)
        program = program or tuner.torch.compile(Function(WAYS[way]), given)
        expected = Function(WAYS[way])(*given)
        tolerance = TOLERANCES.get(dtype, 1e-6)
        torch.testing.assert_close(program(*given), expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def test_many_positions_of_a_small_tensor_are_written_by_a_program() -> None:
    def written(x: Any, at: Any, rows: Any) -> tuple[Any, ...]:
        return x.index_copy(0, at, rows), x.index_fill(0, at - 9, 2.0), x.index_put((at - 9,), rows[0])

    x = filled((9, 7), torch.float32, 1)
    rows = filled((20, 7), torch.float32, 2)
    at = torch.randint(9, (20,), generator=torch.Generator().manual_seed(3))
    program = tuner.torch.compile(Function(written), (x, at, rows))
    torch.testing.assert_close(program(x, at, rows), written(x, at, rows), rtol=0, atol=0, equal_nan=True)


OF_ONE_POSITION: dict[str, Callable[..., Any]] = {
    "copy": lambda x, at: x.index_copy(0, at, x[:1]),
    "add": lambda x, at: x.index_add(0, at, x[:1]),
    "scatter": lambda x, at: x.scatter(0, at[:, None], x),
    "scatter_add": lambda x, at: x.scatter_add(0, at[:, None], x),
    "put": lambda x, at: x.index_put((at,), x[0]),
    "fill": lambda x, at: x.index_fill(0, at, 1.0),
}


@pytest.mark.parametrize("name", OF_ONE_POSITION)
def test_positions_out_of_range_are_errors_where_they_are_in_eager_mode(name: str) -> None:
    module = Function(OF_ONE_POSITION[name])
    x = filled((5, 4), torch.float32, 1)
    program = tuner.torch.compile(module, (x, torch.tensor([1])))
    for number in (4, -1, -5, 5, -6):
        at = torch.tensor([number])
        try:
            expected = module(x, at)
        except (IndexError, RuntimeError):
            with pytest.raises(IndexError, match="is outside of dimension 0"):
                program(x, at)
        else:
            torch.testing.assert_close(program(x, at), expected, rtol=0, atol=0, equal_nan=True)


LARGE = torch.linspace(-1, 1, 8 * 2048 * 64).reshape(8, 2048, 64)
OF_A_LARGE_TENSOR: dict[str, Callable[..., Any]] = {
    "copy": lambda x, at: x.index_copy(1, at.expand(2), x[:, 5:7]),
    "scatter": lambda x, at: x.scatter(1, at.expand(8, 2, 64), x),
    "put": lambda x, at: x.index_put((at % 8, at.expand(300)), x[0, 0, :1]),
    "fill": lambda x, at: x.view(-1).index_fill(0, at, 1.0),
}


@pytest.mark.parametrize("name", OF_A_LARGE_TENSOR)
def test_rows_of_a_large_tensor_are_copied_by_a_program(name: str) -> None:
    module = Function(OF_A_LARGE_TENSOR[name])
    at = torch.tensor([1])
    program = tuner.torch.compile(module, (LARGE, at))
    for position in (1, 2047):
        torch.testing.assert_close(
            program(LARGE, at * position), module(LARGE, at * position), rtol=0, atol=0
        )


def test_sums_that_pytorch_writes_faster_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"operators that are not supported: aten\.index_add"):
        tuner.torch.compile(
            Function(lambda x, at: x.index_add(1, at.expand(9), x[:, :9])), (LARGE, torch.tensor([1]))
        )
