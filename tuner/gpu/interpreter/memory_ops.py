"""Steps of memory operations: allocations, loads, stores, copies (asynchronous too), atomic updates.

A step runs an operation in all active lanes of a frame (``tuner.gpu.interpreter.decoding``).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tuner.gpu.interpreter import arithmetic
from tuner.gpu.interpreter import memory as flat_memory
from tuner.gpu.interpreter.conversions import constant_of
from tuner.gpu.interpreter.decoding import Decode, FunctionScope, LaneFrame, Step, fault, where_of
from tuner.gpu.interpreter.lanes import (
    INDEX,
    Array,
    BufferView,
    ElementType,
    row_major,
    uniform,
    with_trailing_axes,
)
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.memrefs import is_workgroup
from tuner.mlir.ir.reading import unsupported

LIMIT_BYTES = 1 << 32  # of one allocation, over all lanes that run together
ATOMIC_KINDS = (  # in the order of arith's enum
    *("addf", "addi", "andi", "assign", "maximumf", "maxnumf", "maxsi", "maxui"),
    *("minimumf", "minnumf", "minsi", "minui", "mulf", "muli", "ori", "xori"),
)
COPY_LIMIT = 1 << 26  # number of elements over all lanes


def allocation(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.alloc`` or ``alloca``: per block in workgroup memory, else per thread.

    Raises CandidateError(COMPILE) for a layout with symbols.
    """
    type_ = op.results[0].type
    element = scope.element(op, type_)
    target = scope.slot(op.results[0])
    where = where_of(op)
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    if segments[1]:
        raise unsupported(op, "symbols of a layout", "sizes")
    dynamic = scope.slots(op.operands)

    def step(frame: LaneFrame) -> None:
        sizes = sizes_of(type_.shape, frame.take(dynamic))
        frame.values[target] = new_buffer(frame, where, type_, element, sizes)

    return step


def sizes_of(static: Any, dynamic: list[Array]) -> list[Array]:
    """Returns sizes as arrays of shape (1, 1) or per lane: ``static`` with ``dynamic`` for dynamic sizes."""
    rest = iter(dynamic)
    unknown = ir.ShapedType.get_dynamic_size()
    return [next(rest) if size == unknown else uniform(size) for size in static]


class MixedNumbers:
    """Numbers of an operation that are attributes or operands, such as the offsets of a slice.

    ``name``: of the attribute with the static numbers; ``values``: the operands for the dynamic numbers. A
    call with a frame returns an array per number, of shape (1, 1) or per lane.
    """

    def __init__(self, op: Op, scope: FunctionScope, name: str, values: Sequence[Value]) -> None:
        self.static = list(ir.DenseI64ArrayAttr(op.attributes[name]))
        self._slots = scope.slots(values)

    def __call__(self, frame: LaneFrame) -> list[Array]:
        return sizes_of(self.static, frame.take(self._slots))


