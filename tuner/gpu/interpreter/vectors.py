"""Steps of MLIR's vector dialect without loads and stores: shapes, elements and slices of vectors.

A step runs an operation in all active lanes of a frame (``tuner.gpu.interpreter.decoding``). Vectors
are arrays of shape (blocks, threads, *vector).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tuner.gpu.interpreter.arithmetic import elementwise, step_of
from tuner.gpu.interpreter.decoding import Decode, FunctionScope, LaneFrame, Step
from tuner.gpu.interpreter.lanes import INDEX, Array, uniform, with_trailing_axes
from tuner.gpu.interpreter.memory_ops import MixedNumbers
from tuner.gpu.interpreter.subgroup_ops import poison
from tuner.mlir.bindings import Op, ir


def shape_of(type_: Any) -> tuple[int, ...]:
    """Returns the shape of an MLIR vector type; () for a number type."""
    if isinstance(type_, ir.VectorType):
        return tuple(type_.shape)
    return ()


def spread(values: Array, shape: tuple[int, ...]) -> Array:
    """Returns ``values``, of shape (blocks, threads, *vector), broadcast to vectors of ``shape``."""
    missing = len(shape) - (values.ndim - 2)
    shaped = values.reshape(*values.shape[:2], *[1] * missing, *values.shape[2:])
    return np.broadcast_to(shaped, (*values.shape[:2], *shape))


def broadcast(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.broadcast``: repeats a number or vector along added or unit axes."""
    shape = shape_of(op.results[0].type)
    return step_of(op, scope, lambda values: spread(values, shape))


