"""Steps of the dialect linalg: the region of a structured operation runs for many elements at once.

Iterations of loops that index each output run together, as lanes: they write different elements. All other
loops run in order. Pack, unpack and softmax of tensors have steps of their own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuner.gpu.interpreter import memory as flat_memory
from tuner.gpu.interpreter.affine_ops import Compute, results_of
from tuner.gpu.interpreter.arithmetic import step_of
from tuner.gpu.interpreter.decoding import (
    AbstractBody,
    Decode,
    FunctionScope,
    LaneFrame,
    Step,
    fault,
    where_of,
)
from tuner.gpu.interpreter.lanes import INDEX, Array, BufferView, ElementType
from tuner.gpu.interpreter.memory_ops import MixedNumbers
from tuner.gpu.interpreter.tensors import elements_at, made, require_one_thread, whole_number, wholes
from tuner.mlir.bindings import Op, Value, indexing_maps_of, ir
from tuner.mlir.ir.reading import unsupported, walk

INDEX_OP = "linalg.index"


@dataclass(frozen=True)
class _Operand:
    """An operand of a structured operation: its slot, elements, and the map from loops to its indices."""

    slot: int
    element: ElementType
    is_held: bool  # in a tensor or memref; False: a number
    indices: tuple[Compute, ...]
    axes: tuple[int | None, ...]  # per dimension, the loop that alone is its index

    def sizes(self, value: Any) -> tuple[int, ...]:
        if not self.is_held:
            return ()
        return wholes(value.sizes) if isinstance(value, BufferView) else value.shape[2:]

    def load(self, frame: LaneFrame, where: str, value: Any, loops: Sequence[Array]) -> Array:
        """Returns the operand's elements in the lanes of ``frame``, (1, lanes)."""
        if not self.is_held:
            return np.asarray(value)
        at = [compute(loops) for compute in self.indices]
        if isinstance(value, BufferView):
            return flat_memory.load_element(frame, where, value, self.element, at)
        positions = elements_at(frame, where, value[0, 0], at)
        return np.asarray(value[0, 0][positions] if positions else np.reshape(value, (1, 1)))

    def store(self, frame: LaneFrame, where: str, value: Any, loops: Sequence[Array], new: Array) -> None:
        """Stores elements to a memref, or to the array of a tensor, in place."""
        at = [compute(loops) for compute in self.indices]
        if isinstance(value, BufferView):
            flat_memory.store_element(frame, where, value, self.element, at, new)
        else:
            array = value[0, 0, ...]  # an array also of a tensor without dimensions
            array[elements_at(frame, where, array, at)] = new if at else whole_number(new)


