"""Steps that load and store vectors: contiguous, permuted, masked, gathered and scattered.

A step runs an operation in all active lanes of a frame (``tuner.gpu.interpreter.decoding``).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tuner.gpu.interpreter import memory as flat_memory
from tuner.gpu.interpreter import memory_ops
from tuner.gpu.interpreter.decoding import Decode, FunctionScope, LaneFrame, Step, require, where_of
from tuner.gpu.interpreter.lanes import Array, BufferView, ElementType, with_trailing_axes
from tuner.gpu.interpreter.tensors import array_of, view_of
from tuner.gpu.interpreter.vectors import shape_of
from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.reading import unsupported

Axes = Sequence[int | None]  # of a vector: along which dimension of the memref each goes; None: along none


def load(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.load``: loads consecutive numbers along the memref's last dimensions."""
    element = scope.element(op, op.operands[0].type)
    if element.shape:  # a memref of vectors
        return memory_ops.load(op, scope)
    source, *indices = scope.slots(op.operands)
    target = scope.slot(op.results[0])
    where = where_of(op)
    shape = shape_of(op.results[0].type)

    def step(frame: LaneFrame) -> None:
        view = frame.values[source]
        places = along(frame.take(indices), last(len(indices), shape), shape)
        frame.values[target] = load_at(frame, where, view, element, places, everywhere(shape))

    return step


