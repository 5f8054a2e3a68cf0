"""Resizing of images, one dimension after the other, as operations on slices, which become vectors.

Along a dimension each pixel of the result is a sum of 1, 2 or 4 adjacent pixels (taps) by weights. Where the
size grows by a whole factor, the taps of all pixels are a few shifted copies of the input:

    interpolate(x, scale_factor=4, mode="linear")
  becomes, with x padded by its first and last pixel, for pixel 4 q + r of the result
    before, here, after = padded[q], padded[q + 1], padded[q + 2]
    where(base < q, before, here) * (1 - t) + where(base < q, here, after) * t

where ``base``, the first pixel that is read, and ``t`` depend on q and r alone, and are computed once. Where
the size shrinks by a whole factor, taps are slices in steps; else pixels are read by indices. Positions are
computed as ATen's kernels do, so that the same pixels are read, and a pixel of weight 0 counts where it is
NaN or infinite, as it does there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tuner.models.torch.element_types import widened

ATEN = torch.ops.aten
CUBIC = -0.75  # the coefficient of ATen's cubic convolution
Pixels = npt.NDArray[np.int64]


def interpolations() -> dict[Any, Callable[..., Any]]:
    """Returns decompositions of ATen's upsampling operators without antialiasing: overload -> function."""
    computed: dict[str, Callable[..., Any]] = {
        **{f"upsample_nearest{dims}d": nearest(dims, exact=False) for dims in (1, 2, 3)},
        **{f"_upsample_nearest_exact{dims}d": nearest(dims, exact=True) for dims in (1, 2, 3)},
        "upsample_linear1d": linear(1),
        "upsample_bilinear2d": linear(2),
        "upsample_trilinear3d": linear(3),
        "upsample_bicubic2d": cubic,
    }
    table = {}
    for name, decomposition in computed.items():
        overloads = getattr(ATEN, name)
        table[overloads.vec] = decomposition
        table[overloads.default] = decomposition
    return table


@dataclass(frozen=True)
class _Axis:
    """A dimension that is resized to ``count`` pixels, each of which is ``scale`` pixels of the input."""

    dim: int
    size: int
    count: int
    scale: float
    aligns_corners: bool = False

    @property
    def factor(self) -> int:
        """Returns by which whole factor the size grows; 0 where that is not whole."""
        if self.count % self.size == 0:
            return self.count // self.size
        return 0


def nearest(dims: int, *, exact: bool) -> Callable[..., Any]:
    """Returns the decomposition of ``aten.upsample_nearest1d`` to ``3d``; ``exact``: of ``nearest-exact``.

    ``dims``: the number of dimensions of an image, 1, 2 or 3.
    """

    def computed(x: torch.Tensor, output_size: Any, *scales: Any, **named: Any) -> torch.Tensor:
        for axis in _axes(x, dims, output_size, _scales(scales, named), np.float32):
            x = _nearest_along(x, axis, exact=exact)
        return x.contiguous()

    return computed


def linear(dims: int) -> Callable[..., Any]:
    """Returns the decomposition of ``upsample_linear1d``, ``bilinear2d`` or ``trilinear3d``, by ``dims``.

    It returns NotImplemented for integers.
    """
    return _weighted(dims, _linear_along)


def cubic(x: torch.Tensor, output_size: Any, align_corners: bool, *scales: Any, **named: Any) -> Any:
    """Computes ``aten.upsample_bicubic2d``; NotImplemented for integers."""
    return _weighted(2, _cubic_along)(x, output_size, align_corners, *scales, **named)


Along = Callable[[torch.Tensor, _Axis], torch.Tensor]


def _weighted(dims: int, along: Along) -> Callable[..., Any]:
    """Returns a decomposition that computes in f32 or f64, the last dimension first, as ATen does.

    ``along``: resizes one dimension.
    """

    def computed(x: torch.Tensor, output_size: Any, align_corners: bool, *scales: Any, **named: Any) -> Any:
        if not x.is_floating_point():
            return NotImplemented
        wide = widened(x)
        position_type = np.float64 if wide.dtype is torch.float64 else np.float32
        axes = _axes(
            x, dims, output_size, _scales(scales, named), position_type, aligns_corners=align_corners
        )
        for axis in reversed(axes):
            wide = along(wide, axis)
        return wide.to(x.dtype).contiguous()

    return computed


def _scales(positional: tuple[Any, ...], named: dict[str, Any]) -> tuple[float | None, ...]:
    """Returns the scales of ``.vec`` (a list) and of ``.default`` (a number for each dimension)."""
    values = [*positional, *named.values()]
    if len(values) == 1 and isinstance(values[0], list | tuple):
        return tuple(values[0])
    return tuple(values)


