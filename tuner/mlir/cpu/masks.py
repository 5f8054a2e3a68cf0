"""Masks on the CPU: i1 arguments and buffers of a fusion as bytes, masked vectors of i1, masked reductions.

``read_masks_as_bytes`` runs before the script of a fusion, ``leave_one_op_in_masks`` before tensors that a
script leaves become buffers, the other passes before the conversion to LLVM dialect.
"""

import math
from collections.abc import Sequence

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ir.building import compared, create, recreated, splat, value, zero
from tuner.mlir.ir.memrefs import is_row_major
from tuner.mlir.ir.reading import ops_in, replace_results, set_operands, types_of, uses_of, walk

NEUTRAL = {
    f"#vector.kind<{name}>": number
    for names, number in (
        (("maximumf", "maxnumf"), -math.inf),
        (("minimumf", "minnumf"), math.inf),
        (("add",), -0.0),
    )
    for name in names
}
READ = "vector.transfer_read"
WRITE = "vector.transfer_write"
READS = (READ, "vector.load", "memref.load")  # of the memory that is operand 0
WRITES = (WRITE, "vector.store", "memref.store")  # of operand 0 to the memory that is operand 1
ALLOCATIONS = ("memref.alloca", "memref.alloc")
VIEWS = ("memref.subview", "memref.cast", "memref.collapse_shape", "memref.expand_shape")
SIZES = ("memref.dim", "memref.dealloc")
SIZE_FREE = (*READS, *WRITES, "memref.subview", "memref.dealloc")  # uses that no size of a buffer is part of


def fill_masked_lanes(module: ir.Module) -> None:
    """Gives masked-off lanes of reductions of floats their neutral number, in place.

    Upstream's ``convert-vector-to-llvm`` puts a number of the least magnitude, -1.4e-45 for a maximum of f32,
    into these lanes, which is wrong for a row of negative numbers shorter than a vector. And it adds the
    lanes of a masked sum one after the other: for 49 numbers this took 4 times as long.
        %r = vector.mask %m { vector.reduction <maximumf>, %v, %a : ... } : vector<4xi1> -> f32
      becomes
        %neutral = arith.constant dense<0xFF800000> : vector<4xf32>
        %s = arith.select %m, %v, %neutral : vector<4xi1>, vector<4xf32>
        %r = vector.reduction <maximumf>, %s, %a : vector<4xf32> into f32
    """
    for mask in walk(module, "vector.mask"):
        inner = next(iter(mask.regions[0].blocks[0].operations)).operation
        if _has_neutral_number(inner):
            number = NEUTRAL[str(inner.attributes["kind"])]
            vector = inner.operands[0]
            with mask.location, ir.InsertionPoint(mask):
                neutral = splat(vector.type, number)
                chosen = value("arith.select", vector.type, mask.operands[0], vector, neutral)
                plain = inner.clone()
                plain.operands[0] = chosen
            mask.results[0].replace_all_uses_with(plain.results[0])
            mask.erase()


def _has_neutral_number(op: Op) -> bool:
    if op.name != "vector.reduction" or str(op.attributes["kind"]) not in NEUTRAL:
        return False
    return isinstance(op.operands[0].type.element_type, ir.FloatType)


def leave_one_op_in_masks(module: ir.Module) -> None:
    """Moves out of each ``vector.mask`` what upstream's canonicalization has moved into it, in place.

    A mask holds one op; with a ``tensor.cast`` behind it MLIR refuses the module.
        %r = vector.mask %m { %w = vector.transfer_write %v, %t[%i]; %c = tensor.cast %w; vector.yield %c }
      becomes
        %w = vector.mask %m { vector.transfer_write %v, %t[%i] }
        %r = tensor.cast %w
    """
    for mask in walk(module, "vector.mask"):
        ops = ops_in(mask.regions[0].blocks[0])
        if len(ops) <= 2:  # one op, and the yield of its results
            continue
        first, *moved, end = ops
        with mask.location, ir.InsertionPoint(mask):
            types = types_of(first.results)
            new = ir.Operation.create("vector.mask", results=types, operands=list(mask.operands), regions=1)
            inner = new.regions[0].blocks.append()
        replace_results(mask, end.operands)
        for op in moved:
            op.move_before(mask)
        replace_results(first, new.results)
        inner.append(first)
        with mask.location, ir.InsertionPoint(inner):
            create("vector.yield", [], list(first.results))
        mask.erase()


