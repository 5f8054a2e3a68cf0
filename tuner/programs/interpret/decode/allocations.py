"""Memory of kernels: shared memory of a block, private memory of a thread, globals of the module."""

import math
from typing import Any

import numpy as np

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.located_error import unsupported
from tuner.mlir.rewrite.type_sizes import is_workgroup
from tuner.programs.interpret import flat_memory
from tuner.programs.interpret.buffer_view import BufferView, row_major
from tuner.programs.interpret.decode.conversions import constant_of
from tuner.programs.interpret.element_types import INDEX, Array, ElementType
from tuner.programs.interpret.frame import LaneFrame, Step, fault
from tuner.programs.interpret.lane_grid import uniform
from tuner.programs.interpret.scope import Decode, FunctionScope, where_of

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


DECODERS: dict[str, Decode] = {
    **dict.fromkeys(("memref.alloc", "memref.alloca"), allocation),
    "memref.get_global": global_memory,
    "gpu.dynamic_shared_memory": dynamic_shared,
}