def _axes(
    x: torch.Tensor,
    dims: int,
    output_size: Any,
    scales: tuple[float | None, ...],
    position_type: Any,  # numpy's type that positions are computed in
    *,
    aligns_corners: bool = False,
) -> list[_Axis]:
    axes = []
    for number in range(dims):
        size = x.shape[x.dim() - dims + number]
        dim = x.dim() - dims + number
        growth = scales[number] if number < len(scales) else None
        count = int(size * growth) if output_size is None and growth is not None else output_size[number]
        if aligns_corners:
            scale = position_type(size - 1) / position_type(count - 1) if count > 1 else position_type(0)
        elif growth is not None and growth > 0:
            scale = position_type(1.0 / growth)
        else:
            scale = position_type(size) / position_type(count)
        axes.append(_Axis(dim, size, count, float(scale), aligns_corners))
    return axes


def _nearest_along(x: torch.Tensor, axis: _Axis, *, exact: bool) -> torch.Tensor:
    """Returns x resized: pixel i of the result is pixel (i + 0.5 if ``exact``, else i) * scale, rounded down.

    Not ``exact``, equal and doubled sizes are computed by integers, as by ATen.
    """
    numbers = np.arange(axis.count)
    offset = 0.5 if exact else 0.0
    positions = (numbers.astype(np.float32) + np.float32(offset)) * np.float32(axis.scale)
    read = np.minimum(np.floor(positions).astype(np.int64), axis.size - 1)
    if not exact and axis.factor in (1, 2):
        read = numbers // axis.factor
    if axis.factor and np.array_equal(read, numbers // axis.factor):
        return _repeated(x, axis)
    step = _step_of(read)
    if step:
        return _sliced(x, axis, int(read[0]), step)
    position = (torch.arange(axis.count, dtype=torch.float32) + offset) * axis.scale
    return _gathered(x, axis, torch.floor(position))


def _linear_along(x: torch.Tensor, axis: _Axis) -> torch.Tensor:
    if axis.count == axis.size:
        return x * 1.0 + x * 0.0  # as ATen: infinity becomes NaN
    position = _positions(axis, x.dtype)
    position = torch.where(position < 0, torch.zeros((), dtype=x.dtype), position)
    base = _clamped(torch.floor(position), axis.size - 1)
    t = _between_0_and_1(position - base)
    first_read = np.floor(np.maximum(_numpy_positions(axis, x.dtype), 0)).astype(np.int64)
    return _taps(x, axis, base, np.minimum(first_read, axis.size - 1), [1 - t, t], first=0)


def _cubic_along(x: torch.Tensor, axis: _Axis) -> torch.Tensor:
    position = _positions(axis, x.dtype)
    base = _clamped(torch.floor(position), axis.size - 1)
    t = _between_0_and_1(position - base)
    first_read = np.floor(_numpy_positions(axis, x.dtype)).astype(np.int64)
    weights = [_outer(t + 1), _inner(t), _inner(1 - t), _outer(1 - t + 1)]
    return _taps(x, axis, base, np.minimum(first_read, axis.size - 1), weights, first=-1)


def _inner(t: torch.Tensor) -> torch.Tensor:
    """Returns the cubic convolution of a distance of at most 1."""
    return ((CUBIC + 2) * t - (CUBIC + 3)) * t * t + 1


def _outer(t: torch.Tensor) -> torch.Tensor:
    """Returns the cubic convolution of a distance between 1 and 2."""
    return ((CUBIC * t - 5 * CUBIC) * t + 8 * CUBIC) * t - 4 * CUBIC


def _positions(axis: _Axis, dtype: torch.dtype) -> torch.Tensor:
    """Returns where each pixel of the result lies in the input.

    The product is not rounded before the subtraction: ATen's kernels are compiled to fused instructions.
    """
    numbers = torch.arange(axis.count, dtype=torch.float64)
    positions = numbers * axis.scale if axis.aligns_corners else (numbers + 0.5) * axis.scale - 0.5
    return positions.to(dtype)


def _numpy_positions(axis: _Axis, dtype: torch.dtype) -> npt.NDArray[Any]:
    """Returns the numbers that ``_positions`` describes: known now, they say which operations are made."""
    numbers = np.arange(axis.count).astype(np.float64)
    positions = numbers * axis.scale if axis.aligns_corners else (numbers + 0.5) * axis.scale - 0.5
    return positions.astype(np.float64 if dtype is torch.float64 else np.float32)


def _clamped(numbers: torch.Tensor, greatest: int) -> torch.Tensor:
    return torch.where(numbers > greatest, torch.full((), float(greatest), dtype=numbers.dtype), numbers)


def _between_0_and_1(t: torch.Tensor) -> torch.Tensor:
    zero = torch.zeros((), dtype=t.dtype)
    one = torch.ones((), dtype=t.dtype)
    return torch.where(t < 0, zero, torch.where(t > 1, one, t))


def _taps(
    x: torch.Tensor,
    axis: _Axis,
    base: torch.Tensor,
    base_numbers: Pixels,
    weights: list[torch.Tensor],
    first: int,
) -> torch.Tensor:
    """Sums pixels ``base + first``, ``base + first + 1`` and so on, clamped to the image, by their weights.

    ``base``: by pixel of the result; ``base_numbers``: the same numbers, known now, which say how pixels are
    read. ``weights``: per tap, a weight by pixel of the result.
    """
    last = first + len(weights) - 1
    step = _step_of(base_numbers)
    if step and base_numbers[0] + first >= 0 and base_numbers[-1] + last < axis.size:
        read = [_sliced(x, axis, int(base_numbers[0]) + first + tap, step) for tap in range(len(weights))]
        return _weighted_sum(read, [_along_dim(weight, x, axis) for weight in weights])
    if axis.factor:
        distances = base_numbers - np.arange(axis.count) // axis.factor
    else:
        distances = np.array([axis.size])
    if set(distances.tolist()) <= {-1, 0}:
        return _by_phases(x, axis, base, weights, first)
    read = [_gathered(x, axis, base + float(first + tap)) for tap in range(len(weights))]
    return _weighted_sum(read, [_along_dim(weight, x, axis) for weight in weights])


def _by_phases(
    x: torch.Tensor, axis: _Axis, base: torch.Tensor, weights: list[torch.Tensor], first: int
) -> torch.Tensor:
    """Sums taps where pixels q x factor + r of the result begin to read at pixel q or q - 1."""
    inner = [1] * (x.dim() - 1 - axis.dim)
    shape = [axis.size, axis.factor, *inner]
    low = 1 - first
    high = first + len(weights) - 1
    ends = x.narrow(axis.dim, 0, 1), x.narrow(axis.dim, axis.size - 1, 1)
    padded = torch.cat([*[ends[0]] * low, x, *[ends[1]] * high], axis.dim)
    planes = [
        padded.narrow(axis.dim, offset, axis.size).unsqueeze(axis.dim + 1) for offset in range(low + high + 1)
    ]
    numbers = torch.arange(axis.size, dtype=base.dtype).unsqueeze(1)
    is_before = (base.reshape(axis.size, axis.factor) < numbers).reshape(shape)
    read = [torch.where(is_before, before, here) for before, here in pairwise(planes)]
    return _weighted_sum(read, [weight.reshape(shape) for weight in weights]).flatten(axis.dim, axis.dim + 1)


def _weighted_sum(read: list[torch.Tensor], weights: list[torch.Tensor]) -> torch.Tensor:
    products = [pixels * weight for pixels, weight in zip(read, weights, strict=True)]
    total = products[0]
    for product in products[1:]:
        total = total + product
    return total


def _along_dim(weight: torch.Tensor, x: torch.Tensor, axis: _Axis) -> torch.Tensor:
    return weight.reshape(-1, *[1] * (x.dim() - 1 - axis.dim))


def _step_of(read: Pixels) -> int:
    """Returns the distance between the pixels that are read if it is constant and above 0; else 0."""
    steps = set(np.diff(read).tolist())
    step = steps.pop() if len(steps) == 1 else 0
    if len(read) > 1 and not steps:
        return max(step, 0)
    return 0


def _sliced(x: torch.Tensor, axis: _Axis, first: int, step: int) -> torch.Tensor:
    end = first + step * (axis.count - 1) + 1
    return x[(*[slice(None)] * axis.dim, slice(first, end, step))]


def _repeated(x: torch.Tensor, axis: _Axis) -> torch.Tensor:
    shape = [*x.shape[: axis.dim + 1], axis.factor, *x.shape[axis.dim + 1 :]]
    return x.unsqueeze(axis.dim + 1).expand(shape).flatten(axis.dim, axis.dim + 1)


def _gathered(x: torch.Tensor, axis: _Axis, numbers: torch.Tensor) -> torch.Tensor:
    """Reads pixels by numbers, which are floats, clamped to the image."""
    numbers = _clamped(torch.where(numbers < 0, torch.zeros((), dtype=numbers.dtype), numbers), axis.size - 1)
    return torch.index_select(x, axis.dim, numbers.to(torch.int64))