def unmask_truths(module: ir.Module) -> None:
    """Replaces masked reads and writes of buffers of i1 by plain ones, in place, and lengthens these buffers.

    Without AVX-512 a masked access of bytes is a branch per element. A plain access of a whole vector needs
    memory for all of it: LLVM leaves undefined what is beyond an allocation, even where other memory follows.
        %b = memref.alloca() : memref<6xi1>
        %r = vector.transfer_read %b[%i], %p, %m : memref<6xi1>, vector<16xi1>
        vector.transfer_write %v, %b[%i], %m : vector<16xi1>, memref<6xi1>
      becomes
        %b = memref.alloca() : memref<21xi1>
        %all = vector.transfer_read %b[%i], %p : memref<21xi1>, vector<16xi1>
        %r = arith.select %m, %all, %pads : ...
        %old = vector.transfer_read %b[%i], %p : memref<21xi1>, vector<16xi1>
        %new = arith.select %m, %v, %old : ...
        vector.transfer_write %new, %b[%i] : vector<16xi1>, memref<21xi1>
    Accesses of a buffer whose type other operations depend on stay masked.
    """
    for allocation in walk(module, *ALLOCATIONS):
        memory = allocation.results[0]
        if not _is_truth(memory.type) or not _may_be_longer(memory):
            continue
        masked = [op for op, _ in _accesses(memory) if _is_masked(op)]
        if masked:
            _lengthen(memory, max(map(_lanes, masked)) - 1)
        for op in masked:
            with ir.InsertionPoint(op), op.location:
                (_unmask_read if op.name == READ else _unmask_write)(op)
            op.erase()


def _is_masked(op: Op) -> bool:
    return op.name in (READ, WRITE) and bool(list(op.attributes["operandSegmentSizes"])[-1])


def _may_be_longer(memory: Value) -> bool:
    """Returns whether a buffer's first size may grow: no type of another value depends on this size."""
    type_ = ir.MemRefType(memory.type)
    if not type_.has_static_shape or not type_.shape or 0 in type_.shape or not is_row_major(type_):
        return False
    return all(op.name in SIZE_FREE for op, _ in uses_of(memory))


def _lanes(access: Op) -> int:
    vector = access.results[0] if access.name == READ else access.operands[0]
    return math.prod(vector.type.shape)


def _lengthen(memory: Value, elements: int) -> None:
    """Adds at least ``elements`` elements at the end of a buffer, as rows of its first dimension."""
    type_ = ir.MemRefType(memory.type)
    rows, *others = type_.shape
    more = -(-elements // math.prod(others))
    memory.set_type(
        ir.MemRefType.get([rows + more, *others], type_.element_type, memory_space=type_.memory_space)
    )


def _unmask_read(op: Op) -> None:
    memory, *indices, padding, mask = op.operands
    type_ = op.results[0].type
    every = _read(op, type_, memory, indices, padding)
    pads = value("vector.broadcast", type_, padding)
    op.results[0].replace_all_uses_with(value("arith.select", type_, mask, every, pads))


def _unmask_write(op: Op) -> None:
    vector, memory, *indices, mask = op.operands
    truth = ir.IntegerType.get_signless(1)
    before = _read(op, vector.type, memory, indices, zero(truth))
    chosen = value("arith.select", vector.type, mask, vector, before)
    segments = ir.DenseI32ArrayAttr.get([1, 1, len(indices), 0])
    create(WRITE, [], [chosen, memory, *indices], operandSegmentSizes=segments, **_kept(op))


def _read(op: Op, type_: Type, memory: Value, indices: Sequence[Value], padding: Value) -> Value:
    segments = ir.DenseI32ArrayAttr.get([1, len(indices), 1, 0])
    return value(READ, type_, memory, *indices, padding, operandSegmentSizes=segments, **_kept(op))


def _kept(op: Op) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in ("in_bounds", "permutation_map")}


def store_truths_as_bytes(module: ir.Module) -> None:
    """Makes buffers of i1 that are read or written by vectors buffers of i8, in place.

    LLVM stores a vector of i1 as bits, and what it stores in the rest of a byte is anything: four elements
    that are written over the first of sixteen destroy the next four. A byte per element has no such rest.
        %b = memref.alloca() : memref<16xi1>
        vector.transfer_write %v, %b[%c0] : vector<4xi1>, memref<16xi1>
        %r = vector.transfer_read %b[%c0], %p : memref<16xi1>, vector<16xi1>
      becomes
        %b = memref.alloca() : memref<16xi8>
        %bytes = arith.extui %v : vector<4xi1> to vector<4xi8>
        vector.transfer_write %bytes, %b[%c0] : vector<4xi8>, memref<16xi8>
        %read = vector.transfer_read %b[%c0], %q : memref<16xi8>, vector<16xi8>
        %r = arith.cmpi ne, %read, %zeros : vector<16xi8>
    Raises CandidateError(COMPILE) for such a buffer that another operation uses.
    """
    for allocation in walk(module, *ALLOCATIONS):
        memory = allocation.results[0]
        if _is_truth(memory.type):
            accesses = _accesses(memory)
            if any(_is_of_vectors(op) for op, _ in accesses):
                _store_as_bytes(memory, accesses)


def _accesses(memory: Value) -> list[tuple[Op, int]]:
    """Returns the uses of a memref and of its views, other than views: operations and operand numbers."""
    accesses = []
    for op, number in uses_of(memory):
        if op.name in VIEWS:
            accesses += _accesses(op.results[0])
        else:
            accesses.append((op, number))
    return accesses


