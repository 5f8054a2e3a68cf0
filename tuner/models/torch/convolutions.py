"""Convolutions of volumes and transposed ones, written as the convolutions that schedules are for.

A convolution of volumes in groups becomes one of images: the planes that a window covers become channels.
A transposed convolution becomes several plain ones without the zeros between pixels that torch-mlir would
multiply. Ends of a window that are in the padding wherever it stands are cut off: of 3 x 3 elements 12 pixels
apart, over 6 x 6 pixels, only the middle one is left. A convolution in groups along one dimension becomes one
of images of one row, and one of images of one column a convolution along one dimension: registers are filled
along the last dimension.
"""

import itertools
import math
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
from torch.nn.functional import pad

CONVOLUTION = torch.ops.aten.convolution.default
PHASES_LIMIT = 32  # each is an operation of the program, which the compiler's time grows with


def convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
) -> Any:
    """Computes ``aten.convolution`` by operators that torch-mlir lowers well; NotImplemented: keep it.

    Computed are transposed convolutions with a stride (of at most PHASES_LIMIT in all) or of three
    dimensions, windows whose elements partly read padding alone, images of one column, and 1-d and 3-d
    convolutions in groups.

    Args:
        x: images x channels x 1, 2 or 3 sizes.
        weight: filters x channels of a group x window; transposed: channels x filters of a group x window.
        bias: a number for each filter.
        stride: pixels from one window to the next, by dimension, or one number for all of them.
        padding: zeros on each side of x, by dimension, or one number for all of them.
        dilation: pixels from one element of a window to the next, by dimension, or one number.
        transposed: whether to compute the transposed convolution.
        output_padding: pixels to add at the end of a transposed convolution's result, by dimension, or
            one number.
        groups: parts into which channels and filters are divided.
    """
    dims = weight.dim() - 2
    steps, margins, gaps, more = (
        [*sizes] * (dims if len(sizes) == 1 else 1) for sizes in (stride, padding, dilation, output_padding)
    )
    form = _Form(steps, margins, gaps, more, groups)
    if transposed:
        phases = math.prod(form.stride)  # 1: torch-mlir adds no zeros between pixels
        is_better = phases <= PHASES_LIMIT and (phases > 1 or dims == 3)
        if is_better:
            return _transposed(x, weight, bias, form)
        return NotImplemented
    windows = _windows(x, weight, form)
    if any(map(attrgetter("is_cut"), windows)):
        return _of_what_is_read(x, weight, bias, form, windows)
    is_column = dims == 2 and x.shape[2] > x.shape[3] == weight.shape[3] == 1 and not form.padding[1]
    if is_column:
        return _of_column(x, weight, bias, form)
    # MLIR has none in groups; torch-mlir would make images of one column
    if dims == 1 and groups > 1:
        return _of_row(x, weight, bias, form)
    # MLIR has no convolution of volumes in groups
    if dims == 3 and groups > 1:
        return _of_volumes(x, weight, bias, form)
    return NotImplemented


@dataclass(frozen=True)
class _Form:
    stride: list[int]
    padding: list[int]
    dilation: list[int]
    output_padding: list[int]
    groups: int


