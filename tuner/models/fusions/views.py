"""Views of tensors in memory: how reshapes, slices, transposes, paddings and insertions place elements.

A ``View`` (``tuner.core.fusions``) is a buffer, an offset and strides. ``expanded`` to ``permuted`` compute
views; ``view_of`` and ``source_of`` follow an operation, forwards and backwards; the functions after them
read operations.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tuner.core.fusions import TensorType, View, row_major
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions import operations
from tuner.mlir.ir.reading import groups_of, maps_in

# How reshapes, slices and transposes change where a tensor's elements lie: no data move.
#
# Each function takes and returns a ``View``. Reshapes that need a copy return None.

Reassociation = Sequence[Sequence[int]]  # groups of dimensions that become one
YIELD = "tensor.yield"


def whole(buffer: int, type_: TensorType) -> View:
    """Returns the view of a contiguous tensor at the beginning of a buffer."""
    return View(buffer, 0, type_, row_major(type_.shape))


def expanded(view: View, shape: Sequence[int], groups: Reassociation) -> View:
    """Returns the view after each dimension is split into a group of dimensions of ``shape``."""
    strides = [0] * len(shape)
    for stride, group in zip(view.strides, groups, strict=True):
        for dimension in reversed(group):
            strides[dimension] = stride
            stride *= shape[dimension]
    if not view.strides:  # of a tensor of one element, all dimensions have size 1
        strides = [1] * len(shape)
    return _reshaped(view, shape, strides)


def collapsed(view: View, groups: Reassociation) -> View | None:
    """Returns the view with each group of dimensions collapsed into one; None if a copy would be needed."""
    shape = []
    strides = []
    for group in groups:
        size = 1
        stride = 1
        for dimension in reversed(group):
            extent = view.type.shape[dimension]
            step = view.strides[dimension]
            if extent == 1:
                continue
            if size == 1:
                stride = step
            elif step != stride * size:
                return None
            size *= extent
        shape.append(size)
        strides.append(stride)
    return _reshaped(view, shape, strides)


def sliced(view: View, offsets: Sequence[int], sizes: Sequence[int], steps: Sequence[int]) -> View:
    """Returns the view of ``sizes`` elements from ``offsets`` on, every ``steps``-th along each dimension."""
    offset = sum(start * stride for start, stride in zip(offsets, view.strides, strict=True))
    strides = tuple(step * stride for step, stride in zip(steps, view.strides, strict=True))
    return View(view.buffer, view.offset + offset, replace(view.type, shape=tuple(sizes)), strides)


def without(view: View, dropped: Sequence[int]) -> View:
    """Returns the view without the dimensions ``dropped``, which must have size 1."""
    return permuted(view, [number for number in range(len(view.strides)) if number not in dropped])


def permuted(view: View, order: Sequence[int]) -> View:
    """Returns the view whose dimension i is dimension ``order[i]`` of ``view``."""
    shape = [view.type.shape[dimension] for dimension in order]
    strides = [view.strides[dimension] for dimension in order]
    return _reshaped(view, shape, strides)


def _reshaped(view: View, shape: Sequence[int], strides: Sequence[int]) -> View:
    return replace(view, type=replace(view.type, shape=tuple(shape)), strides=tuple(strides))


@dataclass(frozen=True)
class Slice:
    """The static offsets, sizes and steps of a slice.

    ``dropped``: the dimensions of size 1 that the sliced tensor lacks.
    """

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    dropped: tuple[int, ...]


def view_of(op: Op, source: View) -> View | None:
    """Returns the view of memory of a reshape's or slice's result, given the view of its source.

    None where the result would need a copy, and for a slice that is not static.
    """
    if op.name == operations.EXPAND:
        return expanded(source, tuple(op.results[0].type.shape), groups_of(op))
    if op.name == operations.COLLAPSE:
        return collapsed(source, groups_of(op))
    slice_ = slice_of(op)
    if slice_ is None:
        return None
    slice_view = sliced(source, slice_.offsets, slice_.sizes, slice_.steps)
    return without(slice_view, slice_.dropped)


def source_of(op: Op, result: View) -> View | None:
    """Returns the view in which the source of a reshape has to lie so that the result lies in ``result``.

    None where no such view exists, and for operations other than reshapes.
    """
    if op.name == operations.EXPAND:
        return collapsed(result, groups_of(op))
    if op.name == operations.COLLAPSE:
        return expanded(result, tuple(op.operands[0].type.shape), groups_of(op))
    return None


def slice_of(op: Op) -> Slice | None:
    """Returns the slice of ``tensor.extract_slice`` or ``tensor.insert_slice``.

    None if its offsets, sizes or steps are not static.
    """
    is_extracted = op.name == operations.SLICE
    if len(op.operands) > (1 if is_extracted else 2):
        return None
    offsets, sizes, steps = (
        tuple(op.attributes[name]) for name in ("static_offsets", "static_sizes", "static_strides")
    )
    part = op.results[0] if is_extracted else op.operands[0]
    shape = tuple(part.type.shape)
    dropped = []
    at = 0
    for index, size in enumerate(sizes):
        if at < len(shape) and size == shape[at]:
            at += 1
        else:
            dropped.append(index)
    return Slice(offsets, sizes, steps, tuple(dropped))


def transposition_of(op: Op) -> tuple[int, ...] | None:
    """Returns, per dimension of the result of a generic that only permutes them, the source's dimension.

    None for another operation, and for a constant, empty or filled source. A copy in order is a permutation.
    """
    loops = moved_loops(op)
    if loops is None or len(loops) != maps_in(op)[0].n_dims or operations.is_free(op.operands[0]):
        return None
    return tuple(map(loops.index, range(len(loops))))


def moved_loops(op: Op) -> tuple[int, ...] | None:
    """Returns, per dimension of its input, the loop of a ``linalg.generic`` that only moves elements.

    None for a generic that computes something, and for another operation.
    """
    if (
        op.name != operations.GENERIC
        or len(op.results) != 1
        or len(operations.inputs_of(op)) != 1
        or not all(operations.is_parallel(op))
    ):
        return None
    source, result = maps_in(op)
    body = operations.body_of(op)
    is_moved = len(body) == 1 and body[0].operands[0] == op.regions[0].blocks[0].arguments[0]
    if is_moved and operations.is_identity(result):
        return operations.dimensions(source)
    return None


def padding_number(op: Op) -> float | None:
    """Returns the constant that a ``tensor.pad`` adds; None for other values, dynamic or negative widths."""
    if len(op.operands) > 1 or min((*op.attributes["static_low"], *op.attributes["static_high"])) < 0:
        return None
    yields = [
        operation.operation
        for operation in op.regions[0].blocks[0].operations
        if operation.operation.name == YIELD
    ]
    return _number(yields[0].operands[0])


def number_of(value: Value) -> float | None:
    """Returns the constant that fills a tensor; None if the tensor is not a ``linalg.fill`` of a constant.

    Also None for an integer that no float is equal to.
    """
    op = operations.defining(value)
    if op is None or op.name != operations.FILL:
        return None
    return _number(op.operands[0])


def _number(value: Value) -> float | None:
    op = operations.defining(value)
    if op is None or op.name != operations.CONSTANT:
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.IntegerAttr) and int(float(attribute.value)) != attribute.value:
        return None  # beyond 2**53: kept as a float, it would be another number
    is_known = isinstance(attribute, ir.FloatAttr | ir.IntegerAttr)
    if is_known:
        return float(attribute.value)
    return None


def interior_of(op: Op, home: View) -> View:
    """Returns the view of the source of a ``tensor.pad``, given ``home``, the view of its result."""
    shape = tuple(op.operands[0].type.shape)
    return sliced(home, tuple(op.attributes["static_low"]), shape, (1,) * len(shape))


def parts_of(op: Op, home: View) -> Iterator[tuple[Value, View]]:
    """Yields each operand of ``tensor.concat`` with its view, given ``home``, the view of the result."""
    along = ir.IntegerAttr(op.attributes["dim"]).value
    start = 0
    for part in op.operands:
        shape = tuple(part.type.shape)
        offsets = tuple(start if number == along else 0 for number in range(len(shape)))
        yield part, sliced(home, offsets, shape, (1,) * len(shape))
        start += shape[along]


def insertions(op: Op) -> list[Slice] | None:
    """Returns the slices of a chain of ``tensor.insert_slice`` into an empty tensor, the last one first.

    ``op``: the last insertion. None where the chain does not begin with ``tensor.empty``, where two
    insertions may write the same element, where a slice is not static, and where another operation reads a
    tensor between two insertions.
    """
    slices: list[Slice] = []
    while True:
        slice_ = slice_of(op)
        if slice_ is None or any(_overlap(slice_, other) for other in slices):
            return None
        slices.append(slice_)
        base = operations.defining(op.operands[1])
        if base is None or base.name not in (operations.INSERT, operations.EMPTY):
            return None
        if base.name == operations.EMPTY:
            return slices
        if len(operations.users(base.results[0])) != 1:
            return None
        op = base


def _overlap(left: Slice, right: Slice) -> bool:
    ranges = zip(
        zip(left.offsets, left.sizes, left.steps, strict=True),
        zip(right.offsets, right.sizes, right.steps, strict=True),
        strict=True,
    )
    return all(
        # the spans of the slices; steps that interleave count as an overlap
        first < start + (count - 1) * step + 1 and start < first + (size - 1) * stride + 1
        for (first, size, stride), (start, count, step) in ranges
    )


def memref_type(view: View) -> str:
    """Returns the MLIR memref type of a view whose pointer includes the offset."""
    shape = "".join(f"{size}x" for size in view.type.shape)
    if view.is_contiguous:
        return f"memref<{shape}{view.type.element}>"
    strides = []
    step = 1
    for size, stride in zip(reversed(view.type.shape), reversed(view.strides), strict=True):
        # the stride of a dimension of size 1 does not matter: it is as in contiguous memory
        strides.append(step if size == 1 else stride)
        step = strides[-1] * size
    return f"memref<{shape}{view.type.element}, strided<{strides[::-1]}>>"
