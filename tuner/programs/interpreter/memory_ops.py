"""Steps of memory operations: allocations, loads, stores, copies (asynchronous too), atomic updates."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.memrefs import is_workgroup
from tuner.mlir.ir.reading import unsupported
from tuner.programs.interpreter import memory as flat_memory
from tuner.programs.interpreter import scalar_ops
from tuner.programs.interpreter.conversions import constant_of
from tuner.programs.interpreter.decoding import Decode, FunctionScope, LaneFrame, Step, fault, where_of
from tuner.programs.interpreter.lanes import (
    INDEX,
    Array,
    BufferView,
    ElementType,
    row_major,
    uniform,
    with_trailing_axes,
)

# ------------------------------------------------------------------------------
# Memory of kernels: shared memory of a block, private memory of a thread, globals of the module.


LIMIT_BYTES = 1 << 32  # of one allocation, over all lanes that run together


def allocation(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.alloc`` or ``memref.alloca``: one buffer per block or per thread.

    In workgroup memory each block has one, else each thread. A step is a function that executes ``op`` in all
    active lanes (GPU threads) of a frame; ``scope`` maps SSA values to frame slots. Raises
    CandidateError(COMPILE) for a layout with symbols.
    """
    kind = op.results[0].type
    element, target, where = scope.element(op, kind), scope.slot(op.results[0]), where_of(op)
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    if segments[1]:
        raise unsupported(op, "symbols of a layout", "sizes")
    dynamic = scope.slots(op.operands)

    def step(frame: LaneFrame) -> None:
        sizes = filled(kind.shape, frame.take(dynamic))
        frame.values[target] = new_buffer(frame, where, kind, element, sizes)

    return step


def filled(static: Any, dynamic: list[Array]) -> list[Array]:
    """Returns the sizes ``static``, with MLIR's markers of dynamic sizes replaced by ``dynamic`` in order.

    Static sizes become arrays of shape (1, 1); ``dynamic`` has one array of sizes per marker.
    """
    rest = iter(dynamic)
    unknown = ir.ShapedType.get_dynamic_size()
    return [next(rest) if size == unknown else uniform(size) for size in static]