def extract(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.extract``: an element or subvector; an index outside is clamped."""
    source = scope.slot(op.operands[0])
    target = scope.slot(op.results[0])
    indices = MixedNumbers(op, scope, "static_position", list(op.operands)[1:])

    def step(frame: LaneFrame) -> None:
        values = frame.values[source]
        for index in indices(frame):
            # index: [block, lane]; one number for all lanes is a plain index
            inside = np.clip(index, 0, values.shape[2] - 1)
            if index.size == 1:
                values = values[:, :, int(inside[0, 0])]
            else:
                shape = np.broadcast_shapes(index.shape, values.shape[:2])
                whole = np.broadcast_to(values, (*shape, *values.shape[2:]))
                where = with_trailing_axes(np.broadcast_to(inside, shape), values.ndim - 2)
                values = np.take_along_axis(whole, where, 2)[:, :, 0]
        frame.values[target] = values

    return step


def insert(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.insert``: an index outside the vector replaces nothing."""
    value, whole = scope.slots(list(op.operands)[:2])
    target = scope.slot(op.results[0])
    indices = MixedNumbers(op, scope, "static_position", list(op.operands)[2:])

    def step(frame: LaneFrame) -> None:
        new = frame.values[value]
        old = frame.values[whole]
        at = indices(frame)
        axes = old.ndim - 2
        chosen = np.ones((1, 1, *[1] * axes), bool)
        for axis, index in enumerate(at):
            numbers = with_trailing_axes(np.arange(old.shape[2 + axis]), axes - 1 - axis)
            chosen = chosen & (with_trailing_axes(index, axes) == numbers)
        new = new.reshape(*new.shape[:2], *[1] * len(at), *new.shape[2:])
        frame.values[target] = np.where(chosen, new, old)

    return step


def integers_of(op: Op, name: str) -> list[int]:
    """Returns the array attribute ``name`` of ``op`` as a list of integers."""
    return [ir.IntegerAttr(number).value for number in ir.ArrayAttr(op.attributes[name])]


def slices_of(offsets: list[int], sizes: list[int], strides: list[int]) -> tuple[slice, ...]:
    """Returns a Python slice per dimension, from its offset, size and stride."""
    numbers = zip(offsets, sizes, strides, strict=True)
    return tuple(slice(first, first + (size - 1) * step + 1, step) for first, size, step in numbers)


def extract_slice(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.extract_strided_slice``: a slice by offsets, sizes and strides."""
    offsets, sizes, strides = (integers_of(op, name) for name in ("offsets", "sizes", "strides"))
    slices = slices_of(offsets, sizes, strides)
    return step_of(op, scope, lambda values: values[:, :, *slices])


def insert_slice(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.insert_strided_slice``: replaces a slice along the last dimensions."""
    offsets = integers_of(op, "offsets")
    strides = integers_of(op, "strides")
    sizes = shape_of(op.operands[0].type)
    outer = len(offsets) - len(sizes)
    slices = slices_of(offsets, [1] * outer + list(sizes), [1] * outer + strides)

    def compute(new: Array, old: Array) -> Array:
        lanes = np.broadcast_shapes(new.shape[:2], old.shape[:2])
        result = np.broadcast_to(old, (*lanes, *old.shape[2:])).copy()
        result[:, :, *slices] = new.reshape(*new.shape[:2], *[1] * outer, *new.shape[2:])
        return result

    return step_of(op, scope, compute)


def reshape(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.shape_cast``: the same elements in row-major order with another shape."""
    shape = shape_of(op.results[0].type)
    return step_of(op, scope, lambda values: values.reshape(*values.shape[:2], *shape))


def bitcast(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.bitcast``: the same bits; the last dimension gets another size."""
    dtype = scope.element(op, op.results[0].type).dtype
    return step_of(op, scope, lambda values: np.ascontiguousarray(values).view(dtype))


def transpose(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.transpose``: permutes the dimensions of a vector."""
    order = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
    return step_of(op, scope, lambda values: values.transpose(0, 1, *(2 + axis for axis in order)))


def from_elements(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.from_elements``: a vector of the operands, in row-major order."""
    shape = shape_of(op.results[0].type)

    def compute(*values: Array) -> Array:
        listed = np.stack(np.broadcast_arrays(*values), -1)
        return listed.reshape(*listed.shape[:2], *shape)

    return step_of(op, scope, compute)


def to_elements(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.to_elements``: one result per element of a vector, in row-major order."""
    (source,), targets = scope.slots(op.operands), scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        values = frame.values[source]
        flat = values.reshape(*values.shape[:2], -1)
        for index, target in enumerate(targets):
            frame.values[target] = flat[:, :, index]

    return step


def shuffle(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.shuffle``: selects elements of two joined vectors; -1 selects poison."""
    chosen = np.array(list(ir.DenseI64ArrayAttr(op.attributes["mask"])))

    def compute(left: Array, right: Array) -> Array:
        lanes = np.broadcast_shapes(left.shape[:2], right.shape[:2])
        both = [np.broadcast_to(vector, (*lanes, *vector.shape[2:])) for vector in (left, right)]
        taken = np.concatenate(both, 2)[:, :, np.maximum(chosen, 0)]
        return np.where(with_trailing_axes(chosen >= 0, taken.ndim - 3), taken, poison(taken.dtype))

    return step_of(op, scope, compute)


def interleave(left: Array, right: Array) -> Array:
    """Returns two vectors interleaved along the last dimension: left[0], right[0], left[1], ..."""
    both = np.stack(np.broadcast_arrays(left, right), -1)
    return both.reshape(*both.shape[:-2], -1)


def deinterleave(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.deinterleave``: two vectors, of the even and of the odd elements."""
    (source,), targets = scope.slots(op.operands), scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        for index, target in enumerate(targets):
            frame.values[target] = frame.values[source][..., index::2]

    return step


def create_mask(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.create_mask``: true where all indices are below the operands."""
    shape = shape_of(op.results[0].type)
    return step_of(op, scope, lambda *sizes: mask_of(shape, sizes))


def constant_mask(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.constant_mask``: true where all indices are below their bounds."""
    sizes = list(map(uniform, ir.DenseI64ArrayAttr(op.attributes["mask_dim_sizes"])))
    mask = mask_of(shape_of(op.results[0].type), sizes)
    return step_of(op, scope, lambda: mask)


def mask_of(shape: tuple[int, ...], sizes: Sequence[Array]) -> Array:
    """Returns a mask (blocks, threads, *shape), True where all indices are below each lane's ``sizes``."""
    mask = np.ones((1, 1, *shape), bool)
    for axis, size in enumerate(sizes):
        numbers = with_trailing_axes(np.arange(shape[axis]), len(shape) - 1 - axis)
        mask = mask & (numbers < with_trailing_axes(size, len(shape)))
    return mask


def count(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.step``: the vector 0, 1, 2, ... of index type."""
    numbers = np.arange(op.results[0].type.shape[0], dtype=INDEX)[None, None]
    return step_of(op, scope, lambda: numbers)


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
    "vector.type_cast": elementwise(lambda view: view.shifted(view.address, (), ())),
    # ``vector.type_cast``: to a memref of rank 0, at the same address, whose one element is the vector
}
