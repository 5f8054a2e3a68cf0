"""Integers are computed exactly, or refused: large ones, negative divisors, all 256 numbers of uint8."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tuner
from tuner.core.errors import UsageError

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

import tuner.torch  # noqa: E402 - after the skip
from tests.programs.exports.export import Function  # noqa: E402
from tuner.torch.export import export_module  # noqa: E402

LARGEST = {torch.int32: 2**31 - 1, torch.int64: 2**63 - 1}
BYTES = torch.arange(256, dtype=torch.uint8)
OTHERS = BYTES.flip(0) * 3
FLOATS = torch.linspace(-300, 300, 256)


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


@pytest.mark.drawn(2)
@pytest.mark.parametrize("function", [lambda x: x // (x + 1), lambda x: x % x, lambda x: x // 0])
def test_a_divisor_that_may_be_0_is_refused(function: Any) -> None:
    with pytest.raises(
        UsageError, match="torch-mlir refuses the module: integers are divided by what may be 0"
    ):
        export_module(Function(function), (torch.arange(4),))


BYTE_OPERATIONS: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda x, _, floats: (floats.to(torch.uint8), x.int().mul(-1).to(torch.uint8), x.to(torch.int8)),
    lambda x, *_: (x.float(), x.double(), x.bfloat16(), x.half(), x.int(), x.long(), x.bool()),
    lambda x, y, floats: (
        x / 255,
        x * 0.5,
        x + floats,
        x / y.clamp(min=1),
        x + y.int(),
        x.sum(),
        x.cumsum(0),
    ),
    lambda x, y, _: (
        x + y,
        x - y,
        x * y,
        x + 200,
        1 - x,
        -x,
        x & y,
        x ^ y,
        x | y,
        ~x,
        x & 15,
        x >> 1,
        x << 1,
    ),
    lambda x, y, floats: (x < y, x >= y, x == y, x != y, x > 200, x == 200, x <= 127.5, x < floats),
    lambda x, y, _: (x.amax(), x.amin(), torch.maximum(x, y), torch.minimum(x, y), x.clamp(10, 150)),
    lambda x, y, _: (
        torch.where(x == y, x, y),
        x.masked_fill(x == 1, 250),
        torch.full((3,), 200).byte() + x[:3],
    ),
    lambda x, y, _: (torch.cat([x, y]), torch.stack([x, y]).t(), x.flip(0), x.repeat(2), y.split(128)[1]),
    lambda x, *_: (x.view(16, 16)[:, 3:5].sum(), x.index_select(0, torch.arange(3))),
    lambda x, *_: (x[torch.tensor([1, 200])], x.gather(0, torch.tensor([1, 200]))),
)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("number", range(len(BYTE_OPERATIONS)))
def test_uint8_is_as_in_eager_mode(number: int) -> None:
    function, arguments = BYTE_OPERATIONS[number], (BYTES, OTHERS, FLOATS)
    program = tuner.torch.compile(Function(function), arguments)
    for found, expected in zip(program(*arguments), function(*arguments), strict=True):
        assert found.dtype is expected.dtype
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x // 2, "aten.div.Tensor_mode of uint8 is not supported: convert to int32 before it"),
        (lambda x: x.abs(), "aten.abs.default of uint8 is not supported"),
        (lambda x: torch.nn.functional.pad(x, (1, 1), value=200), "aten.constant_pad_nd.default of uint8"),
        (
            lambda x: x.to(torch.uint16).view(16, 16),
            "uint16.* is not supported: of unsigned types, only uint8",
        ),
    ],
)
def test_what_would_need_a_sign_is_refused(function: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        export_module(Function(function), (BYTES,))


def test_a_program_of_uint8_is_not_exported(tmp_path: Path) -> None:
    program = tuner.torch.compile(Function(lambda x: x + x), (BYTES,))
    with pytest.raises(UsageError, match="a program of unsigned integers is not exported"):
        program.export(tmp_path / "bytes")
