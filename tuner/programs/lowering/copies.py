"""Copies and fills that the runtime has no call for: of strided views, with offsets, of 8 and 64 bits."""

from collections.abc import Callable, Sequence
from functools import partial

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import ASYNC, is_buffer, is_token, roots_of
from tuner.mlir.ir import building
from tuner.mlir.ir.building import create, index, size_of, value
from tuner.mlir.ir.memrefs import contiguous_dimensions, element_bytes, has_zero_offset, is_contiguous
from tuner.mlir.ir.reading import op_of, walk
from tuner.programs.streams.async_ops import is_filled_by_runtime
from tuner.programs.streams.gpux import lower_tokens

STREAM_COPY = "gpux.memcpy"
ANY_SIZE, ANY_OFFSET = ir.ShapedType.get_dynamic_size(), ir.ShapedType.get_dynamic_stride_or_offset()

Copy = Callable[[Value, Value], object]  # builds the copy of a part; operands: target, source


def copy_by_contiguous_parts(function: Op) -> None:
    """Rewrites copies and fills of device memory that MLIR's GPU runtime has no call for, in place.

    A copy of non-contiguous memory becomes copies of contiguous parts, or, between two device buffers, a
    loop, which is later outlined into a kernel, as is a fill of other than 16 or 32 bits or of non-contiguous
    memory. A replaced operation's token becomes that of a ``gpu.wait``. A ``gpux.memcpy`` becomes a copy per
    part on the same stream. Unranked memrefs stay. Raises CandidateError(COMPILE) for invalid tokens of GPUX.

        gpu.memcpy %a, %b : memref<4x2xf32, strided<[8, 1]>>, memref<4x2xf32>
      becomes
        scf.for %i = %c0 to %c4 step %c1 {
          %s = memref.subview %a[%i, 0] [1, 2] [1, 1] : ...
          %t = memref.subview %b[%i, 0] [1, 2] [1, 1] : ...
          gpu.memcpy %s, %t : ...
    """
    for op in walk(function, "gpu.memcpy"):
        target, source = _buffers(op)
        if not _has_gaps(target, source):
            continue
        with op.location, ir.InsertionPoint(op):
            # a kernel can access both only if both are certainly device memory
            if all(op_of(root, "gpu.alloc") for buffer in (target, source) for root in roots_of(buffer)):
                building.copy(source, target)
            else:
                _copy_in_parts(target, source, partial(_copy_part, "gpu.memcpy", ()))
            _hand_on_token(op)
        op.erase()
    # a copy per part has no single token: tokens become events first, which recreates the copies
    if _stream_copies_with_gaps(function):
        lower_tokens(function)
    for op in _stream_copies_with_gaps(function):
        stream, target, source = op.operands
        with op.location, ir.InsertionPoint(op):
            _copy_in_parts(target, source, partial(_copy_part, STREAM_COPY, (stream,)))
        op.erase()
    for op in walk(function, "gpu.memset"):
        target, number = _buffers(op)
        if _is_ranked(target) and not is_filled_by_runtime(target.type):
            with op.location, ir.InsertionPoint(op):
                building.fill(target, number)
                _hand_on_token(op)
            op.erase()


def _stream_copies_with_gaps(function: Op) -> list[Op]:
    return [op for op in walk(function, STREAM_COPY) if _has_gaps(*list(op.operands)[-2:])]


def _copy_part(name: str, before: Sequence[Value], target: Value, source: Value) -> None:
    create(name, [], [*before, target, source])


def _copy_in_parts(target: Value, source: Value, copy: Copy, indices: Sequence[Value] = ()) -> None:
    """Builds loops around the copies of contiguous parts, inside of loops whose indices are ``indices``."""
    dimensions = min(contiguous_dimensions(target.type), contiguous_dimensions(source.type))
    if len(indices) == target.type.rank - dimensions:
        copy(_part(target, indices), _part(source, indices))
        return
    building.for_each(
        0,
        size_of(target, len(indices)),
        lambda number: _copy_in_parts(target, source, copy, (*indices, number)),
    )


