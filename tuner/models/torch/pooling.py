"""Pooling as elementwise operations on shifted slices, one dimension after the other, which become vectors.

    max_pool1d(x, 3, stride=2, padding=1)
  becomes
    y = pad(x, (1, 1), value=-inf)
    max(max(y[..., 0:-2:2], y[..., 1:-1:2]), y[..., 2::2])

A window of 3 x 3 so takes 4 operations for each element, not 8. The last dimension comes last, since the
elements of its slices are not adjacent.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch.nn.functional import pad

from tuner.models.torch.element_types import NARROW, widened

ATEN = torch.ops.aten
# slices that one operation combines: each is an operand, and the time to compile grows with their number
SLICES_LIMIT = 16
Combine = Callable[[list[torch.Tensor]], torch.Tensor]


@dataclass(frozen=True)
class _Windows:
    """Windows along one dimension of ``size`` elements."""

    size: int
    window: int
    stride: int
    padding: int  # on each side
    dilation: int
    rounds_up: bool

    @property
    def reach(self) -> int:
        """Returns the number of elements from the first of a window to the last one."""
        return self.dilation * (self.window - 1) + 1

    @property
    def count(self) -> int:
        """Returns the number of windows, each of which begins in the input or in the padding before it."""
        rest = self.size + 2 * self.padding - self.reach
        count = rest // self.stride + 1
        begins_inside = count * self.stride < self.size + self.padding
        return count + (self.rounds_up and rest % self.stride > 0 and begins_inside)

    @property
    def margins(self) -> tuple[int, int]:
        """Returns the elements to add before and after; after: negative for elements that no window reads."""
        return self.padding, (self.count - 1) * self.stride + self.reach - self.size - self.padding

    def counted_padding(self, *, counts_padding: bool) -> int:
        """Returns how many elements of padding on each side an average divides by as well."""
        if counts_padding:
            return self.padding
        return 0

    def divisors(self, *, counts_padding: bool) -> torch.Tensor:
        """Returns the divisor of each window's average along this dimension, i64 of the shape (count,).

        ``counts_padding``: elements of padding count, too.
        """
        starts = torch.arange(self.count) * self.stride - self.padding
        ends = (starts + self.window).clamp(max=self.size + self.padding)
        if counts_padding:
            return ends - starts
        return ends.clamp(max=self.size) - starts.clamp(min=0)


def max_pool(dims: int) -> Callable[..., Any]:
    """Returns the decomposition of ``aten.max_pool1d``, ``max_pool2d`` or ``max_pool3d``: NaN is greatest.

    The decomposition is NotImplemented for integers and for windows of more than SLICES_LIMIT elements along
    a dimension.
    """

    def computed(
        x: torch.Tensor,
        kernel_size: list[int],
        stride: Any = (),
        padding: Any = (0,),
        dilation: Any = (1,),
        ceil_mode: bool = False,
    ) -> Any:
        windows = _windows(x, dims, kernel_size, stride, padding, dilation, ceil_mode)
        if not x.is_floating_point() or max(window.window for window in windows) > SLICES_LIMIT:
            return NotImplemented
        return _pooled(x, windows, -math.inf, _greatest).to(x.dtype)

    return computed


def _windows(
    x: torch.Tensor, dims: int, window: list[int], stride: Any, padding: Any, dilation: Any, up: bool
) -> list[_Windows]:
    """Returns the windows along each of the last ``dims`` dimensions.

    A list of one number is for all of these. ``up``: whether the number of windows is rounded up, as by
    ``ceil_mode``.
    """
    lists = (window, stride or window, padding, dilation)
    by_axis = [[*numbers] * (dims if len(numbers) == 1 else 1) for numbers in lists]
    axes = zip(x.shape[-dims:], *by_axis, strict=True)
    return [_Windows(size, width, step, margin, gap, up) for size, width, step, margin, gap in axes]


def average_pool(dims: int) -> Callable[..., Any]:
    """Returns the decomposition of ``aten.avg_pool1d`` to ``avg_pool3d``; f16 and bf16 are summed in f32.

    The decomposition leaves integers, and windows of more than SLICES_LIMIT elements along a dimension, to
    torch-mlir; f16 and bf16 of such windows are converted to f32 before.
    """

    def computed(
        x: torch.Tensor,
        kernel_size: list[int],
        stride: Any = (),
        padding: Any = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        windows = _windows(x, dims, kernel_size, stride, padding, [1], ceil_mode)
        window = [axis.window for axis in windows]
        is_long = max(window) > SLICES_LIMIT
        if not x.is_floating_point() or (is_long and x.dtype not in NARROW):
            return NotImplemented
        if is_long:
            rest = (ceil_mode, count_include_pad, *(() if dims == 1 else (divisor_override,)))
            return getattr(ATEN, f"avg_pool{dims}d")(x.float(), window, stride, padding, *rest).to(x.dtype)
        wide = widened(x)
        sums = _pooled(wide, windows, 0.0, _total)
        if divisor_override is not None:
            return (sums / divisor_override).to(x.dtype)
        # every window divides by its whole size: none lies beyond the padding that counts
        if all(
            max(axis.margins) <= axis.counted_padding(counts_padding=count_include_pad) for axis in windows
        ):
            return (sums / math.prod(window)).to(x.dtype)
        counts = [axis.divisors(counts_padding=count_include_pad).to(sums.dtype) for axis in windows]
        divisors = reduce(lambda product, count: product.unsqueeze(-1) * count, counts)
        return (sums / divisors).to(x.dtype)

    return computed


def adaptive_average_pool(dims: int) -> Callable[..., Any]:
    """Returns the decomposition of ``aten.adaptive_avg_pool1d``, ``2d`` or ``3d``, by ``dims``.

    A single window is one mean; windows of equal size are an ``average_pool``; others are means of slices,
    dimension by dimension. The decomposition returns NotImplemented for integers, for no windows, where
    ``average_pool`` does, and for more than SLICES_LIMIT windows of different sizes along a dimension.
    """
    of_windows = average_pool(dims)

    def computed(x: torch.Tensor, output_size: list[int]) -> Any:
        sizes = list(zip(x.shape[-dims:], output_size, strict=True))
        if x.is_floating_point() and math.prod(output_size) == 1:
            return x.mean(list(range(-dims, 0)), keepdim=True)
        if math.prod(output_size) == 0 or not x.is_floating_point():
            return NotImplemented
        if any(size % count for size, count in sizes):
            return _means_of_windows(x, output_size)
        return of_windows(x, [size // count for size, count in sizes])

    return computed


def _means_of_windows(x: torch.Tensor, counts: list[int]) -> Any:
    """Returns means of windows that differ or overlap, such as 0-2, 2-4 and 3-6 of 6 elements in 4 windows.

    Of n elements and c windows, window i is from i n / c, rounded down, to (i + 1) n / c, rounded up.
    """
    if max(counts) > SLICES_LIMIT:
        return NotImplemented
    means = widened(x)
    for dim, count in enumerate(counts, x.dim() - len(counts)):
        size = x.shape[dim]
        bounds = [(index * size // count, -(-(index + 1) * size // count)) for index in range(count)]
        windows = [ATEN.slice.Tensor(means, dim, start, end) for start, end in bounds]
        means = torch.cat([window.mean(dim, keepdim=True) for window in windows], dim)
    return means.to(x.dtype)


def adaptive_max_pool(dims: int) -> Callable[..., Any]:
    """Returns the decomposition of ``aten.adaptive_max_pool1d``, ``2d`` or ``3d``, for one window.

    It computes (maximum, index); the index of NaN is that of the last NaN, as PyTorch's is. It returns
    NotImplemented for more windows, for integers, and for no elements. ``dims``: 1, 2 or 3.
    """

    def computed(x: torch.Tensor, output_size: list[int]) -> Any:
        if not x.is_floating_point() or math.prod(output_size) != 1 or x.numel() == 0:
            return NotImplemented
        flat = x.flatten(-dims)
        shape = (*x.shape[:-dims], *[1] * dims)
        most = flat.amax(-1, keepdim=True)
        numbers = torch.arange(flat.shape[-1])
        first = torch.where(flat == most, numbers, flat.shape[-1]).amin(-1)
        last_nan = torch.where(flat != flat, numbers, -1).amax(-1)
        return most.reshape(shape), torch.where(last_nan < 0, first, last_nan).reshape(shape)

    return computed


def _greatest(slices: list[torch.Tensor]) -> torch.Tensor:
    """Returns the elementwise maximum, where a NaN is the greatest; f16 and bf16 are compared in f32."""
    wide = [widened(slice_) for slice_ in slices]
    return reduce(lambda most, x: torch.where((x > most) | (x != x), x, most), wide)


def _total(slices: list[torch.Tensor]) -> torch.Tensor:
    return reduce(torch.add, slices)


def _pooled(x: torch.Tensor, windows: list[_Windows], outside: float, combine: Combine) -> torch.Tensor:
    margins = [margin for window in reversed(windows) for margin in window.margins]
    if any(margin > 0 for margin in margins):
        x = pad(x, [max(margin, 0) for margin in margins], value=outside)
    slices = [x]
    for dim, axis in enumerate(windows, x.dim() - len(windows)):
        end = (axis.count - 1) * axis.stride + 1
        starts = range(0, axis.reach, axis.dilation)
        slices = [
            ATEN.slice.Tensor(slice_, dim, start, start + end, axis.stride)
            for slice_ in slices
            for start in starts
        ]
        # overlapping windows share what is combined along one dimension; others are combined at once, if
        # there are few slices after the next dimension too, whose windows are assumed to be as long
        next_count = len(slices) * axis.window
        if axis.stride < axis.window or next_count > SLICES_LIMIT:
            slices = [combine(slices)]
    if len(slices) > 1:
        return combine(slices)
    return slices[0]
