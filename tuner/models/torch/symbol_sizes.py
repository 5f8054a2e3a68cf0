"""Sizes of a graph's tensors that depend on a symbol, a size n that changes from call to call."""

from dataclasses import dataclass

import torch

from tuner.core.dynamic_sizes import SIZE_N, LinearSize, static_size


@dataclass(frozen=True)
class SymbolSize:
    """A size that depends on ``symbol``: a * n + b for the symbol's value n, as ``of_n`` says."""

    symbol: str
    of_n: LinearSize = SIZE_N

    def at(self, n: int) -> int:
        """Returns the size where the symbol is ``n``."""
        return self.of_n.at(n)

    def symbol_of(self, size: int) -> int:
        """Returns the value of the symbol where this size is ``size``."""
        return self.of_n.size_for(size)


Size = int | SymbolSize


def size_at(size: Size, n: int) -> int:
    """Returns the value of a size where its symbol is ``n``; an int is returned as it is."""
    return size.at(n) if isinstance(size, SymbolSize) else size


def linear_size(size: Size) -> LinearSize:
    """Returns a size as a linear function of n, the value of its symbol; of an int the constant function."""
    return size.of_n if isinstance(size, SymbolSize) else static_size(size)


class OtherSizeError(Exception):
    """A size is not a * n + b for one symbol n, such as a product of two symbols."""


def size_of(size: int | torch.SymInt) -> Size:
    """Returns a size of an example tensor as a ``SymbolSize``, or as an int if it is static.

    Raises OtherSizeError for a size that is not linear in one symbol.
    """
    if not isinstance(size, torch.SymInt):
        return size
    known = size.node.maybe_as_int()
    if known is not None:
        return int(known)
    expression = size.node.expr
    symbols = expression.free_symbols
    if len(symbols) == 1:
        (symbol,) = symbols
        scale = expression.coeff(symbol)
        offset = expression - scale * symbol
        if scale.is_Integer and scale > 0 and offset.is_Integer:
            return SymbolSize(str(symbol), LinearSize(int(scale), int(offset)))
    raise OtherSizeError(f"its size {expression} is not a multiple of one size and a constant")


def symbols_of(number: torch.SymInt | torch.SymFloat | torch.SymBool) -> frozenset[str]:
    """Returns the names of the symbols on which a number depends."""
    return frozenset(map(str, number.node.expr.free_symbols))


def sizes_of_tensor(tensor: torch.Tensor) -> tuple[Size, ...]:
    """Returns the sizes of an example tensor. Raises OtherSizeError as ``size_of``."""
    return tuple(map(size_of, tensor.shape))