@dataclass(frozen=True)
class _Window:
    """A window along one dimension of x, and which of its elements read x, wherever the window stands."""

    size: int  # of x
    elements: int
    stride: int
    padding: int
    dilation: int

    @property
    def count(self) -> int:
        """Returns how often the window stands in the padded input."""
        return (self.size + 2 * self.padding - self.dilation * (self.elements - 1) - 1) // self.stride + 1

    def reads(self, element: int) -> bool:
        """Returns whether an element reads a pixel of x somewhere, not only padding."""
        first = element * self.dilation - self.padding
        windows_before = max(-(first // self.stride), 0)  # in which the element is before x
        return windows_before < self.count and first + windows_before * self.stride < self.size

    @property
    def read(self) -> range:
        """Returns the indices from the first to the last element of the window that reads x.

        All if none does.
        """
        reading = list(filter(self.reads, range(self.elements)))
        if not reading:
            return range(self.elements)
        return range(reading[0], reading[-1] + 1)

    @property
    def is_cut(self) -> bool:
        return len(self.read) < self.elements


def _windows(x: torch.Tensor, weight: torch.Tensor, form: _Form) -> list[_Window]:
    return list(map(_Window, x.shape[2:], weight.shape[2:], form.stride, form.padding, form.dilation))


def _of_what_is_read(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, form: _Form, windows: list[_Window]
) -> Any:
    paddings = []
    dilations = []
    for dim, window in enumerate(windows, 2):
        read = window.read
        weight = weight.narrow(dim, read.start, len(read))
        dilation = window.dilation if len(read) > 1 else 1
        padding = window.padding - read.start * window.dilation
        cut = _Window(window.size, len(read), window.stride, padding, dilation)
        if padding < 0 or cut.count != window.count:  # else the same padding on both sides will do
            reach = (window.count - 1) * window.stride + (len(read) - 1) * dilation + 1
            x = _along(x, dim, -padding, reach)
            padding = 0
        paddings.append(padding)
        dilations.append(dilation)
    nothing_more = [0] * len(windows)
    return CONVOLUTION(x, weight, bias, form.stride, paddings, dilations, False, nothing_more, form.groups)


def _of_column(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, form: _Form) -> Any:
    sizes = (form.stride[:1], form.padding[:1], form.dilation[:1])
    return CONVOLUTION(x.squeeze(3), weight.squeeze(3), bias, *sizes, False, [0], form.groups).unsqueeze(3)


def _of_row(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, form: _Form) -> Any:
    sizes = ([1, *form.stride], [0, *form.padding], [1, *form.dilation])
    image = x.unsqueeze(2)
    return CONVOLUTION(image, weight.unsqueeze(2), bias, *sizes, False, [0, 0], form.groups).squeeze(2)


def _of_volumes(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, form: _Form) -> Any:
    x = pad(x, (0, 0, 0, 0, form.padding[0], form.padding[0]))
    filters, channels, depth, *window = weight.shape
    step = form.stride[0]
    gap = form.dilation[0]
    planes = (x.shape[2] - gap * (depth - 1) - 1) // step + 1  # of the result; each is an image
    starts = range(0, gap * depth, gap)
    read = [x[:, :, start : start + step * (planes - 1) + 1 : step] for start in starts]
    images = torch.stack(read, 2).permute(0, 3, 1, 2, 4, 5)
    sums = CONVOLUTION(
        images.reshape(x.shape[0] * planes, form.groups * channels * depth, *x.shape[3:]),
        weight.reshape(filters, channels * depth, *window),
        bias,
        *(form.stride[1:], form.padding[1:], form.dilation[1:], False, [0, 0], form.groups),
    )
    shaped = sums.reshape(x.shape[0], planes, filters, *sums.shape[2:])
    return shaped.permute(0, 2, 1, 3, 4).contiguous()


# Pixel o of a transposed convolution sums x[i] * weight[k] over o + padding = i * stride + k * dilation, in
# each dimension. Pixels with the same rest by the stride, a phase, read the same elements of the window, at
# the same distances: they are the result of a plain convolution with these elements, in reverse. Phases that
# read the same pixels are filters of one convolution.


@dataclass(frozen=True)
class _Read:
    first: int  # pixel of x that pixel 0 of the phase reads first; below 0: a zero
    taps: int  # elements of the window that it reads


def _transposed(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, form: _Form) -> Any:
    dims = len(form.stride)
    window = weight.shape[2:]
    filters = weight.shape[1]
    of_groups = weight.reshape(form.groups, -1, filters, *window).transpose(1, 2)
    flipped = of_groups.flip(tuple(range(3, 3 + dims)))  # group, filter, channel, window
    sizes = _sizes(x, window, form)
    counts = [-(-size // step) for size, step in zip(sizes, form.stride, strict=True)]  # pixels of a phase
    phases = list(itertools.product(*map(range, form.stride)))
    together: dict[tuple[_Read, ...], dict[int, torch.Tensor]] = {}
    for index, phase in enumerate(phases):
        reads, part = _part_of_window(flipped, phase, window, form)
        if all(read.taps for read in reads):
            together.setdefault(reads, {})[index] = part
    zeros = torch.zeros((), dtype=x.dtype).expand(x.shape[0], form.groups * filters, *counts)
    empty = zeros if bias is None else zeros + bias.reshape(-1, *[1] * dims)
    results = [empty] * len(phases)
    for reads, parts in together.items():
        sums = _plain(x, reads, list(parts.values()), bias, counts, form)
        for index in parts:
            results[index] = sums.pop(0)
    for at, step in reversed([*enumerate(form.stride)]):  # each phase is written where its pixels lie
        rows = [results[first : first + step] for first in range(0, len(results), step)]
        results = [torch.stack(row, 3 + at).flatten(2 + at, 3 + at) for row in rows]
    return results[0][(..., *map(slice, sizes))].contiguous()


def _sizes(x: torch.Tensor, window: torch.Size, form: _Form) -> list[int]:
    dimensions = zip(
        x.shape[2:], window, form.stride, form.padding, form.dilation, form.output_padding, strict=True
    )
    # n images, s stride, p padding, d dilation, k window: the output size that ATen documents
    return [(n - 1) * s - 2 * p + d * (k - 1) + more + 1 for n, k, s, p, d, more in dimensions]


def _part_of_window(
    flipped: torch.Tensor, phase: tuple[int, ...], window: torch.Size, form: _Form
) -> tuple[tuple[_Read, ...], torch.Tensor]:
    reads = []
    dimensions = zip(phase, window, form.stride, form.padding, form.dilation, strict=True)
    for at, (rest, size, step, margin, gap) in enumerate(dimensions):
        # output rest + q * step reads input (rest + margin - k * gap) / step + q for tap k, if it is whole
        taps = [k for k in reversed(range(size)) if (rest + margin - k * gap) % step == 0]
        reads.append(_Read((rest + margin - taps[0] * gap) // step if taps else 0, len(taps)))
        if taps:
            taps_read = slice(size - 1 - taps[0], size - taps[-1], step // math.gcd(step, gap))
            flipped = flipped[(..., taps_read, *[slice(None)] * (len(window) - 1 - at))]
    return tuple(reads), flipped


def _plain(
    x: torch.Tensor,
    reads: tuple[_Read, ...],
    parts: list[torch.Tensor],
    bias: torch.Tensor | None,
    counts: list[int],
    form: _Form,
) -> list[torch.Tensor]:
    """Computes phases that read the same pixels of x by one convolution; returns a result per phase.

    ``parts``: the window of each phase, group x filter x channel x taps; each result: images x filters x
    ``counts``.
    """
    dims = len(counts)
    (groups, filters, channels) = parts[0].shape[:3]
    gaps = [gap // math.gcd(step, gap) for step, gap in zip(form.stride, form.dilation, strict=True)]
    for at, (read, count, gap) in enumerate(zip(reads, counts, gaps, strict=True)):
        x = _along(x, 2 + at, read.first, count + gap * (read.taps - 1))
    weight = torch.cat(parts, 1).reshape(-1, channels, *[read.taps for read in reads])
    if bias is not None:
        bias = torch.cat([bias.reshape(groups, filters)] * len(parts), 1).reshape(-1)
    sums = CONVOLUTION(x, weight, bias, [1] * dims, [0] * dims, gaps, False, [0] * dims, groups)
    # channels of the result: group, phase, filter
    split = sums.reshape(x.shape[0], groups, len(parts), filters, *counts).unbind(2)
    return [phase.reshape(x.shape[0], groups * filters, *counts) for phase in split]


def _along(x: torch.Tensor, dim: int, first: int, count: int) -> torch.Tensor:
    """Returns ``count`` elements from index ``first`` on along a dimension; zeros outside of x.

    ``first`` may be negative.
    """
    low = min(max(-first, 0), count)
    high = min(max(first + count - x.shape[dim], 0), count)
    inside = x.narrow(dim, min(max(first, 0), x.shape[dim]), count - low - high)
    if low or high:
        return pad(inside, [0, 0] * (x.dim() - 1 - dim) + [low, high])
    return inside