@dataclass(frozen=True, eq=False)
class _Structured:
    """A decoded structured operation: its operands, loops and region."""

    operands: tuple[_Operand, ...]
    outputs: int  # number of the last operands that are written
    loops: int
    body: AbstractBody
    index_slots: tuple[tuple[int, int], ...]  # slot and loop of each linalg.index in the region
    targets: tuple[int, ...]
    where: str

    def __call__(self, frame: LaneFrame) -> None:
        require_one_thread(frame, self.where)
        values = frame.take([operand.slot for operand in self.operands])
        first = len(values) - self.outputs
        for number in range(first, len(values)):
            if not isinstance(values[number], BufferView):
                values[number] = values[number].copy()
        extents = self._extents(values)
        at_once = self._loops_at_once()
        in_order = [loop for loop in range(self.loops) if loop not in at_once]
        count = math.prod(extents[loop] for loop in at_once)
        if count:
            shape = [extents[loop] for loop in at_once]
            places = [index.reshape(1, -1) for index in np.indices(shape, INDEX)]
            inner = frame.over(count)
            for place in np.ndindex(*(extents[loop] for loop in in_order)):
                loops = dict(zip(at_once, places, strict=True))
                loops |= {loop: np.full((1, 1), at, INDEX) for loop, at in zip(in_order, place, strict=True)}
                self._iterate(inner, values, [loops[loop] for loop in range(self.loops)])
        frame.put(self.targets, values[first:] if self.targets else ())

    def _iterate(self, frame: LaneFrame, values: list[Any], loops: list[Array]) -> None:
        for slot, loop in self.index_slots:
            frame.values[slot] = loops[loop]
        frame.spend(len(values))
        pairs = list(zip(self.operands, values, strict=True))
        elements = [operand.load(frame, self.where, value, loops) for operand, value in pairs]
        results = self.body.run(frame, elements)
        for (operand, value), new in zip(pairs[-self.outputs :], results, strict=True):
            operand.store(frame, self.where, value, loops, new)

    def _extents(self, values: list[Any]) -> list[int]:
        extents: list[int | None] = [None] * self.loops
        for operand, value in zip(self.operands, values, strict=True):
            for loop, size in zip(operand.axes, operand.sizes(value), strict=False):
                if loop is None:
                    continue
                if extents[loop] not in (None, size):
                    fault(self.where, f"found sizes {extents[loop]} and {size} of loop {loop}")
                extents[loop] = size
        known = [extent for extent in extents if extent is not None]
        if len(known) != self.loops:
            fault(self.where, "found a loop that no operand's size ends")
        return known

    def _loops_at_once(self) -> list[int]:
        """Returns the loops that each written operand has as an index: their iterations share no element."""
        written = [set(operand.axes) for operand in self.operands[-self.outputs :]]
        return [loop for loop in range(self.loops) if all(loop in axes for axes in written)]


