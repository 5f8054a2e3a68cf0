"""Vectors in each lane: shapes, elements and slices. Arrays have the shape (blocks, threads, *vector)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tuner.mlir.bindings import Op, ir
from tuner.programs.interpreter.decoding import Decode, FunctionScope, LaneFrame, Step
from tuner.programs.interpreter.lanes import INDEX, Array, BufferView, uniform, with_trailing_axes
from tuner.programs.interpreter.scalar_ops import elementwise, step_of
from tuner.programs.interpreter.subgroup_ops import poison


def shape_of(kind: Any) -> tuple[int, ...]:
    """Returns the shape of an MLIR vector type; () for a number type."""
    return tuple(kind.shape) if isinstance(kind, ir.VectorType) else ()


def spread(values: Array, shape: tuple[int, ...]) -> Array:
    """Returns ``values``, of shape (blocks, threads, *vector), broadcast to vectors of ``shape``.

    Leading dimensions are added to the vector, and dimensions of size 1 are repeated.
    """
    missing = len(shape) - (values.ndim - 2)
    shaped = values.reshape(*values.shape[:2], *[1] * missing, *values.shape[2:])
    return np.broadcast_to(shaped, (*values.shape[:2], *shape))


def broadcast(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.broadcast``: repeats a number or vector along added or unit dimensions.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    shape = shape_of(op.results[0].type)
    return step_of(op, scope, lambda values: spread(values, shape))


def positions(op: Op, scope: FunctionScope, first: int) -> Callable[[LaneFrame], list[Array]]:
    """Returns a function of a frame that computes the indices of a ``vector.extract`` or ``vector.insert``.

    The function returns one index array per indexed dimension; static indices have shape (1, 1).

    Args:
        op: the operation.
        scope: the function being decoded.
        first: number of the first operand that is a dynamic index.
    """
    static = list(ir.DenseI64ArrayAttr(op.attributes["static_position"]))
    slots = scope.slots(list(op.operands)[first:])
    unknown = ir.ShapedType.get_dynamic_size()

    def read(frame: LaneFrame) -> list[Array]:
        rest = iter(slots)
        return [frame.values[next(rest)] if place == unknown else uniform(place) for place in static]

    return read


def extract(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.extract``: the element or subvector at an index.

    An index outside the vector is clamped. A step is a function that executes ``op`` in all active lanes (GPU
    threads) of a frame; ``scope`` maps SSA values to frame slots.
    """
    source, target, places = scope.slot(op.operands[0]), scope.slot(op.results[0]), positions(op, scope, 1)

    def step(frame: LaneFrame) -> None:
        found = frame.values[source]
        for place in places(frame):
            axes = found.ndim - 2
            inside = np.clip(place, 0, found.shape[2] - 1)
            if place.size == 1:
                found = found[:, :, int(inside[0, 0])]
            else:
                shape = np.broadcast_shapes(place.shape, found.shape[:2])
                whole = np.broadcast_to(found, (*shape, *found.shape[2:]))
                where = with_trailing_axes(np.broadcast_to(inside, shape), axes)
                found = np.take_along_axis(whole, where, 2)[:, :, 0]
        frame.values[target] = found

    return step


