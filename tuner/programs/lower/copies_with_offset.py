"""Moves the pointer of a copied or filled view to its first element, since ``gpu-to-llvm`` drops the offset.

Takes a host function right before ``gpu-to-llvm``. The operand of a ``gpu.memcpy`` or ``gpu.memset`` that is
contiguous memory with an offset becomes a memref whose pointer is the address of its first element.

    gpu.memcpy %a, %view : memref<4xf32>, memref<4xf32, strided<[1], offset: 4>>
  becomes, at its end
    %5 = builtin.unrealized_conversion_cast %4 : !llvm.struct<(ptr, ptr, i64, ...)> to memref<4xf32>
    gpu.memcpy %a, %5 : memref<4xf32>, memref<4xf32>
"""

from tuner.mlir.bindings import Value, ir
from tuner.mlir.effects.address_flow import is_buffer
from tuner.mlir.rewrite.building import create, index, value
from tuner.mlir.rewrite.contiguity import has_zero_offset, is_contiguous
from tuner.mlir.rewrite.type_sizes import element_bytes
from tuner.mlir.rewrite.walking import walk


def move_pointers_of_copies(module: ir.Module) -> int:
    """Makes device copies and fills of contiguous views start at the view's first element, in place.

    The operand of a ``gpu.memcpy`` or ``gpu.memset`` that has an offset is replaced by a memref without one,
    since ``gpu-to-llvm`` drops the offset. Returns the number of replaced operands.
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
    place = _i64(value("arith.addi", number, start, distance))
    address = value("llvm.inttoptr", ir.Type.parse("!llvm.ptr"), place)
    plain = ir.MemRefType.get(kind.shape, kind.element_type, memory_space=kind.memory_space)
    described = _descriptor(address, rest[: kind.rank])
    return value("builtin.unrealized_conversion_cast", plain, described)


def _descriptor(address: Value, sizes: list[Value]) -> Value:
    """Creates the LLVM descriptor of a row-major memref of these sizes without an offset."""
    array = f"array<{len(sizes)} x i64>"
    kind = f"!llvm.struct<(ptr, ptr, i64{f', {array}, {array}' if sizes else ''})>"
    described = value("llvm.mlir.poison", ir.Type.parse(kind))
    parts = [([0], address), ([1], address), ([2], _i64(index(0)))]
    stride = index(1)
    for number in reversed(range(len(sizes))):
        parts += [([3, number], _i64(sizes[number])), ([4, number], _i64(stride))]
        stride = value("arith.muli", stride.type, stride, sizes[number])
    for place, part in parts:
        position = ir.DenseI64ArrayAttr.get(place)
        described = value("llvm.insertvalue", described.type, described, part, position=position)
    return described


def _i64(number: Value) -> Value:
    return value("arith.index_cast", ir.IntegerType.get_signless(64), number)