def structured(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for a linalg operation with indexing maps and a region, generic or named.

    Raises CandidateError(COMPILE) for an operation without them.
    """
    maps = indexing_maps_of(op)
    if maps is None or not op.regions or not op.regions[0].blocks:
        raise scope.unknown(op)
    values = list(op.operands)
    outputs = _output_count(op)
    operands = tuple(_operand(op, scope, value, mapping) for value, mapping in zip(values, maps, strict=True))
    return _Structured(
        operands,
        outputs,
        maps[0].n_dims,
        scope.body(op.regions[0]),
        tuple(
            (scope.slot(index_op.results[0]), ir.IntegerAttr(index_op.attributes["dim"]).value)
            for index_op in walk(op, INDEX_OP)
        ),
        scope.slots(op.results),
        where_of(op),
    )


def _output_count(op: Op) -> int:
    if "operandSegmentSizes" in op.attributes:
        return int(list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[-1])
    if op.name == "linalg.reduce":
        return len(op.operands) // 2
    return 1


def _operand(op: Op, scope: FunctionScope, value: Value, mapping: ir.AffineMap) -> _Operand:
    is_held = isinstance(value.type, ir.MemRefType | ir.RankedTensorType)
    if is_held and isinstance(value.type.element_type, ir.VectorType):
        raise unsupported(op, f"elements {value.type.element_type}", "numbers")
    axes = [result.position if isinstance(result, ir.AffineDimExpr) else None for result in mapping.results]
    element = scope.element(op, value.type)
    return _Operand(scope.slot(value), element, is_held, tuple(results_of(mapping)), tuple(axes))


# Operations without indexing maps.


@dataclass(frozen=True)
class _Tiling:
    """How linalg.pack divides into tiles: the tiled dimensions, and the order of the outer ones."""

    inner: tuple[int, ...]
    order: tuple[int, ...]  # of the outer dimensions; () as they are

    @classmethod
    def of(cls, op: Op) -> "_Tiling":
        order = op.attributes.get("outer_dims_perm")
        return cls(
            tuple(ir.DenseI64ArrayAttr(op.attributes["inner_dims_pos"])),
            () if order is None else tuple(ir.DenseI64ArrayAttr(order)),
        )

    def unpacked(self, packed: Array) -> Array:
        """Returns a packed array (*outer, *tile) as an array of the original dimensions, padding included."""
        rank = packed.ndim - len(self.inner)
        if self.order:
            outer = list(map(self.order.index, range(rank)))
            packed = packed.transpose(*outer, *range(rank, packed.ndim))
        axes: list[int] = []
        for axis in range(rank):
            axes.append(axis)
            axes += [rank + index for index, inner in enumerate(self.inner) if inner == axis]
        shape = list(packed.shape[:rank])
        for index, axis in enumerate(self.inner):
            shape[axis] *= packed.shape[rank + index]
        return packed.transpose(axes).reshape(shape)

    def packed(self, values: Array, tiles: Sequence[int]) -> Array:
        """Returns an array, whose sizes are multiples of ``tiles``, as (*outer, *tile)."""
        split: list[int] = []
        outer = []
        of_tile = [0] * len(self.inner)
        for axis, size in enumerate(values.shape):
            outer.append(len(split))
            if axis not in self.inner:
                split.append(size)
                continue
            number = self.inner.index(axis)
            of_tile[number] = len(split) + 1
            split += [size // tiles[number], tiles[number]]
        if self.order:
            outer = [outer[axis] for axis in self.order]
        return values.reshape(split).transpose(*outer, *of_tile)


def pack(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``linalg.pack`` of tensors: tiles of a tensor, the last ones padded."""
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    source, into, *rest = scope.slots(op.operands)
    tiling = _Tiling.of(op)
    target = scope.slot(op.results[0])
    where = where_of(op)
    tiles_of = MixedNumbers(op, scope, "static_inner_tiles", list(op.operands)[2 + sizes[2] :])
    padding = rest[0] if sizes[2] else None

    def step(frame: LaneFrame) -> None:
        values = frame.values[source][0, 0]
        wanted = frame.values[into].shape[2:]
        tiles = wholes(tiles_of(frame))
        rank = len(values.shape)
        outer = list(wanted[:rank])
        if tiling.order:
            outer = [outer[tiling.order.index(axis)] for axis in range(rank)]
        for index, axis in enumerate(tiling.inner):
            outer[axis] *= tiles[index]
        padded = made(frame, outer, values.dtype)
        if padding is not None:
            padded[...] = whole_number(frame.values[padding])
        elif tuple(outer) != values.shape:
            fault(where, f"found sizes {list(values.shape)} without padding, allowed multiples of the tiles")
        padded[0, 0][tuple(slice(0, size) for size in values.shape)] = values
        frame.values[target] = tiling.packed(padded[0, 0], tiles)[None, None]

    return step


def unpack(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``linalg.unpack`` of tensors: the elements of tiles, without padding."""
    tiling = _Tiling.of(op)

    def compute(packed: Array, into: Array, *_: Array) -> Array:
        whole = tiling.unpacked(packed[0, 0])
        return whole[tuple(slice(0, size) for size in into.shape[2:])][None, None]

    return step_of(op, scope, compute)


def softmax(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``linalg.softmax`` of tensors, with each operation rounded to the type."""
    axis = 2 + ir.IntegerAttr(op.attributes["dimension"]).value

    def compute(values: Array, into: Array) -> Array:
        dtype = values.dtype
        powers = np.exp((values - values.max(axis, keepdims=True)).astype(np.float64)).astype(dtype)
        total = powers.astype(np.float64).sum(axis, keepdims=True).astype(dtype)
        return np.asarray(powers / total).astype(into.dtype)

    return step_of(op, scope, compute)


def on_tensors(decode: Decode) -> Decode:
    """Returns ``decode`` restricted to tensors: it raises CandidateError(COMPILE) for memrefs."""

    def decode_tensors(op: Op, scope: FunctionScope) -> Step:
        if not op.results:
            raise scope.unknown(op)
        return decode(op, scope)

    return decode_tensors


UNSTRUCTURED: dict[str, Decode] = {
    "linalg.pack": on_tensors(pack),
    "linalg.unpack": on_tensors(unpack),
    "linalg.softmax": on_tensors(softmax),
}
