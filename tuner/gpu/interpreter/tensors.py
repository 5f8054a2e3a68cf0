"""Steps of tensor, bufferization and scf.forall; a tensor is an array (1, 1, *shape) that never changes.

A function named like an operation decodes it: it takes the operation and returns the step that the
interpreter runs. The two leading dimensions are those of blocks and threads: host code has one of each.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tuner.core.errors import CandidateError, Stage
from tuner.core.numpy_types import DType
from tuner.gpu.interpreter import memory as flat_memory
from tuner.gpu.interpreter import memory_ops
from tuner.gpu.interpreter.arithmetic import elementwise, step_of
from tuner.gpu.interpreter.conversions import reinterpreted
from tuner.gpu.interpreter.decoding import Decode, FunctionScope, LaneFrame, Step, fault, where_of
from tuner.gpu.interpreter.lanes import INDEX, Array, BufferView, ElementType, uniform
from tuner.gpu.interpreter.memory_ops import MixedNumbers
from tuner.gpu.interpreter.subgroup_ops import poison
from tuner.mlir.bindings import Op, Type, ir
from tuner.mlir.ir.reading import groups_of, ops_in, unsupported

# Elements of one tensor: a program that creates a larger one is not interpreted.
ELEMENTS_LIMIT = 1 << 22


def require_one_thread(frame: LaneFrame, where: str) -> None:
    """Raises CandidateError(COMPILE) if ``frame`` runs a region for many elements at once.

    Operations that need one thread call it; ``where`` names the operation.
    """
    if frame.grid.shape != (1, 1):
        raise CandidateError(Stage.COMPILE, f"{where}: found in a region of many elements, allowed outside")


def whole(value: Array) -> int:
    """Returns an index as a Python integer; it must be the same for all lanes."""
    return int(value.ravel()[0])


def wholes(values: Sequence[Array]) -> tuple[int, ...]:
    """Returns indices as Python integers; each must be the same for all lanes."""
    return tuple(map(whole, values))


def made(frame: LaneFrame, shape: Sequence[int], dtype: DType) -> Array:
    """Returns a new tensor, an array (1, 1, *shape) of poison; counts one operation on as many elements.

    Raises TooMuchWorkError beyond the program's limit, or for more than ELEMENTS_LIMIT elements; without a
    limit of the program, never.
    """
    count = math.prod(shape)
    if frame.memory.limit is not None:
        frame.memory.limit.spend(1, count if count <= ELEMENTS_LIMIT else 1 << 62)
    return np.full((1, 1, *shape), poison(dtype)[0])


def view_of(value: Any) -> BufferView:
    """Returns ``value`` if it is a memref; if it is a tensor, a memref on a contiguous copy of it."""
    if isinstance(value, BufferView):
        return value
    contents = np.ascontiguousarray(value[0, 0])
    address, memory = flat_memory.allocate(contents.nbytes)
    memory[address - memory.ctypes.data :][: contents.nbytes] = contents.reshape(-1).view(np.uint8)
    sizes = list(map(uniform, contents.shape))
    return BufferView.of_rows(uniform(address), contents.nbytes, sizes, memory)


def array_of(view: BufferView, element: ElementType) -> Array:
    """Returns the elements of a memref, which is the same for all lanes, as an array (1, 1, *sizes)."""
    sizes = wholes(view.sizes)
    indices = [index[None, None] for index in np.indices(sizes, INDEX)]
    return np.asarray(
        flat_memory.read(element.dtype, view.at(indices, element.size_bytes).reshape(1, 1, *sizes))
    )


def shape_of(static: Type, dynamic: Sequence[Array]) -> tuple[int, ...]:
    """Returns the shape of a tensor type with ``dynamic`` in place of its dynamic sizes."""
    return wholes(memory_ops.sizes_of(static.shape, list(dynamic)))


def empty(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``tensor.empty`` or ``bufferization.alloc_tensor``: a new tensor.

    It is filled with poison, or with the elements of the tensor that ``alloc_tensor`` copies.
    """
    type_ = op.results[0].type
    dtype = scope.element(op, type_).dtype
    slots = scope.slots(op.operands)
    target = scope.slot(op.results[0])
    is_copy = len(slots) > sum(map(type_.is_dynamic_dim, range(type_.rank)))

    def step(frame: LaneFrame) -> None:
        values = frame.take(slots)
        frame.values[target] = values[0] if is_copy else made(frame, shape_of(type_, values), dtype)

    return step