def _part(buffer: Value, indices: Sequence[Value]) -> Value:
    kind, outer = buffer.type, len(indices)
    inner = list(range(outer, kind.rank))
    strides = kind.get_strides_and_offset()[0]
    sizes = [size_of(buffer, number) for number in inner if kind.is_dynamic_dim(number)]
    shape = [ANY_SIZE if kind.is_dynamic_dim(number) else kind.shape[number] for number in inner]
    layout = ir.StridedLayoutAttr.get(ANY_OFFSET, [strides[number] for number in inner])
    result = ir.MemRefType.get(shape, kind.element_type, layout=layout, memory_space=kind.memory_space)
    return value(
        "memref.subview",
        result,
        *[buffer, *indices, *sizes],
        static_offsets=ir.DenseI64ArrayAttr.get([ANY_OFFSET] * outer + [0] * len(inner)),
        static_sizes=ir.DenseI64ArrayAttr.get([1] * outer + shape),
        static_strides=ir.DenseI64ArrayAttr.get([1] * kind.rank),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, outer, len(sizes), 0]),
    )


def _hand_on_token(op: Op) -> None:
    for result in filter(is_token, op.results):
        tokens = [each for each in op.operands if is_token(each)]
        waited = create("gpu.wait", [ir.Type.parse(ASYNC)], tokens).results[0]
        result.replace_all_uses_with(waited)


def _buffers(op: Op) -> list[Value]:
    return [each for each in op.operands if not is_token(each)]


def _has_gaps(target: Value, source: Value) -> bool:
    return _is_ranked(target, source) and not (is_contiguous(target.type) and is_contiguous(source.type))


def _is_ranked(*buffers: Value) -> bool:
    return all(isinstance(each.type, ir.MemRefType) for each in buffers)


def move_pointers_of_copies(module: ir.Module) -> int:
    """Makes device copies and fills of contiguous views start at the view's first element, in place.

    Right before ``gpu-to-llvm``, which drops the offset. Returns the number of replaced operands.

        gpu.memcpy %a, %view : memref<4xf32>, memref<4xf32, strided<[1], offset: 4>>
      becomes, at its end
        %5 = builtin.unrealized_conversion_cast %4 : !llvm.struct<(ptr, ptr, i64, ...)> to memref<4xf32>
        gpu.memcpy %a, %5 : memref<4xf32>, memref<4xf32>
    """
    moved = 0
    for op in [*walk(module, "gpu.memcpy"), *walk(module, "gpu.memset")]:
        for number, operand in enumerate(op.operands):
            kind = operand.type
            if is_buffer(kind) and is_contiguous(kind) and not has_zero_offset(kind):
                with op.location, ir.InsertionPoint(op):
                    op.operands[number] = _moved(operand)
                moved += 1
    return moved


def _moved(buffer: Value) -> Value:
    kind, number = buffer.type, ir.IndexType.get()
    base = ir.MemRefType.get([], kind.element_type, memory_space=kind.memory_space)
    results = [base, *[number] * (1 + 2 * kind.rank)]
    _, offset, *rest = create("memref.extract_strided_metadata", results, [buffer]).results
    start = value("memref.extract_aligned_pointer_as_index", number, buffer)
    distance = value("arith.muli", number, offset, index(element_bytes(kind.element_type)))
    first = _i64(value("arith.addi", number, start, distance))
    address = value("llvm.inttoptr", ir.Type.parse("!llvm.ptr"), first)
    plain = ir.MemRefType.get(kind.shape, kind.element_type, memory_space=kind.memory_space)
    described = _descriptor(address, rest[: kind.rank])
    return value("builtin.unrealized_conversion_cast", plain, described)


def _descriptor(address: Value, sizes: list[Value]) -> Value:
    array = f"array<{len(sizes)} x i64>"
    kind = f"!llvm.struct<(ptr, ptr, i64{f', {array}, {array}' if sizes else ''})>"
    described = value("llvm.mlir.poison", ir.Type.parse(kind))
    fields = [([0], address), ([1], address), ([2], _i64(index(0)))]
    stride = index(1)
    for number in reversed(range(len(sizes))):
        fields += [([3, number], _i64(sizes[number])), ([4, number], _i64(stride))]
        stride = value("arith.muli", stride.type, stride, sizes[number])
    for path, field in fields:
        position = ir.DenseI64ArrayAttr.get(path)
        described = value("llvm.insertvalue", described.type, described, field, position=position)
    return described


def _i64(number: Value) -> Value:
    return value("arith.index_cast", ir.IntegerType.get_signless(64), number)
