"""Sizes that are a multiple of one symbol and a constant."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.fx.experimental.symbolic_shapes import ShapeEnv  # noqa: E402

from tuner.models.torch.symbol_sizes import OtherSizeError, SymbolSize, size_of  # noqa: E402


@pytest.fixture
def symbols() -> tuple[Any, Any]:
    from torch._dynamo.source import ConstantSource

    environment = ShapeEnv()
    return tuple(
        environment.create_symintnode(
            environment.create_symbol(hint, ConstantSource(name)), hint=hint, source=None
        )
        for name, hint in (("a", 7), ("b", 9))
    )


def test_multiples_and_sums_of_a_symbol_are_linear(symbols: tuple[Any, Any]) -> None:
    a, _ = symbols
    size = size_of(2 * a + 3)
    assert isinstance(size, SymbolSize)
    assert (size.of_n.text, size.at(5), size.symbol_of(13)) == ("2n+3", 13, 5)
    assert size.symbol == size_of(a).symbol  # type: ignore[union-attr,unused-ignore]
    assert size_of(4) == 4


def test_sizes_of_two_symbols_and_quotients_are_refused(symbols: tuple[Any, Any]) -> None:
    a, b = symbols
    for size in (a + b, a * a, a // 2, 9 - a):
        with pytest.raises(OtherSizeError, match="is not a multiple of one size and a constant"):
            size_of(size)
