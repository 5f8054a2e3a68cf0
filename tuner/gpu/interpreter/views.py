"""Views of memrefs: other sizes, strides and offsets on the same bytes.

A step runs an operation in all active lanes of a frame (``tuner.gpu.interpreter.decoding``).
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from tuner.gpu.interpreter.arithmetic import elementwise, step_of
from tuner.gpu.interpreter.decoding import Decode, FunctionScope, LaneFrame, Step
from tuner.gpu.interpreter.lanes import INDEX, Array, BufferView, row_major, uniform
from tuner.gpu.interpreter.memory_ops import MixedNumbers, sizes_of
from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.reading import groups_of, unsupported


def subview(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.subview``: offsets, sizes and strides; may drop dimensions of size 1.

    Raises CandidateError(COMPILE) for a dropped dimension of another size.
    """
    source = scope.slot(op.operands[0])
    target = scope.slot(op.results[0])
    offsets, extents, strides = _mixed(op, scope)
    item_bytes = scope.element(op, op.operands[0].type).size_bytes
    shape = list(op.results[0].type.shape)
    kept: list[int] = []
    for axis, size in enumerate(extents.static):
        if len(kept) < len(shape) and size == shape[len(kept)]:
            kept.append(axis)
        elif size != 1:
            raise unsupported(op, f"a dimension of size {size} that is dropped", "dimensions of size 1")

    def step(frame: LaneFrame) -> None:
        view: BufferView = frame.values[source]
        address = view.at(offsets(frame), item_bytes)
        sizes = extents(frame)
        factors = strides(frame)
        frame.values[target] = view.shifted(
            address, [sizes[axis] for axis in kept], [view.strides[axis] * factors[axis] for axis in kept]
        )

    return step


def _mixed(op: Op, scope: FunctionScope) -> tuple[MixedNumbers, MixedNumbers, MixedNumbers]:
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    rest = list(op.operands)[1:]
    mixed = []
    for name, count in zip(("offsets", "sizes", "strides"), sizes[1:], strict=True):
        mixed.append(MixedNumbers(op, scope, f"static_{name}", rest[:count]))
        rest = rest[count:]
    return mixed[0], mixed[1], mixed[2]


def reinterpret_cast(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.reinterpret_cast``; the offset is relative to the start of the buffer."""
    source = scope.slot(op.operands[0])
    target = scope.slot(op.results[0])
    offsets, extents, strides = _mixed(op, scope)
    item_bytes = scope.element(op, op.operands[0].type).size_bytes

    def step(frame: LaneFrame) -> None:
        view: BufferView = frame.values[source]
        address = view.origin + offsets(frame)[0] * item_bytes
        frame.values[target] = view.shifted(address, extents(frame), strides(frame))

    return step


def byte_view(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.view``: a contiguous memref at a byte offset in a buffer of bytes."""
    source, shift, *dynamic = scope.slots(op.operands)
    target = scope.slot(op.results[0])
    shape = list(op.results[0].type.shape)

    def step(frame: LaneFrame) -> None:
        view: BufferView = frame.values[source]
        sizes = sizes_of(shape, frame.take(dynamic))
        address = view.address + frame.values[shift]
        frame.values[target] = replace(view.shifted(address, sizes, row_major(sizes)), origin=address)

    return step


def dimension(view: BufferView, wanted: Array) -> Array:
    """Returns the result of ``memref.dim``: the size of a memref along the dimension ``wanted``."""
    return np.select([wanted == number for number in range(len(view.sizes))], view.sizes)


def collapse(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.collapse_shape``: merges groups of adjacent dimensions of a memref."""
    groups = groups_of(op)

    def compute(view: BufferView) -> BufferView:
        sizes = []
        strides = []
        for group in groups:
            merged = [(view.sizes[axis], view.strides[axis]) for axis in group]
            sizes.append(math.prod((size for size, _ in merged), start=uniform(1)))
            strides.append(_innermost(merged))
        return view.shifted(view.address, sizes, strides)

    return step_of(op, scope, compute)


def _innermost(pairs: list[tuple[Array, Array]]) -> Array:
    *outer, (size, stride) = pairs
    is_settled = size != 1  # the stride of the last dimension that has more than one element
    for size, other in reversed(outer):
        stride = np.where(is_settled, stride, other).astype(INDEX)
        is_settled = is_settled | (size != 1)
    return stride


def expand(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.expand_shape``: splits dimensions of a memref into several."""
    source = scope.slot(op.operands[0])
    target = scope.slot(op.results[0])
    groups = groups_of(op)
    extents = MixedNumbers(op, scope, "static_output_shape", list(op.operands)[1:])

    def step(frame: LaneFrame) -> None:
        view: BufferView = frame.values[source]
        sizes = extents(frame)
        strides: list[Any] = [None] * len(sizes)
        for index, group in enumerate(groups):
            stride = view.strides[index]
            for axis in reversed(group):
                strides[axis] = stride
                stride = stride * sizes[axis]
        frame.values[target] = view.shifted(view.address, sizes, strides)

    return step


def transpose(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.transpose``: permutes the dimensions of a memref without copying."""
    results = ir.AffineMapAttr(op.attributes["permutation"]).value.results
    order = [ir.AffineDimExpr(result).position for result in results]

    def compute(view: BufferView) -> BufferView:
        sizes = [view.sizes[axis] for axis in order]
        strides = [view.strides[axis] for axis in order]
        return view.shifted(view.address, sizes, strides)

    return step_of(op, scope, compute)


def metadata(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.extract_strided_metadata``: base, offset, sizes, strides, in elements."""
    source = scope.slot(op.operands[0])
    (base, offset, *rest) = scope.slots(op.results)
    item_bytes = scope.element(op, op.operands[0].type).size_bytes

    def step(frame: LaneFrame) -> None:
        view: BufferView = frame.values[source]
        frame.values[base] = view.shifted(view.origin, (), ())
        frame.values[offset] = (view.address - view.origin) // item_bytes
        for slot, number in zip(rest, (*view.sizes, *view.strides), strict=True):
            frame.values[slot] = number

    return step


def cast(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.cast`` or ``memref.memory_space_cast``: the same memref.

    Raises CandidateError(COMPILE) for a memref of unknown rank.
    """
    types = (op.operands[0].type, op.results[0].type)
    if not all(isinstance(type_, ir.MemRefType) for type_ in types):
        raise unsupported(op, str(types[1]), "memrefs of known rank")
    return step_of(op, scope, lambda view: view)


def same(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``memref.assume_alignment`` or ``distinct_objects``: results are the operands."""
    sources = scope.slots(op.operands)
    targets = scope.slots(op.results)

    def step(frame: LaneFrame) -> None:
        for target, slot in zip(targets, sources, strict=False):
            frame.values[target] = frame.values[slot]

    return step


DECODERS: dict[str, Decode] = {
    "memref.subview": subview,
    "memref.reinterpret_cast": reinterpret_cast,
    "memref.view": byte_view,
    "memref.dim": elementwise(dimension),
    "memref.rank": elementwise(lambda view: uniform(len(view.sizes))),
    "memref.collapse_shape": collapse,
    "memref.expand_shape": expand,
    "memref.transpose": transpose,
    "memref.extract_strided_metadata": metadata,
    "memref.extract_aligned_pointer_as_index": elementwise(lambda view: view.origin),
    **dict.fromkeys(("memref.cast", "memref.memory_space_cast"), cast),
    **dict.fromkeys(("memref.assume_alignment", "memref.distinct_objects"), same),
}
