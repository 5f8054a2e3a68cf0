"""How reshapes, slices and transposes change where a tensor's elements lie: no data move.

Each function takes and returns a ``View``. Reshapes that need a copy return None.
"""

from collections.abc import Sequence
from dataclasses import replace

from tuner.core.grouped_program import TensorType, View

Reassociation = Sequence[Sequence[int]]  # groups of dimensions that become one


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the strides of a contiguous array of a shape."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def whole(buffer: int, kind: TensorType) -> View:
    """Returns the view of a contiguous tensor at the beginning of a buffer."""
    return View(buffer, 0, kind, row_major(kind.shape))


def is_contiguous(view: View) -> bool:
    """Returns whether the elements of a view lie row by row without gaps."""
    return all(
        size == 1 or stride == expected
        for size, stride, expected in zip(
            view.type.shape, view.strides, row_major(view.type.shape), strict=True
        )
    )


def expanded(view: View, shape: Sequence[int], groups: Reassociation) -> View:
    """Returns the view after each dimension is split into a group of dimensions of ``shape``."""
    strides = [0] * len(shape)
    for stride, group in zip(view.strides, groups, strict=True):
        for dimension in reversed(group):
            strides[dimension] = stride
            stride *= shape[dimension]
    if not view.strides:  # of a tensor of one element, all dimensions have size 1
        strides = [1] * len(shape)
    return replace(view, type=replace(view.type, shape=tuple(shape)), strides=tuple(strides))


def collapsed(view: View, groups: Reassociation) -> View | None:
    """Returns the view after each group of dimensions becomes one; None where this needs a copy."""
    shape, strides = [], []
    for group in groups:
        size, stride = 1, 1
        for dimension in reversed(group):
            extent, step = view.type.shape[dimension], view.strides[dimension]
            if extent == 1:
                continue
            if size == 1:
                stride = step
            elif step != stride * size:
                return None
            size *= extent
        shape.append(size)
        strides.append(stride)
    return replace(view, type=replace(view.type, shape=tuple(shape)), strides=tuple(strides))


def sliced(view: View, offsets: Sequence[int], sizes: Sequence[int], steps: Sequence[int]) -> View:
    """Returns the view of ``sizes`` elements from ``offsets`` on, every ``steps``-th along each dimension."""
    offset = sum(start * stride for start, stride in zip(offsets, view.strides, strict=True))
    strides = tuple(step * stride for step, stride in zip(steps, view.strides, strict=True))
    return View(view.buffer, view.offset + offset, replace(view.type, shape=tuple(sizes)), strides)


def without(view: View, dropped: Sequence[int]) -> View:
    """Returns the view without dimensions, all of which have size 1."""
    kept = [number for number in range(len(view.strides)) if number not in dropped]
    shape = tuple(view.type.shape[number] for number in kept)
    return replace(
        view, type=replace(view.type, shape=shape), strides=tuple(view.strides[number] for number in kept)
    )


def with_unit_dimensions(view: View, dropped: Sequence[int], rank: int) -> View:
    """Returns the view with dimensions of size 1 at the places ``dropped``: the inverse of ``without``."""
    shape, strides = list(view.type.shape), list(view.strides)
    for number in sorted(dropped):
        shape.insert(number, 1)
        strides.insert(number, 1)
    assert len(shape) == rank
    return replace(view, type=replace(view.type, shape=tuple(shape)), strides=tuple(strides))


def permuted(view: View, order: Sequence[int]) -> View:
    """Returns the view whose dimension i is dimension ``order[i]`` of the given one."""
    return replace(
        view,
        type=replace(view.type, shape=tuple(view.type.shape[each] for each in order)),
        strides=tuple(view.strides[each] for each in order),
    )