def store(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.store``: stores numbers along the memref's last dimensions."""
    element = scope.element(op, op.operands[1].type)
    if element.shape:
        return memory_ops.store(op, scope)
    value, to, *indices = scope.slots(op.operands)
    where = where_of(op)
    shape = shape_of(op.operands[0].type)

    def step(frame: LaneFrame) -> None:
        places = along(frame.take(indices), last(len(indices), shape), shape)
        store_at(frame, where, frame.values[to], element, places, everywhere(shape), frame.values[value])

    return step


def transfer_read(op: Op, scope: FunctionScope, masks: Sequence[int] = ()) -> Step:
    """Returns the step for ``vector.transfer_read``.

    Elements outside of the memref, and masked elements, get the padding value. ``masks``: the slot of the
    mask of a ``vector.mask`` around the operation, if there is one.
    """
    transfer = _Transfer(op, scope, op.operands[0], shape_of(op.results[0].type))
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    source, *rest = scope.slots(op.operands)
    indices = rest[: sizes[1]]
    (padding, *mask) = rest[sizes[1] :]
    mask = [*mask, *masks]
    (target,) = scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        view = view_of(frame.values[source])
        places, wanted = transfer.places(frame, view, indices, mask)
        elements = load_at(frame, transfer.where, view, transfer.element, places, wanted)
        filler = with_trailing_axes(frame.values[padding], len(transfer.shape))
        frame.values[target] = np.where(wanted, elements, filler)

    return step


def transfer_write(op: Op, scope: FunctionScope, masks: Sequence[int] = ()) -> Step:
    """Returns the step for ``vector.transfer_write``.

    Elements outside of the memref, and masked elements, are not stored. The result of a write to a tensor is
    a changed copy. ``masks``: the slot of the mask of a ``vector.mask`` around the operation, if there is
    one.
    """
    transfer = _Transfer(op, scope, op.operands[1], shape_of(op.operands[0].type))
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    value, to, *rest = scope.slots(op.operands)
    indices = rest[: sizes[2]]
    mask = [*rest[sizes[2] :], *masks]
    targets = scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        view = view_of(frame.values[to])
        places, wanted = transfer.places(frame, view, indices, mask)
        store_at(frame, transfer.where, view, transfer.element, places, wanted, frame.values[value])
        for target in targets:
            frame.values[target] = array_of(view, transfer.element)

    return step


class _Transfer:
    """The mapping between a vector and a memref in a transfer operation."""

    def __init__(self, op: Op, scope: FunctionScope, buffer: Any, shape: tuple[int, ...]) -> None:
        self.element = scope.element(op, buffer.type)
        self.where = where_of(op)
        self.shape = shape
        if self.element.shape:
            raise unsupported(op, f"elements {buffer.type.element_type}", "numbers")
        results = ir.AffineMapAttr(op.attributes["permutation_map"]).value.results
        self._axes = [result.position if isinstance(result, ir.AffineDimExpr) else None for result in results]
        self._in_bounds = [ir.BoolAttr(flag).value for flag in ir.ArrayAttr(op.attributes["in_bounds"])]

    def places(
        self, frame: LaneFrame, view: BufferView, indices: Sequence[int], mask: Sequence[int]
    ) -> tuple[list[Array], Array]:
        """Returns the index of each vector element per memref dimension, and which elements are accessed."""
        places = along(frame.take(indices), self._axes, self.shape)
        wanted = everywhere(self.shape)
        if mask:
            wanted = wanted & self._aligned(frame.values[mask[0]])
        for axis, in_bounds in zip(self._axes, self._in_bounds, strict=True):
            if axis is None:
                continue
            size = with_trailing_axes(view.sizes[axis], len(self.shape))
            inside = (places[axis] >= 0) & (places[axis] < size)
            if in_bounds:
                message = f"found an index outside of dimension {axis}, said to be in bounds,"
                require(inside | ~wanted, frame, self.where, message)
            wanted = wanted & inside
        return places, wanted

    def _aligned(self, mask: Array) -> Array:
        # the mask has the memref's axes in order, the result those of the vector
        axes = [axis for axis in self._axes if axis is not None]
        transposed = mask.transpose(0, 1, *(2 + sorted(axes).index(axis) for axis in axes))
        added = [2 + index for index, axis in enumerate(self._axes) if axis is None]
        return np.expand_dims(transposed, added)


def masked_load(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.maskedload`` or ``gather``; the last operand where the mask is false."""
    element = scope.element(op, op.operands[0].type)
    source, *indices, mask, passed = scope.slots(op.operands)
    places_of = _places_of(op, indices, shape_of(op.results[0].type))
    target = scope.slot(op.results[0])
    where = where_of(op)

    def step(frame: LaneFrame) -> None:
        wanted = frame.values[mask]
        elements = load_at(frame, where, frame.values[source], element, places_of(frame), wanted)
        frame.values[target] = np.where(wanted, elements, frame.values[passed])

    return step


def masked_store(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.maskedstore`` or ``vector.scatter``: stores where the mask is true."""
    element = scope.element(op, op.operands[0].type)
    to, *indices, mask, value = scope.slots(op.operands)
    places_of = _places_of(op, indices, shape_of(op.operands[-1].type))
    where = where_of(op)

    def step(frame: LaneFrame) -> None:
        wanted = frame.values[mask]
        values = frame.values[value]
        store_at(frame, where, frame.values[to], element, places_of(frame), wanted, values)

    return step


def _places_of(op: Op, slots: Sequence[int], shape: tuple[int, ...]) -> Callable[[LaneFrame], list[Array]]:
    if op.name not in ("vector.gather", "vector.scatter"):
        axes = last(len(slots), shape)
        return lambda frame: along(frame.take(slots), axes, shape)

    def gathered(frame: LaneFrame) -> list[Array]:
        chosen = frame.values[slots[-1]]  # an index vector, which is added to the last index
        places = [with_trailing_axes(index, chosen.ndim - 2) for index in frame.take(slots[:-1])]
        places[-1] = places[-1] + chosen.astype(np.int64)
        return places

    return gathered


def along(indices: Sequence[Array], axes: Axes, shape: tuple[int, ...]) -> list[Array]:
    """Returns, per memref dimension, the indices of the elements of a vector that begins at ``indices``.

    ``shape``: the vector's shape. ``axes``: for each dimension of the vector the memref dimension along which
    it lies, or None. The arrays broadcast to (blocks, threads, *shape).
    """
    places = [with_trailing_axes(index, len(shape)) for index in indices]
    for axis_index, axis in enumerate(axes):
        if axis is not None:
            places[axis] = places[axis] + with_trailing_axes(
                np.arange(shape[axis_index]), len(shape) - 1 - axis_index
            )
    return places


def last(rank: int, shape: tuple[int, ...]) -> list[int]:
    """Returns the last ``len(shape)`` dimensions of a memref, along which a contiguous vector extends."""
    return list(range(rank - len(shape), rank))


def everywhere(shape: tuple[int, ...]) -> Array:
    """Returns a mask of shape (1, 1, *shape), True everywhere, for vectors of ``shape`` in all lanes."""
    return np.ones((1, 1, *shape), bool)


def load_at(
    frame: LaneFrame, where: str, view: BufferView, element: ElementType, places: list[Array], wanted: Array
) -> Array:
    """Returns the elements at ``places``, an index per memref dimension, where ``wanted`` is True, else 0.

    Raises CandidateError(RUN) for a wanted element outside of the buffer.
    """
    addresses = _addresses(view, element, places, wanted)
    wanted = np.broadcast_to(wanted, addresses.shape)
    return flat_memory.load_where(frame, where, view, element, addresses, wanted)


def store_at(
    frame: LaneFrame,
    where: str,
    view: BufferView,
    element: ElementType,
    places: list[Array],
    wanted: Array,
    values: Array,
) -> None:
    """Stores ``values`` at ``places``, an index per memref dimension, where ``wanted`` is True.

    Raises CandidateError(RUN) for a wanted element outside of the buffer.
    """
    addresses = _addresses(view, element, places, wanted)
    flat_memory.store_where(frame, where, view, element, addresses, wanted, values)


def _addresses(view: BufferView, element: ElementType, places: list[Array], wanted: Array) -> Array:
    addresses = view.at(places, element.size_bytes)
    return np.broadcast_to(addresses, np.broadcast_shapes(addresses.shape, wanted.shape))


DECODERS: dict[str, Decode] = {
    "vector.load": load,
    "vector.store": store,
    "vector.transfer_read": transfer_read,
    "vector.transfer_write": transfer_write,
    **dict.fromkeys(("vector.maskedload", "vector.gather"), masked_load),
    **dict.fromkeys(("vector.maskedstore", "vector.scatter"), masked_store),
}