def new_buffer(
    frame: LaneFrame, where: str, kind: Any, element: ElementType, sizes: list[Array]
) -> BufferView:
    """Returns a new buffer of memref type ``kind``: one per block in workgroup memory, else one per lane.

    ``sizes`` has one array per dimension. The buffer's bytes are 0xFF: NaN as floats, -1 as integers. Raises
    CandidateError(RUN), naming the operation ``where``, if the buffers of all lanes that run together need
    more than 4 GiB.
    """
    strides = strides_of(kind, sizes)
    last = uniform(0)
    for size, stride in zip(sizes, strides, strict=True):
        last = last + (size - 1) * stride
    bytes_of_lane = (last + 1) * element.size_bytes
    row = -(-int(bytes_of_lane.max(initial=1)) // flat_memory.ALIGN_BYTES) * flat_memory.ALIGN_BYTES
    shape = (frame.grid.count, 1) if is_workgroup(kind) else frame.grid.shape
    if row * math.prod(shape) > LIMIT_BYTES:
        fault(where, f"found {row} bytes in each of {math.prod(shape)}, allowed {LIMIT_BYTES} in all")
    first, memory = flat_memory.allocate(row * math.prod(shape))
    address = first + np.arange(math.prod(shape), dtype=INDEX).reshape(shape) * row
    view = BufferView.of_rows(address, bytes_of_lane, sizes, memory)
    return view.shifted(address, sizes, strides)


def strides_of(kind: Any, sizes: list[Array]) -> tuple[Array, ...]:
    """Returns the strides, in elements, of a memref type; dynamic ones are those of a contiguous memref."""
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    strides, _ = kind.get_strides_and_offset()
    plain = row_major(sizes)
    return tuple(plain[axis] if stride == unknown else uniform(stride) for axis, stride in enumerate(strides))


def global_memory(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.get_global``: a constant, or one buffer per block in shared memory.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. Raises CandidateError(COMPILE) for an unknown name, and for a global that has no
    contents and is not in shared memory.
    """
    name = str(ir.FlatSymbolRefAttr(op.attributes["name"]).value)
    if name not in scope.symbols:
        raise unsupported(op, f"@{name}, which is not there", "globals of the kernel's module")
    kind, holder = op.results[0].type, scope.symbols[name]
    element, target, where = scope.element(op, kind), scope.slot(op.results[0]), where_of(op)
    contents = _initial(holder, scope)
    if contents is None and not is_workgroup(kind):
        raise unsupported(op, f"@{name} without contents", "globals with contents, or of a block")

    def step(frame: LaneFrame) -> None:
        known = frame.memory.made
        if name not in known:
            sizes = filled(kind.shape, [])
            if contents is None:
                known[name] = new_buffer(frame, where, kind, element, sizes)
            else:
                known[name] = _constant(contents, sizes)
        frame.values[target] = known[name]

    return step


def _initial(holder: Op, scope: FunctionScope) -> Array | None:
    if "initial_value" not in holder.attributes:
        return None
    if not isinstance(holder.attributes["initial_value"], ir.DenseElementsAttr):
        return None  # uninitialized
    return np.ascontiguousarray(constant_of(holder, scope)[0, 0])


def _constant(contents: Array, sizes: list[Array]) -> BufferView:
    first, memory = flat_memory.allocate(contents.nbytes)
    start = first - memory.ctypes.data
    memory[start : start + contents.nbytes] = contents.view(np.uint8).ravel()
    return BufferView.of_rows(uniform(first), contents.nbytes, sizes, memory)


def dynamic_shared(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.dynamic_shared_memory``: one buffer per block, of the launch's size.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots.
    """
    kind = op.results[0].type
    element, target, where = scope.element(op, kind), scope.slot(op.results[0]), where_of(op)

    def step(frame: LaneFrame) -> None:
        made, size_bytes = frame.memory.made, frame.memory.dynamic_bytes
        if "" not in made:
            made[""] = new_buffer(frame, where, kind, element, [uniform(size_bytes)])
        frame.values[target] = made[""]

    return step


ALLOCATIONS: dict[str, Decode] = {
    **dict.fromkeys(("memref.alloc", "memref.alloca"), allocation),
    "memref.get_global": global_memory,
    "gpu.dynamic_shared_memory": dynamic_shared,
}


def async_copy(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``nvgpu.device_async_copy``: a synchronous copy by each lane.

    A lane copies ``dstElements`` elements; elements beyond ``srcElements`` become zero. A step is a function
    that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA values to frame
    slots. The step raises CandidateError(RUN) for an access out of bounds.
    """
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    to, *rest = scope.slots(op.operands)
    there, (source, *rest) = rest[: sizes[1]], rest[sizes[1] :]
    here, given = rest[: sizes[3]], rest[sizes[3] :]
    count = ir.IntegerAttr(op.attributes["dstElements"]).value
    kind, where = scope.element(op, op.operands[0].type), where_of(op)
    steps = np.arange(count)

    def step(frame: LaneFrame) -> None:
        one, other = (
            frame.values[view].at(frame.take(indices), kind.size_bytes)
            for view, indices in ((source, here), (to, there))
        )
        wanted = (
            np.ones((1, 1, count), bool)
            if not given
            else steps < with_trailing_axes(frame.values[given[0]], 1)
        )
        offsets = steps * kind.size_bytes
        found = flat_memory.load_where(
            frame, where, frame.values[source], kind, with_trailing_axes(one, 1) + offsets, wanted
        )
        everything = np.ones((1, 1, count), bool)
        flat_memory.store_where(
            frame, where, frame.values[to], kind, with_trailing_axes(other, 1) + offsets, everything, found
        )

    return step


ASYNC_COPIES: dict[str, Decode] = {"nvgpu.device_async_copy": async_copy}


# ------------------------------------------------------------------------------
# Loads, stores, copies and atomic updates of memrefs.


# In the order of arith's atomic kinds, which is alphabetical.
ATOMIC_KINDS: tuple[Callable[[Array, Array], Array], ...] = (
    scalar_ops.FLOAT_BINARY["addf"],
    scalar_ops.INTEGER_BINARY["addi"],
    scalar_ops.INTEGER_BINARY["andi"],
    lambda _, new: new,  # assign
    scalar_ops.FLOAT_BINARY["maximumf"],
    scalar_ops.FLOAT_BINARY["maxnumf"],
    scalar_ops.INTEGER_BINARY["maxsi"],
    scalar_ops.INTEGER_BINARY["maxui"],
    scalar_ops.FLOAT_BINARY["minimumf"],
    scalar_ops.FLOAT_BINARY["minnumf"],
    scalar_ops.INTEGER_BINARY["minsi"],
    scalar_ops.INTEGER_BINARY["minui"],
    scalar_ops.FLOAT_BINARY["mulf"],
    scalar_ops.INTEGER_BINARY["muli"],
    scalar_ops.INTEGER_BINARY["ori"],
    scalar_ops.INTEGER_BINARY["xori"],
)
COPY_LIMIT = 1 << 26  # number of elements over all lanes


def load(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.load``: loads one element per lane.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. The step raises CandidateError(RUN) for an access out of bounds.
    """
    source, *indices = scope.slots(op.operands)
    target, kind, where = scope.slot(op.results[0]), scope.element(op, op.results[0].type), where_of(op)

    def step(frame: LaneFrame) -> None:
        values = frame.values
        places = [values[slot] for slot in indices]
        values[target] = flat_memory.load_element(frame, where, values[source], kind, places)

    return step


def store(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.store``: stores one element per active lane.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. The step raises CandidateError(RUN) for an access out of bounds.
    """
    value, to, *indices = scope.slots(op.operands)
    kind, where = scope.element(op, op.operands[0].type), where_of(op)

    def step(frame: LaneFrame) -> None:
        values = frame.values
        places = [values[slot] for slot in indices]
        flat_memory.store_element(frame, where, values[to], kind, places, values[value])

    return step


def copy(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.copy``: each active lane copies the whole memref.

    A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA
    values to frame slots. The step raises CandidateError(RUN) for an access out of bounds, for sizes that
    differ between lanes, and if all lanes together copy more than 2**26 elements.
    """
    source, to = scope.slots(op.operands)
    kind, where = scope.element(op, op.operands[0].type), where_of(op)

    def step(frame: LaneFrame) -> None:
        one, other = frame.values[source], frame.values[to]
        sizes = extents(frame, where, one)
        places = np.indices(sizes, INDEX).reshape(len(sizes), -1)
        addresses = [view.at(tuple(places[:, None, None]), kind.size_bytes) for view in (one, other)]
        if not places.shape[1]:
            return
        everything = np.ones((1, 1, 1), bool)
        for offset in kind.offsets_bytes.ravel():
            numbers = flat_memory.load_where(frame, where, one, kind, addresses[0] + offset, everything)
            flat_memory.store_where(frame, where, other, kind, addresses[1] + offset, everything, numbers)

    return step


def extents(frame: LaneFrame, where: str, view: BufferView) -> tuple[int, ...]:
    """Returns a memref's sizes as integers, which must be the same in all active lanes.

    Raises CandidateError(RUN), naming the operation ``where``, if they differ, or if all lanes together have
    more than 2**26 elements.
    """
    sizes = []
    for size in view.sizes:
        found = np.unique(size[frame.active(size.shape)])
        if len(found) != 1:
            fault(where, f"found sizes {found[:4].tolist()} in different threads, allowed one")
        sizes.append(int(found[0]))
    lanes = np.prod(np.broadcast_shapes(view.address.shape, frame.mask.shape))
    if np.prod(sizes, dtype=object) * lanes > COPY_LIMIT:
        fault(where, f"found {sizes} elements in each thread, allowed {COPY_LIMIT} in all")
    return tuple(sizes)


def atomic(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.atomic_rmw``, whose result is the number before the update.

    Lanes with the same address update it one after another. A step is a function that executes ``op`` in all
    active lanes (GPU threads) of a frame; ``scope`` maps SSA values to frame slots. The step raises
    CandidateError(RUN) for an access out of bounds.
    """
    value, to, *indices = scope.slots(op.operands)
    target, kind, where = scope.slot(op.results[0]), scope.element(op, op.operands[0].type), where_of(op)
    function = ATOMIC_KINDS[ir.IntegerAttr(op.attributes["kind"]).value]

    def step(frame: LaneFrame) -> None:
        values = frame.values
        places = [values[slot] for slot in indices]
        addresses = checked(frame, where, values[to], kind.size_bytes, places)
        values[target] = flat_memory.update(frame, kind, addresses, values[value], function)

    return step


def atomic_region(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.generic_atomic_rmw``: a region computes the new number from the old one.

    The result is the old number; lanes with the same address update it one after another. A step is a
    function that executes ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA values to
    frame slots. The step raises CandidateError(RUN) for an access out of bounds.
    """
    to, *indices = scope.slots(op.operands)
    target, kind, where = scope.slot(op.results[0]), scope.element(op, op.results[0].type), where_of(op)
    body = scope.body(op.regions[0])

    def step(frame: LaneFrame) -> None:
        outside, values = frame.mask, frame.values
        view, places = values[to], [values[slot] for slot in indices]
        addresses = np.broadcast_to(checked(frame, where, view, kind.size_bytes, places), frame.grid.shape)
        lanes = np.flatnonzero(np.broadcast_to(outside, frame.grid.shape))
        found = np.zeros(frame.grid.shape, kind.dtype)
        for turn in flat_memory.groups_without_conflicts(addresses.ravel()[lanes]):
            frame.mask = np.zeros(frame.grid.shape, bool)
            frame.mask.ravel()[lanes[turn]] = True
            found[frame.mask] = flat_memory.read(kind.dtype, addresses[frame.mask])
            (new,) = body.run(frame, [found.copy()])
            changed = np.broadcast_to(new, frame.grid.shape)[frame.mask]
            flat_memory.write(kind.dtype, addresses[frame.mask], changed)
        frame.mask, values[target] = outside, found

    return step


def checked(frame: LaneFrame, where: str, view: BufferView, item_bytes: int, indices: list[Array]) -> Array:
    """Returns the byte address of the element at ``indices`` in each lane, after checking it.

    Raises CandidateError(RUN), naming the operation ``where``, if an active lane's index is out of bounds, or
    its address is outside the buffer or no multiple of ``item_bytes``, the size of an element.
    """
    flat_memory.check_indices(frame, where, view, indices)
    addresses = view.at(indices, item_bytes)
    flat_memory.check_bytes(frame, where, view, addresses, item_bytes, item_bytes)
    return addresses


ACCESSES: dict[str, Decode] = {
    "memref.load": load,
    "memref.store": store,
    "memref.copy": copy,
    "memref.atomic_rmw": atomic,
    "memref.generic_atomic_rmw": atomic_region,
}

DECODERS: dict[str, Decode] = {**ACCESSES, **ALLOCATIONS, **ASYNC_COPIES}