def new_buffer(
    frame: LaneFrame, where: str, type_: Any, element: ElementType, sizes: list[Array]
) -> BufferView:
    """Returns a new buffer, filled with POISON: one per block in workgroup memory, else one per lane.

    Raises CandidateError(RUN) if the buffers of all lanes that run together need more than LIMIT_BYTES.
    """
    strides = strides_of(type_, sizes)
    last = uniform(0)
    for size, stride in zip(sizes, strides, strict=True):
        last = last + (size - 1) * stride
    bytes_of_lane = (last + 1) * element.size_bytes
    row = -(-int(bytes_of_lane.max(initial=1)) // flat_memory.ALIGN_BYTES) * flat_memory.ALIGN_BYTES
    shape = (frame.grid.count, 1) if is_workgroup(type_) else frame.grid.shape
    if row * math.prod(shape) > LIMIT_BYTES:
        fault(where, f"found {row} bytes in each of {math.prod(shape)}, allowed {LIMIT_BYTES} in all")
    first, memory = flat_memory.allocate(row * math.prod(shape))
    address = first + np.arange(math.prod(shape), dtype=INDEX).reshape(shape) * row
    view = BufferView.of_rows(address, bytes_of_lane, sizes, memory)
    return view.shifted(address, sizes, strides)


def strides_of(type_: Any, sizes: list[Array]) -> tuple[Array, ...]:
    """Returns the strides, in elements, of a memref type; dynamic ones are those of a contiguous memref."""
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    strides, _ = type_.get_strides_and_offset()
    plain = row_major(sizes)
    return tuple(plain[axis] if stride == unknown else uniform(stride) for axis, stride in enumerate(strides))


def global_memory(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.get_global``: a buffer with its value; one per block if it has none.

    Raises CandidateError(COMPILE) for a global that is missing, or has no value and is not in workgroup
    memory.
    """
    name = str(ir.FlatSymbolRefAttr(op.attributes["name"]).value)
    if name not in scope.symbols:
        raise unsupported(op, f"@{name}, which is not there", "globals of the kernel's module")
    type_ = op.results[0].type
    holder = scope.symbols[name]
    element = scope.element(op, type_)
    target = scope.slot(op.results[0])
    where = where_of(op)
    contents = None  # uninitialized
    if isinstance(holder.attributes.get("initial_value"), ir.DenseElementsAttr):
        contents = np.ascontiguousarray(constant_of(holder, scope)[0, 0])
    if contents is None and not is_workgroup(type_):
        raise unsupported(op, f"@{name} without contents", "globals with contents, or of a block")

    def step(frame: LaneFrame) -> None:
        known = frame.memory.made
        if name not in known:
            sizes = sizes_of(type_.shape, [])
            if contents is None:
                known[name] = new_buffer(frame, where, type_, element, sizes)
            else:
                first, memory = flat_memory.allocate(contents.nbytes)
                memory[first - memory.ctypes.data :][: contents.nbytes] = contents.view(np.uint8).ravel()
                known[name] = BufferView.of_rows(uniform(first), contents.nbytes, sizes, memory)
        frame.values[target] = known[name]

    return step


def dynamic_shared(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.dynamic_shared_memory``: one buffer per block, of the launch's size."""
    type_ = op.results[0].type
    element = scope.element(op, type_)
    target = scope.slot(op.results[0])
    where = where_of(op)

    def step(frame: LaneFrame) -> None:
        known = frame.memory.made
        if "" not in known:
            known[""] = new_buffer(frame, where, type_, element, [uniform(frame.memory.dynamic_bytes)])
        frame.values[target] = known[""]

    return step


ALLOCATIONS: dict[str, Decode] = {
    **dict.fromkeys(("memref.alloc", "memref.alloca"), allocation),
    "memref.get_global": global_memory,
    "gpu.dynamic_shared_memory": dynamic_shared,
}


def async_copy(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``nvgpu.device_async_copy``, which copies at once.

    Elements from ``srcElements`` on become zeros.
    """
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    to, *rest = scope.slots(op.operands)
    # operands: destination, its indices, source, its indices, srcElements if given
    there = rest[: sizes[1]]
    (source, *rest) = rest[sizes[1] :]
    here = rest[: sizes[3]]
    source_count = rest[sizes[3] :]
    count = ir.IntegerAttr(op.attributes["dstElements"]).value
    element = scope.element(op, op.operands[0].type)
    where = where_of(op)
    steps = np.arange(count)
    offsets = steps * element.size_bytes

    def step(frame: LaneFrame) -> None:
        first, target = (
            frame.values[view].at(frame.take(indices), element.size_bytes)
            for view, indices in ((source, here), (to, there))
        )
        everything = np.ones((1, 1, count), bool)
        wanted = steps < with_trailing_axes(frame.values[source_count[0]], 1) if source_count else everything
        here_bytes, there_bytes = (with_trailing_axes(address, 1) + offsets for address in (first, target))
        elements = flat_memory.load_where(frame, where, frame.values[source], element, here_bytes, wanted)
        flat_memory.store_where(frame, where, frame.values[to], element, there_bytes, everything, elements)

    return step


UPDATES: dict[str, Callable[[Array, Array], Array]] = {
    **arithmetic.FLOAT_BINARY,
    **arithmetic.INTEGER_BINARY,
    "assign": lambda _, new: new,
}


def load(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.load``, which loads one element per lane."""
    source, *indices = scope.slots(op.operands)
    target = scope.slot(op.results[0])
    element = scope.element(op, op.results[0].type)
    where = where_of(op)

    def step(frame: LaneFrame) -> None:
        at = frame.take(indices)
        frame.values[target] = flat_memory.load_element(frame, where, frame.values[source], element, at)

    return step


def store(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.store``, which stores one element per active lane."""
    value, to, *indices = scope.slots(op.operands)
    element = scope.element(op, op.operands[0].type)
    where = where_of(op)

    def step(frame: LaneFrame) -> None:
        view = frame.values[to]
        values = frame.values[value]
        flat_memory.store_element(frame, where, view, element, frame.take(indices), values)

    return step


def copy(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.copy``: each active lane copies the whole memref."""
    source, to = scope.slots(op.operands)
    return copy_between(op, scope.element(op, op.operands[0].type), source, to)


def copy_between(op: Op, element: ElementType, source: int, to: int) -> Step:
    """Returns the step that copies the memref in slot ``source`` to the memref in slot ``to``.

    ``op`` is the operation for error messages.
    """
    where = where_of(op)

    def step(frame: LaneFrame) -> None:
        from_view = frame.values[source]
        to_view = frame.values[to]
        sizes = extents(frame, where, from_view)
        places = np.indices(sizes, INDEX).reshape(len(sizes), -1)
        addresses = [
            view.at(tuple(places[:, None, None]), element.size_bytes) for view in (from_view, to_view)
        ]
        if not places.shape[1]:
            return
        everything = np.ones((1, 1, 1), bool)
        for offset in element.offsets_bytes.ravel():
            numbers = flat_memory.load_where(
                frame, where, from_view, element, addresses[0] + offset, everything
            )
            flat_memory.store_where(
                frame, where, to_view, element, addresses[1] + offset, everything, numbers
            )

    return step


def extents(frame: LaneFrame, where: str, view: BufferView) -> tuple[int, ...]:
    """Returns the sizes of a memref as integers.

    Raises CandidateError(RUN) where active lanes have different sizes, or all lanes together have more than
    COPY_LIMIT elements.
    """
    sizes = []
    for size in view.sizes:
        distinct = np.unique(size[frame.active(size.shape)])
        if len(distinct) != 1:
            fault(where, f"found sizes {distinct[:4].tolist()} in different threads, allowed one")
        sizes.append(int(distinct[0]))
    lanes = np.prod(np.broadcast_shapes(view.address.shape, frame.mask.shape))
    if np.prod(sizes, dtype=object) * lanes > COPY_LIMIT:
        fault(where, f"found {sizes} elements in each thread, allowed {COPY_LIMIT} in all")
    return tuple(sizes)


def atomic(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.atomic_rmw``, whose result is the number before the update."""
    value, to, *indices = scope.slots(op.operands)
    target = scope.slot(op.results[0])
    element = scope.element(op, op.operands[0].type)
    where = where_of(op)
    function = UPDATES[ATOMIC_KINDS[ir.IntegerAttr(op.attributes["kind"]).value]]

    def step(frame: LaneFrame) -> None:
        values = frame.values
        addresses = flat_memory.element_addresses(frame, where, values[to], element, frame.take(indices))
        values[target] = flat_memory.update(frame, element, addresses, values[value], function)

    return step


def atomic_region(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.generic_atomic_rmw``, an update whose new number a region computes."""
    to, *indices = scope.slots(op.operands)
    target = scope.slot(op.results[0])
    element = scope.element(op, op.results[0].type)
    where = where_of(op)
    body = scope.body(op.regions[0])

    def step(frame: LaneFrame) -> None:
        outside = frame.mask
        values = frame.values
        addresses = flat_memory.element_addresses(frame, where, values[to], element, frame.take(indices))
        addresses = np.broadcast_to(addresses, frame.grid.shape)
        lanes = np.flatnonzero(np.broadcast_to(outside, frame.grid.shape))
        before = np.zeros(frame.grid.shape, element.dtype)
        for group in flat_memory.groups_without_conflicts(addresses.ravel()[lanes]):
            frame.mask = np.zeros(frame.grid.shape, bool)
            frame.mask.ravel()[lanes[group]] = True
            before[frame.mask] = flat_memory.read(element.dtype, addresses[frame.mask])
            (new,) = body.run(frame, [before.copy()])
            changed = np.broadcast_to(new, frame.grid.shape)[frame.mask]
            flat_memory.write(element.dtype, addresses[frame.mask], changed)
        frame.mask = outside
        values[target] = before

    return step


ACCESSES: dict[str, Decode] = {
    "memref.load": load,
    "memref.store": store,
    "memref.copy": copy,
    "memref.atomic_rmw": atomic,
    "memref.generic_atomic_rmw": atomic_region,
}

DECODERS: dict[str, Decode] = {**ACCESSES, **ALLOCATIONS, "nvgpu.device_async_copy": async_copy}