def _is_of_vectors(op: Op) -> bool:
    return any(isinstance(type_, ir.VectorType) for type_ in types_of((*op.operands, *op.results)))


def _is_truth(type_: Type) -> bool:
    """Returns whether a memref or a vector has elements of i1."""
    return str(type_.element_type) == "i1"


def _store_as_bytes(memory: Value, accesses: Sequence[tuple[Op, int]]) -> None:
    for op, number in accesses:
        is_access = (op.name in READS and number == 0) or (op.name in WRITES and number == 1)
        if not is_access and op.name not in SIZES:
            raise CandidateError(Stage.COMPILE, f"fusion: a buffer of i1 is used by {op.name}")
    _retype_memory(memory)
    for op, _ in accesses:
        with ir.InsertionPoint(op), op.location:
            if op.name in READS:
                _read_bytes(op)
            elif op.name in WRITES:
                op.operands[0] = value("arith.extui", _of_bytes(op.operands[0].type), op.operands[0])


def _retype_memory(memory: Value) -> None:
    type_ = ir.MemRefType(memory.type)
    byte = ir.IntegerType.get_signless(8)
    memory.set_type(ir.MemRefType.get(type_.shape, byte, type_.layout, type_.memory_space))
    for op, _ in uses_of(memory):
        if op.name in VIEWS:
            _retype_memory(op.results[0])


def _read_bytes(op: Op) -> None:
    truths = op.results[0]
    bytes_type = _of_bytes(truths.type)
    operands = list(op.operands)
    if op.name == READ:  # the padding, which has the type of an element
        number = len(operands) - 1
        operands[number] = value("arith.extui", _of_bytes(operands[number].type), operands[number])
    read = recreated(op, [bytes_type], operands).results[0]
    truths.replace_all_uses_with(compared("ne", read, zero(bytes_type)))
    op.erase()


def _of_bytes(truths: Type) -> Type:
    """Returns a vector type, or i1 itself, with i8 in place of i1."""
    byte = ir.IntegerType.get_signless(8)
    if isinstance(truths, ir.VectorType):
        return ir.VectorType.get(truths.shape, byte)
    return byte


def read_masks_as_bytes(function: Op) -> None:
    """Changes arguments of i1 that a fusion's operations read to i8, in place, before its script runs.

    LLVM packs a vector of i1 into bits; an argument has a byte per element. Scalar loops read bytes. Raises
    CandidateError(COMPILE) where another operation than a ``linalg.generic`` reads such an argument, and for
    a result of i1.
        %m = bufferization.to_tensor %0 restrict : memref<64xi1> to tensor<64xi1>
        %r = linalg.generic {...} ins(%m, %x : tensor<64xi1>, tensor<4x64xf32>) outs(...) {
        ^bb0(%in: i1, ...):
          %s = arith.select %in, %a, %b : f32
      becomes
        %m = bufferization.to_tensor %0 restrict : memref<64xi8> to tensor<64xi8>
        %r = linalg.generic {...} ins(%m, %x : tensor<64xi8>, tensor<4x64xf32>) outs(...) {
        ^bb0(%in: i8, ...):
          %c0 = arith.constant 0 : i8
          %k = arith.cmpi ne, %in, %c0 : i8
          %s = arith.select %k, %a, %b : f32
    """
    arguments = function.regions[0].blocks[0].arguments
    masks = [argument for argument in arguments if str(argument.type.element_type) == "i1"]
    for mask in masks:
        type_ = ir.MemRefType(mask.type)
        tensors = [use.owner for use in mask.uses]
        if any(op.name != "bufferization.to_tensor" for op in tensors):
            raise _unsupported("is written")
        byte = ir.IntegerType.get_signless(8, function.context)
        mask.set_type(ir.MemRefType.get(type_.shape, byte, type_.layout, type_.memory_space))
        for op in tensors:
            _retype(op.results[0], byte)
    if masks:
        types = ir.FunctionType.get(types_of(arguments), [], function.context)
        function.attributes["function_type"] = ir.TypeAttr.get(types)


def _retype(tensor: Value, byte: ir.Type) -> None:
    users = uses_of(tensor)
    tensor.set_type(ir.RankedTensorType.get(tensor.type.shape, byte))
    for op, number in users:
        if op.name != "linalg.generic" or number >= len(op.operands) - len(op.results):
            raise _unsupported(f"is read by {op.name}")
        body = op.regions[0].blocks[0]
        argument = body.arguments[number]
        reads = uses_of(argument)
        argument.set_type(byte)
        with ir.InsertionPoint.at_block_begin(body), op.location:
            is_set = compared("ne", argument, zero(byte))
        set_operands(reads, is_set)


def _unsupported(use: str) -> CandidateError:
    return CandidateError(Stage.COMPILE, f"fusion: an argument of i1 {use}")
