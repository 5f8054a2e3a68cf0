"""Masks on the CPU: i1 arguments of a fusion as bytes, masked vectors of i1, and masked reductions.

``read_masks_as_bytes`` runs before the script of a fusion, ``leave_one_op_in_masks`` before tensors that a
script leaves become buffers, the other passes before the conversion to LLVM dialect.
"""

import math
from collections.abc import Sequence

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.ir.building import compared, create, value
from tuner.mlir.ir.reading import ops_in, set_operands, types_of, uses_of, walk, walk_where

NEUTRAL = {
    f"#vector.kind<{name}>": number
    for names, number in ((("maximumf", "maxnumf"), -math.inf), (("minimumf", "minnumf"), math.inf))
    for name in names
}
READ = "vector.transfer_read"
WRITE = "vector.transfer_write"


def fill_masked_lanes(module: ir.Module) -> None:
    """Gives masked-off lanes of reductions to a maximum or minimum the neutral infinity, in place.

    Upstream's ``convert-vector-to-llvm`` puts a number of the least magnitude, -1.4e-45 for a maximum of f32,
    into these lanes, which is wrong for a row of negative numbers shorter than a vector.
        %r = vector.mask %m { vector.reduction <maximumf>, %v, %a : ... } : vector<4xi1> -> f32
      becomes
        %neutral = arith.constant dense<0xFF800000> : vector<4xf32>
        %s = arith.select %m, %v, %neutral : vector<4xi1>, vector<4xf32>
        %r = vector.reduction <maximumf>, %s, %a : vector<4xf32> into f32
    """
    for mask in walk(module, "vector.mask"):
        inner = next(iter(mask.regions[0].blocks[0].operations)).operation
        if inner.name == "vector.reduction" and str(inner.attributes["kind"]) in NEUTRAL:
            number = NEUTRAL[str(inner.attributes["kind"])]
            vector = inner.operands[0]
            with mask.location, ir.InsertionPoint(mask):
                splat = ir.DenseElementsAttr.get_splat(
                    vector.type, ir.FloatAttr.get(vector.type.element_type, number)
                )
                neutral = value("arith.constant", vector.type, value=splat)
                chosen = value("arith.select", vector.type, mask.operands[0], vector, neutral)
                plain = inner.clone()
                plain.operands[0] = chosen
            mask.results[0].replace_all_uses_with(plain.results[0])
            mask.erase()


def leave_one_op_in_masks(module: ir.Module) -> None:
    """Moves out of each ``vector.mask`` what upstream's canonicalization has moved into it, in place.

    A mask holds one op; with a ``tensor.cast`` behind it MLIR refuses the module.
        %r = vector.mask %m { %w = vector.transfer_write %v, %t[%i]; %c = tensor.cast %w; vector.yield %c }
      becomes
        %w = vector.mask %m { vector.transfer_write %v, %t[%i] }
        %r = tensor.cast %w
    """
    for mask in walk(module, "vector.mask"):
        first, *others = ops_in(mask.regions[0].blocks[0])
        *moved, end = others or [first]
        if not moved:
            continue
        with mask.location, ir.InsertionPoint(mask):
            types = types_of(first.results)
            new = ir.Operation.create("vector.mask", results=types, operands=list(mask.operands), regions=1)
            inner = new.regions[0].blocks.append()
        for old, result in zip(mask.results, end.operands, strict=True):
            old.replace_all_uses_with(result)
        for op in moved:
            op.move_before(mask)
        for old, result in zip(first.results, new.results, strict=True):
            old.replace_all_uses_with(result)
        inner.append(first)
        with mask.location, ir.InsertionPoint(inner):
            create("vector.yield", [], list(first.results))
        mask.erase()


def unmask_truths(module: ir.Module) -> None:
    """Replaces masked reads and writes of vectors of i1 by plain ones, in place.

    LLVM stores a vector of i1 as bits, but by a masked store as a byte per element, so that a masked read of
    what a plain write stored is wrong. Plain accesses of whole vectors are safe: the buffers of a fusion fill
    whole cache lines of the stack.
        %r = vector.transfer_read %b[%i], %p, %m : memref<32xi1>, vector<16xi1>
        vector.transfer_write %v, %b[%i], %m : vector<16xi1>, memref<32xi1>
      becomes
        %all = vector.transfer_read %b[%i], %p : memref<32xi1>, vector<16xi1>
        %r = arith.select %m, %all, %pads
        %old = vector.transfer_read %b[%i], %p : memref<32xi1>, vector<16xi1>
        %new = arith.select %m, %v, %old
        vector.transfer_write %new, %b[%i] : vector<16xi1>, memref<32xi1>
    """
    for op in walk_where(module, _is_masked):
        with ir.InsertionPoint(op), op.location:
            (_unmask_read if op.name == READ else _unmask_write)(op)
        op.erase()


def _is_masked(op: Op) -> bool:
    if op.name not in (READ, WRITE) or not list(op.attributes["operandSegmentSizes"])[-1]:
        return False
    vector = op.results[0] if op.name == READ else op.operands[0]
    return str(ir.VectorType(vector.type).element_type) == "i1"


def _unmask_read(op: Op) -> None:
    memory, *indices, padding, mask = op.operands
    type_ = op.results[0].type
    every = _read(op, type_, memory, indices, padding)
    pads = value("vector.broadcast", type_, padding)
    op.results[0].replace_all_uses_with(value("arith.select", type_, mask, every, pads))


def _unmask_write(op: Op) -> None:
    vector, memory, *indices, mask = op.operands
    truth = ir.IntegerType.get_signless(1)
    padding = value("arith.constant", truth, value=ir.IntegerAttr.get(truth, 0))
    before = _read(op, vector.type, memory, indices, padding)
    chosen = value("arith.select", vector.type, mask, vector, before)
    segments = ir.DenseI32ArrayAttr.get([1, 1, len(indices), 0])
    create(WRITE, [], [chosen, memory, *indices], operandSegmentSizes=segments, **_kept(op))


def _read(op: Op, type_: Type, memory: Value, indices: Sequence[Value], padding: Value) -> Value:
    segments = ir.DenseI32ArrayAttr.get([1, len(indices), 1, 0])
    return value(READ, type_, memory, *indices, padding, operandSegmentSizes=segments, **_kept(op))


def _kept(op: Op) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in ("in_bounds", "permutation_map")}


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
            zero = value("arith.constant", byte, value=ir.IntegerAttr.get(byte, 0))
            is_set = compared("ne", argument, zero)
        set_operands(reads, is_set)


def _unsupported(use: str) -> CandidateError:
    return CandidateError(Stage.COMPILE, f"fusion: an argument of i1 {use}")