def insert(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.insert``: a copy of a vector with one element or subvector replaced.

    An index outside the vector replaces nothing. A step is a function that executes ``op`` in all active
    lanes (GPU threads) of a frame; ``scope`` maps SSA values to frame slots.
    """
    value, whole = scope.slots(list(op.operands)[:2])
    target, places = scope.slot(op.results[0]), positions(op, scope, 2)

    def step(frame: LaneFrame) -> None:
        new, old = frame.values[value], frame.values[whole]
        axes = old.ndim - 2
        chosen = np.ones((1, 1, *[1] * axes), bool)
        listed = places(frame)
        for axis, place in enumerate(listed):
            numbers = np.arange(old.shape[2 + axis]).reshape(-1, *[1] * (axes - 1 - axis))
            chosen = chosen & (with_trailing_axes(place, axes) == numbers)
        new = new.reshape(*new.shape[:2], *[1] * len(listed), *new.shape[2:])
        frame.values[target] = np.where(chosen, new, old)

    return step


def integers_of(op: Op, name: str) -> list[int]:
    """Returns the array attribute ``name`` of ``op`` as a list of integers."""
    return [ir.IntegerAttr(each).value for each in ir.ArrayAttr(op.attributes[name])]


def extract_slice(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.extract_strided_slice``: a slice by offsets, sizes and strides.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    parts = zip(*(integers_of(op, name) for name in ("offsets", "sizes", "strides")), strict=True)
    places = tuple(slice(first, first + (size - 1) * step + 1, step) for first, size, step in parts)
    return step_of(op, scope, lambda values: values[:, :, *places])


def insert_slice(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.insert_strided_slice``: a copy of a vector with a slice replaced.

    The slice extends along the last dimensions. A step is a function that executes ``op`` in all active lanes
    (GPU threads) of a frame; ``scope`` maps SSA values to frame slots.
    """
    offsets, strides = integers_of(op, "offsets"), integers_of(op, "strides")
    sizes = shape_of(op.operands[0].type)
    outer = len(offsets) - len(sizes)
    places = tuple(
        slice(first, first + (size - 1) * step + 1, step)
        for first, size, step in zip(offsets, [1] * outer + list(sizes), [1] * outer + strides, strict=True)
    )

    def compute(new: Array, old: Array) -> Array:
        lanes = np.broadcast_shapes(new.shape[:2], old.shape[:2])
        result = np.broadcast_to(old, (*lanes, *old.shape[2:])).copy()
        result[:, :, *places] = new.reshape(*new.shape[:2], *[1] * outer, *new.shape[2:])
        return result

    return step_of(op, scope, compute)


def reshape(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.shape_cast``: the same elements in row-major order with another shape.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    shape = shape_of(op.results[0].type)
    return step_of(op, scope, lambda values: values.reshape(*values.shape[:2], *shape))


def bitcast(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.bitcast``: the size of the last dimension changes with the element width.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    dtype = scope.element(op, op.results[0].type).dtype
    return step_of(op, scope, lambda values: np.ascontiguousarray(values).view(dtype))


def transpose(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.transpose``: permutes the dimensions of a vector.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    order = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
    return step_of(op, scope, lambda values: values.transpose(0, 1, *(2 + axis for axis in order)))


def from_elements(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.from_elements``: a vector of the operands, in row-major order.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    shape = shape_of(op.results[0].type)

    def compute(*values: Array) -> Array:
        listed = np.stack(np.broadcast_arrays(*values), -1)
        return listed.reshape(*listed.shape[:2], *shape)

    return step_of(op, scope, compute)


def to_elements(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.to_elements``: one result per element of a vector, in row-major order.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    (source,), targets = scope.slots(op.operands), scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        values = frame.values[source]
        flat = values.reshape(*values.shape[:2], -1)
        for number, target in enumerate(targets):
            frame.values[target] = flat[:, :, number]

    return step


def shuffle(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.shuffle``: selects elements of two joined vectors; -1 selects poison.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    chosen = np.array(list(ir.DenseI64ArrayAttr(op.attributes["mask"])))

    def compute(one: Array, other: Array) -> Array:
        lanes = np.broadcast_shapes(one.shape[:2], other.shape[:2])
        both = [np.broadcast_to(each, (*lanes, *each.shape[2:])) for each in (one, other)]
        taken = np.concatenate(both, 2)[:, :, np.maximum(chosen, 0)]
        return np.where(with_trailing_axes(chosen >= 0, taken.ndim - 3), taken, poison(taken.dtype))

    return step_of(op, scope, compute)


def interleave(one: Array, other: Array) -> Array:
    """Returns two vectors interleaved along the last dimension: one[0], other[0], one[1], other[1]."""
    both = np.stack(np.broadcast_arrays(one, other), -1)
    return both.reshape(*both.shape[:-2], -1)


def deinterleave(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.deinterleave``: two vectors, of the elements at even and at odd indices.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    (source,), targets = scope.slots(op.operands), scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        for number, target in enumerate(targets):
            frame.values[target] = frame.values[source][..., number::2]

    return step


def create_mask(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.create_mask``: true where an index is below its dimension's operand.

    In several dimensions, all must hold. A step is a function that executes ``op`` in all active lanes (GPU
    threads) of a frame; ``scope`` maps SSA values to frame slots.
    """
    shape = shape_of(op.results[0].type)
    return step_of(op, scope, lambda *sizes: mask_of(shape, sizes))


def constant_mask(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.constant_mask``: true where an index is below its dimension's bound.

    In several dimensions, all must hold. A step is a function that executes ``op`` in all active lanes (GPU
    threads) of a frame; ``scope`` maps SSA values to frame slots.
    """
    sizes = [uniform(size) for size in ir.DenseI64ArrayAttr(op.attributes["mask_dim_sizes"])]
    return _constant(op, scope, mask_of(shape_of(op.results[0].type), sizes))


def mask_of(shape: tuple[int, ...], sizes: Sequence[Array]) -> Array:
    """Returns a mask of vectors, True where an element's index is below ``sizes`` in every dimension.

    ``sizes`` has an array per dimension of ``shape``, of one size per lane. The mask has the shape (blocks,
    threads, *shape).
    """
    mask = np.ones((1, 1, *shape), bool)
    for axis, size in enumerate(sizes):
        numbers = np.arange(shape[axis]).reshape(-1, *[1] * (len(shape) - 1 - axis))
        mask = mask & (numbers < with_trailing_axes(size, len(shape)))
    return mask


def count(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.step``: the vector 0, 1, 2, ... of index type.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    return _constant(op, scope, np.arange(op.results[0].type.shape[0], dtype=INDEX)[None, None])


def _constant(op: Op, scope: FunctionScope, value: Array) -> Step:
    (target,) = scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        frame.values[target] = value

    return step


def type_cast(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.type_cast``: a memref of numbers as a rank-0 memref of one vector.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """

    def compute(view: BufferView) -> BufferView:
        return view.shifted(view.address, (), ())

    return step_of(op, scope, compute)


DECODERS: dict[str, Decode] = {
    **dict.fromkeys(("vector.broadcast", "vector.splat"), broadcast),
    "vector.extract": extract,
    "vector.insert": insert,
    "vector.extract_strided_slice": extract_slice,
    "vector.insert_strided_slice": insert_slice,
    "vector.shape_cast": reshape,
    "vector.bitcast": bitcast,
    "vector.transpose": transpose,
    "vector.from_elements": from_elements,
    "vector.to_elements": to_elements,
    "vector.shuffle": shuffle,
    "vector.interleave": elementwise(interleave),
    "vector.deinterleave": deinterleave,
    "vector.create_mask": create_mask,
    "vector.constant_mask": constant_mask,
    "vector.step": count,
    "vector.type_cast": type_cast,
}