def extract(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``tensor.extract``: an element per lane; an index outside is a fault."""
    source, *indices = scope.slots(op.operands)
    target = scope.slot(op.results[0])
    where = where_of(op)

    def step(frame: LaneFrame) -> None:
        values = frame.values[source][0, 0]
        at = elements_at(frame, where, values, frame.take(indices))
        frame.values[target] = values[at] if at else np.reshape(values, (1, 1))

    return step


def elements_at(frame: LaneFrame, where: str, values: Array, indices: Sequence[Array]) -> tuple[Array, ...]:
    """Returns the indices of a tensor's elements, broadcast to one shape, for indexing ``values``.

    Raises CandidateError(RUN) if an active lane's index is outside of the tensor. In other lanes such an
    index is replaced by 0.
    """
    inside = []
    for axis, index in enumerate(indices):
        size = values.shape[axis]
        is_outside = (index < 0) | (index >= size)
        if is_outside.any():
            bad = np.broadcast_to(is_outside, frame.grid.shape) & frame.active(frame.grid.shape)
            if bad.any():
                wrong = np.broadcast_to(index, frame.grid.shape)[bad][0]
                fault(where, f"found index {wrong} of dimension {axis}, allowed 0 to {size - 1}")
            index = np.where(is_outside, 0, index)
        inside.append(index)
    if inside:
        return tuple(np.broadcast_arrays(*inside))
    return ()


def insert(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``tensor.insert``: a copy of a tensor with another element."""
    value, source, *indices = scope.slots(op.operands)
    target = scope.slot(op.results[0])
    where = where_of(op)

    def step(frame: LaneFrame) -> None:
        require_one_thread(frame, where)
        changed = frame.values[source].copy()
        at = elements_at(frame, where, changed[0, 0], frame.take(indices))
        changed[0, 0, ...][tuple(map(whole, at))] = whole_number(frame.values[value])
        frame.values[target] = changed

    return step


def write_rows(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``tensor.scatter`` of rows: of equal positions, the last row stays."""
    rows, source, positions = scope.slots(op.operands)
    target = scope.slot(op.results[0])
    where = where_of(op)
    if list(op.attributes["scatter_dims"]) != [0]:
        raise unsupported(op, str(op), "scatter_dims([0])")

    def step(frame: LaneFrame) -> None:
        changed = frame.values[source].copy()
        values = changed[0, 0]
        numbers = frame.values[positions].reshape(-1)
        wrong = numbers[(numbers < 0) | (numbers >= len(values))]
        if wrong.size:
            fault(where, f"found position {wrong[0]}, allowed 0 to {len(values) - 1}")
        shaped = frame.values[rows].reshape(len(numbers), *values.shape[1:])
        for number, row in zip(numbers, shaped, strict=True):
            values[number] = row
        frame.values[target] = changed

    return step


def whole_number(value: Array) -> Any:
    """Returns a number as a numpy scalar; it must be the same for all lanes."""
    return value.reshape(-1)[0]


class TensorSlice:
    """The slice of a tensor that an operation reads or replaces, by its offsets, sizes and strides.

    A call with a frame and the tensor's shape returns a Python slice per dimension, and the slice's sizes.
    """

    def __init__(self, op: Op, scope: FunctionScope, first: int) -> None:
        """``first``: number of the operands before the offsets."""
        segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        rest = list(op.operands)[first:]
        self._where = where_of(op)
        self._mixed = []
        for name, count in zip(("offsets", "sizes", "strides"), segments[-3:], strict=True):
            self._mixed.append(MixedNumbers(op, scope, f"static_{name}", rest[:count]))
            rest = rest[count:]

    def __call__(self, frame: LaneFrame, shape: Sequence[int]) -> tuple[tuple[slice, ...], tuple[int, ...]]:
        """Returns the Python slices of a tensor of ``shape``, and the sizes of the result.

        Raises CandidateError(RUN) for a slice outside of ``shape``.
        """
        offsets, sizes, strides = (wholes(mixed(frame)) for mixed in self._mixed)
        slices = []
        for offset, size, stride, extent in zip(offsets, sizes, strides, shape, strict=True):
            last = offset + (size - 1) * stride
            if size < 0 or (size > 0 and not (0 <= offset < extent and 0 <= last < extent)):
                fault(
                    self._where,
                    f"found {size} elements from {offset} on, allowed inside of 0 to {extent - 1}",
                )
            slices.append(slice(offset, last + 1, stride) if size else slice(0, 0))
        return tuple(slices), sizes


def extract_slice(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``tensor.extract_slice``, which may drop dimensions of size 1."""
    source = scope.slot(op.operands[0])
    target = scope.slot(op.results[0])
    part = TensorSlice(op, scope, 1)
    shape = list(op.results[0].type.shape)

    def step(frame: LaneFrame) -> None:
        values = frame.values[source]
        slices, sizes = part(frame, values.shape[2:])
        frame.values[target] = values[:, :, *slices].reshape(1, 1, *kept_sizes(sizes, shape))

    return step


def kept_sizes(sizes: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """Returns ``sizes`` without the sizes of 1 that a rank-reduced type of shape ``wanted`` drops."""
    kept: list[int] = []
    for index, size in enumerate(sizes):
        left = len(wanted) - len(kept)
        is_needed = len(sizes) - index == left
        is_fitting = left > 0 and (wanted[len(kept)] in (size, ir.ShapedType.get_dynamic_size()))
        if is_needed or (is_fitting and not (size == 1 and _drops_later(sizes[index:], left))):
            kept.append(size)
    return kept


def _drops_later(sizes: Sequence[int], left: int) -> bool:
    # a dynamic dimension fits a 1 that is to be dropped: which of several is dropped changes no element
    return len([size for size in sizes if size != 1]) >= left


def insert_slice(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``tensor.insert_slice`` and for ``tensor.parallel_insert_slice``."""
    source, into = scope.slots(list(op.operands)[:2])
    part = TensorSlice(op, scope, 2)
    target = scope.slot(op.results[0]) if op.results else into

    def step(frame: LaneFrame) -> None:
        changed = frame.values[into].copy()
        slices, sizes = part(frame, changed.shape[2:])
        changed[:, :, *slices] = frame.values[source].reshape(1, 1, *sizes)
        frame.values[target] = changed

    return step


def forall(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``scf.forall``: iterations in order, each reading what was there before the loop.

    The slices that iterations insert are collected in the results. Raises CandidateError(COMPILE) where an
    iteration ends with other operations than ``tensor.parallel_insert_slice``.
    """
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    rest = list(op.operands)
    bounds = []
    for name, count in zip(("LowerBound", "UpperBound", "Step"), segments[:3], strict=True):
        bounds.append(MixedNumbers(op, scope, f"static{name}", rest[:count]))
        rest = rest[count:]
    block = op.regions[0].blocks[0]
    *ops, end = ops_in(block)
    inserts = ops_in(end.regions[0].blocks[0])
    if any(insertion.name != "tensor.parallel_insert_slice" for insertion in inserts):
        raise unsupported(op, "another end of an iteration", "tensor.parallel_insert_slice")
    steps = scope.steps(ops)
    ends = [insert_slice(insertion, scope) for insertion in inserts]
    indices = scope.slots(block.arguments)[: len(block.arguments) - len(rest)]
    shared = scope.slots(block.arguments)[len(indices) :]
    starts = scope.slots(rest)
    targets = scope.slots(op.results)
    where = where_of(op)

    def step(frame: LaneFrame) -> None:
        require_one_thread(frame, where)
        lower, upper, by = (wholes(mixed(frame)) for mixed in bounds)
        extents = [len(range(*bound)) for bound in zip(lower, upper, by, strict=True)]
        before = frame.take(starts)
        collected = before
        for place in np.ndindex(*extents):
            frame.spend(1 + len(steps))
            frame.put(shared, before)
            for slot, number, first, stride in zip(indices, place, lower, by, strict=True):
                frame.values[slot] = uniform(first + number * stride)
            for run_step in steps:
                run_step(frame)
            frame.put(shared, collected)
            for run_end in ends:
                run_end(frame)
            collected = frame.take(shared)
        frame.put(targets, collected)

    return step


def reshaped(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``tensor.expand_shape`` or ``tensor.reshape``: the same elements reshaped."""
    source = scope.slot(op.operands[0])
    target = scope.slot(op.results[0])
    is_expanding = op.name == "tensor.expand_shape"
    rest = list(op.operands)[1:]
    mixed = MixedNumbers(op, scope, "static_output_shape", rest) if is_expanding else None
    sizes_slots = scope.slots(rest)

    def step(frame: LaneFrame) -> None:
        if mixed is not None:
            sizes = wholes(mixed(frame))
        else:
            sizes = tuple(frame.values[sizes_slots[0]].ravel().tolist())
        frame.values[target] = frame.values[source].reshape(1, 1, *sizes)

    return step


def collapse(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``tensor.collapse_shape``: merges groups of adjacent dimensions."""
    groups = groups_of(op)

    def compute(values: Array) -> Array:
        shape = values.shape[2:]
        return values.reshape(1, 1, *(math.prod(shape[axis] for axis in group) for group in groups))

    return step_of(op, scope, compute)


def pad(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``tensor.pad``: its region's value around a tensor; negative widths cut."""
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    source = scope.slot(op.operands[0])
    target = scope.slot(op.results[0])
    rest = list(op.operands)[1:]
    low = MixedNumbers(op, scope, "static_low", rest[: segments[1]])
    high = MixedNumbers(op, scope, "static_high", rest[segments[1] :])
    body = scope.body(op.regions[0])
    where = where_of(op)
    dtype = scope.element(op, op.results[0].type).dtype

    def step(frame: LaneFrame) -> None:
        require_one_thread(frame, where)
        values = frame.values[source][0, 0]
        before = wholes(low(frame))
        after = wholes(high(frame))
        extents = list(zip(values.shape, before, after, strict=True))
        shape = tuple(size + first + last for size, first, last in extents)
        if min(shape, default=1) < 0:
            fault(where, f"found sizes {list(shape)}, allowed 0 and more")
        result = made(frame, shape, dtype)
        fill(frame, body, result)
        inside = tuple(slice(max(first, 0), size + min(last, 0) + first) for size, first, last in extents)
        cut = tuple(slice(max(-first, 0), size - max(-last, 0)) for size, first, last in extents)
        result[:, :, *inside] = values[cut]
        frame.values[target] = result

    return step


def fill(frame: LaneFrame, body: Any, result: Array) -> None:
    """Fills a tensor ``result``, (1, 1, *shape): runs ``body`` with the indices of each element.

    The element becomes the value that ``body`` yields.
    """
    shape = result.shape[2:]
    count = math.prod(shape)
    if not count:
        return
    places = [index.reshape(1, -1) for index in np.indices(shape, INDEX)]
    (value,) = body.run(frame.over(count), places)
    result[0, 0] = np.broadcast_to(value, (1, count)).reshape(shape)


def generate(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``tensor.generate``: each element is what the region yields for its indices."""
    type_ = op.results[0].type
    target = scope.slot(op.results[0])
    dtype = scope.element(op, type_).dtype
    dynamic = scope.slots(op.operands)
    body = scope.body(op.regions[0])
    where = where_of(op)

    def step(frame: LaneFrame) -> None:
        require_one_thread(frame, where)
        result = made(frame, shape_of(type_, frame.take(dynamic)), dtype)
        fill(frame, body, result)
        frame.values[target] = result

    return step


def from_elements(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``tensor.from_elements``: the operands in row-major order."""
    shape = tuple(op.results[0].type.shape)
    return step_of(op, scope, lambda *values: np.stack(values, -1).reshape(1, 1, *shape))


def splat(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``tensor.splat``: a tensor of one number."""
    type_ = op.results[0].type
    value, *dynamic = scope.slots(op.operands)
    target = scope.slot(op.results[0])

    def step(frame: LaneFrame) -> None:
        shape = shape_of(type_, frame.take(dynamic))
        frame.values[target] = np.full((1, 1, *shape), whole_number(frame.values[value]))

    return step


def concatenate(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``tensor.concat``: tensors one after another along a dimension."""
    axis = 2 + ir.IntegerAttr(op.attributes["dim"]).value
    return step_of(op, scope, lambda *values: np.concatenate(values, axis))


def cast(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``tensor.cast``: the same tensor; a size that differs from the type is a fault.

    Raises CandidateError(COMPILE) for a tensor of unknown rank.
    """
    type_ = op.results[0].type
    where = where_of(op)
    if not isinstance(type_, ir.RankedTensorType):
        raise unsupported(op, str(type_), "tensors of known rank")
    wanted = [None if type_.is_dynamic_dim(axis) else type_.shape[axis] for axis in range(type_.rank)]

    def compute(values: Array) -> Array:
        for size, known in zip(values.shape[2:], wanted, strict=True):
            if known not in (None, size):
                fault(where, f"found sizes {list(values.shape[2:])}, allowed {type_}")
        return values

    return step_of(op, scope, compute)


def dimension(values: Array, wanted: Array) -> Array:
    """Returns the result of ``tensor.dim``: the size of a tensor along the dimension ``wanted``."""
    sizes = list(map(uniform, values.shape[2:]))
    return np.select([wanted == number for number in range(len(sizes))], sizes)


TENSORS: dict[str, Decode] = {
    **dict.fromkeys(("tensor.empty", "bufferization.alloc_tensor"), empty),
    "tensor.extract": extract,
    "tensor.insert": insert,
    "tensor.extract_slice": extract_slice,
    "tensor.insert_slice": insert_slice,
    "tensor.scatter": write_rows,
    "tensor.expand_shape": reshaped,
    "tensor.reshape": reshaped,
    "tensor.collapse_shape": collapse,
    "tensor.pad": pad,
    "tensor.generate": generate,
    "tensor.from_elements": from_elements,
    "tensor.splat": splat,
    "tensor.concat": concatenate,
    "tensor.cast": cast,
    "tensor.bitcast": lambda op, scope: step_of(
        op, scope, reinterpreted(scope.element(op, op.results[0].type).dtype)
    ),
    "tensor.dim": elementwise(dimension),
    "tensor.rank": elementwise(lambda values: uniform(values.ndim - 2)),
    "scf.forall": forall,
}


def to_tensor(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``bufferization.to_tensor``: the elements that a memref has now."""
    element = scope.element(op, op.operands[0].type)
    return step_of(op, scope, lambda view: array_of(view, element))


def to_buffer(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``bufferization.to_buffer`` or ``clone``: a new memref of the same elements."""
    element = scope.element(op, op.operands[0].type)
    source = scope.slot(op.operands[0])
    target = scope.slot(op.results[0])

    def step(frame: LaneFrame) -> None:
        value = frame.values[source]
        contents = array_of(value, element) if isinstance(value, BufferView) else value
        frame.values[target] = view_of(contents)

    return step


def materialize(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``bufferization.materialize_in_destination`` into a tensor: returns the source.

    Raises CandidateError(COMPILE) for a memref as destination.
    """
    if not op.results:
        raise unsupported(op, "a memref as destination", "a tensor")
    return step_of(op, scope, lambda source, _: source)


BUFFERIZATION: dict[str, Decode] = {
    "bufferization.to_tensor": to_tensor,
    **dict.fromkeys(("bufferization.to_buffer", "bufferization.to_memref", "bufferization.clone"), to_buffer),
    "bufferization.materialize_in_destination": materialize,
}

DECODERS: dict[str, Decode] = {**TENSORS, **BUFFERIZATION}
