"""Layers whose weights stay integers with a scale, and perhaps an offset, per group of inputs.

A layer calls one operator of its own, ``tuner::few_bit_linear`` or ``tuner::few_bit_rows``, which PyTorch
computes by others: torch.compile and torch.export trace one node for a layer, not thirty. The operator
dequantizes the whole weight, which is slow in eager mode. A program finds this arithmetic
(``tuner.models.fusions.quantized_weights``), multiplies by the integers, and has the nibbles of 4 bits
packed as its kernel reads them.
"""

from typing import Final

import torch
from torch import nn

from tuner.core.quantization import GREATEST, GROUP_MULTIPLE, LEAST_MAXIMUM
from tuner.models.quantized.gguf_files import GroupedIntegers

NIBBLE = 15
SIGN = 8  # of a nibble
NIBBLE_BITS = 4
OPERATORS: Final = torch.library.Library("tuner", "FRAGMENT")  # holds the operators as long as it exists


def _products(data: torch.Tensor, scales: torch.Tensor, bits: int) -> torch.Tensor:
    """Returns integers times their scales, f32 (..., groups, elements), of rows of a ``GroupedWeight``."""
    grouped = data.unflatten(-1, (scales.shape[-1], -1))
    if bits == NIBBLE_BITS:
        grouped = torch.cat(((grouped & NIBBLE) - SIGN, grouped >> NIBBLE_BITS), dim=-1)
    return grouped.float() * scales.float().unsqueeze(-1)


def _linear(
    x: torch.Tensor,
    data: torch.Tensor,
    scales: torch.Tensor,
    offsets: torch.Tensor | None,
    bias: torch.Tensor | None,
    bits: int,
    elements: int,
    rounds_x: bool,
) -> torch.Tensor:
    """Computes ``FewBitLinear.forward``; ``elements``: of k that share a scale."""
    weight = _products(data, scales, bits).flatten(1)
    wide = x.float()
    multiplied = wide
    if rounds_x:
        multiplied = rounded_rows(wide, elements)
    y = nn.functional.linear(multiplied, weight)
    if offsets is not None:
        sums = wide.unflatten(-1, (offsets.shape[1], -1)).sum(-1)
        y = y + nn.functional.linear(sums, offsets)
    if bias is not None:
        y = y + bias
    return y.to(x.dtype)


def _rows(
    indices: torch.Tensor,
    data: torch.Tensor,
    scales: torch.Tensor,
    offsets: torch.Tensor | None,
    bits: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Computes ``FewBitEmbedding.forward``."""
    chosen, chosen_scales = (nn.functional.embedding(indices, buffer) for buffer in (data, scales))
    numbers = _products(chosen, chosen_scales, bits)
    if offsets is not None:
        numbers = numbers + nn.functional.embedding(indices, offsets).unsqueeze(-1)
    return numbers.flatten(-2).to(dtype)


OPERATORS.define(
    "few_bit_linear(Tensor x, Tensor data, Tensor scales, Tensor? offsets, Tensor? bias, int bits, "
    "int elements, bool rounds_x) -> Tensor"
)
OPERATORS.impl("few_bit_linear", _linear, "CompositeImplicitAutograd")
OPERATORS.define(
    "few_bit_rows(Tensor indices, Tensor data, Tensor scales, Tensor? offsets, int bits, ScalarType dtype) "
    "-> Tensor"
)
OPERATORS.impl("few_bit_rows", _rows, "CompositeImplicitAutograd")


class GroupedWeight(nn.Module):  # type: ignore[misc,unused-ignore]
    """The buffers of a ``GroupedIntegers`` matrix W (n x k), which a head and an embedding may share."""

    def __init__(self, weight: GroupedIntegers) -> None:
        super().__init__()
        self.bits = weight.bits
        self.register_buffer("data", torch.from_numpy(weight.data))
        self.register_buffer("scales", torch.from_numpy(weight.scales))
        offsets = None
        if weight.offsets is not None:
            offsets = torch.from_numpy(weight.offsets)
        self.register_buffer("offsets", offsets)

    @property
    def sizes(self) -> tuple[int, int]:
        """Returns (n, k)."""
        n, k = self.data.shape
        if self.bits == NIBBLE_BITS:
            k *= 2
        return (n, k)

    @property
    def elements(self) -> int:
        """Returns how many elements of k share a scale."""
        return int(self.sizes[1] // self.scales.shape[1])


def rounded_rows(x: torch.Tensor, elements: int) -> torch.Tensor:
    """Returns x (..., k), f32, rounded to i8 by groups of so many ``elements`` of k, as numbers again.

    A group's scale is its greatest magnitude over 127 (``tuner.core.quantization``).
    """
    grouped = x.unflatten(-1, (-1, elements))
    largest = grouped.abs().amax(-1, keepdim=True)
    greatest = torch.full_like(largest, GREATEST)
    is_small = largest < torch.full_like(largest, float(LEAST_MAXIMUM))
    inverse = torch.where(is_small, torch.zeros_like(largest), greatest / largest)
    integers = (grouped * inverse).round().to(torch.int8)
    return (integers.float() * (largest / greatest)).flatten(-2)


class FewBitLinear(nn.Module):  # type: ignore[misc,unused-ignore]
    """y = x W^T + bias, computed in f32; y has the type of x.

    ``rounds_x``: x is rounded to i8 first, by groups of W of a multiple of 32 elements.
    """

    def __init__(self, groups: GroupedWeight, bias: nn.Parameter | None, *, rounds_x: bool = False) -> None:
        super().__init__()
        self.groups = groups
        self.bias = bias
        self.rounds_x = rounds_x and groups.elements % GROUP_MULTIPLE == 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns x W^T + bias; x: (..., k)."""
        groups = self.groups
        buffers = (groups.data, groups.scales, groups.offsets)
        y: torch.Tensor = torch.ops.tuner.few_bit_linear(
            x, *buffers, self.bias, groups.bits, groups.elements, self.rounds_x
        )
        return y

    def extra_repr(self) -> str:
        """Returns the sizes for ``repr``."""
        n, k = self.groups.sizes
        return f"in_features={k}, out_features={n}, bits={self.groups.bits}"


class FewBitEmbedding(nn.Module):  # type: ignore[misc,unused-ignore]
    """Rows of W, computed in f32 and rounded to ``dtype``."""

    def __init__(self, groups: GroupedWeight, dtype: torch.dtype) -> None:
        super().__init__()
        self.groups = groups
        self.dtype = dtype

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        """Returns rows ``indices``, integers of any shape: (..., k)."""
        groups = self.groups
        buffers = (groups.data, groups.scales, groups.offsets)
        rows: torch.Tensor = torch.ops.tuner.few_bit_rows(indices, *buffers, groups.bits, self.dtype)
        return rows

    def extra_repr(self) -> str:
        """Returns the sizes for ``repr``."""
        n, k = self.groups.sizes
        return f"{n}, {k}, bits={self.groups.bits}"
