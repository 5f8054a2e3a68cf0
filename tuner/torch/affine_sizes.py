"""Sizes of a graph's tensors as ``scale * n + offset`` of a size n that changes from call to call."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class AffineSize:
    """The size ``scale * n + offset`` where ``symbol`` is n; ``scale`` is positive."""

    symbol: str
    scale: int = 1
    offset: int = 0

    def at(self, n: int) -> int:
        """Returns the size for a value of the symbol."""
        return self.scale * n + self.offset

    def symbol_of(self, size: int) -> int:
        """Returns the value of the symbol for which this is ``size``."""
        return (size - self.offset) // self.scale


Size = int | AffineSize


class OtherSizeError(Exception):
    """A size is not ``scale * n + offset``, such as a product of two symbols."""


def size_of(size: int | torch.SymInt) -> Size:
    """Returns a size of an example value. Raises OtherSizeError for what is not affine in one symbol."""
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
            return AffineSize(str(symbol), int(scale), int(offset))
    raise OtherSizeError(f"its size {expression} is not a multiple of one size and a constant")


def sizes_of_tensor(tensor: torch.Tensor) -> tuple[Size, ...]:
    """Returns the sizes of an example tensor. Raises OtherSizeError as ``size_of``."""
    return tuple(map(size_of, tensor.shape))
