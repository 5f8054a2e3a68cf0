"""Reads the masks that a group takes as bytes: LLVM packs a vector of i1 into bits, memory has bytes.

Takes a group before its script runs. Arguments of i1 that operations read become arguments of i8, and the
bodies of their readers compare with zero. Scalar loops need none of this: a single i1 is read as a byte.

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

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import value

UNEQUAL, PREDICATE_BITS = 1, 64  # arith's ne, and the bits of the attribute


def read_masks_as_bytes(function: Op) -> None:
    """Changes arguments of i1 of a group's function to i8, in place.

    Raises CandidateError(COMPILE) where another operation than a ``linalg.generic`` reads one, and for a
    result of i1.
    """
    arguments = function.regions[0].blocks[0].arguments
    masks = [each for each in arguments if str(each.type.element_type) == "i1"]
    for mask in masks:
        kind = ir.MemRefType(mask.type)
        tensors = [use.owner for use in mask.uses]
        if any(op.name != "bufferization.to_tensor" for op in tensors):
            raise _unsupported("is written")
        byte = ir.IntegerType.get_signless(8, function.context)
        mask.set_type(ir.MemRefType.get(kind.shape, byte, kind.layout, kind.memory_space))
        for op in tensors:
            _retype(op.results[0], byte)
    if masks:
        types = ir.FunctionType.get([each.type for each in arguments], [], function.context)
        function.attributes["function_type"] = ir.TypeAttr.get(types)


def _retype(tensor: Value, byte: ir.Type) -> None:
    users = [(use.owner, use.operand_number) for use in tensor.uses]
    tensor.set_type(ir.RankedTensorType.get(tensor.type.shape, byte))
    for op, number in users:
        if op.name != "linalg.generic" or number >= len(op.operands) - len(op.results):
            raise _unsupported(f"is read by {op.name}")
        body = op.regions[0].blocks[0]
        argument = body.arguments[number]
        reads = [(use.owner, use.operand_number) for use in argument.uses]
        argument.set_type(byte)
        with ir.InsertionPoint.at_block_begin(body), op.location:
            zero = value("arith.constant", byte, value=ir.IntegerAttr.get(byte, 0))
            bit = ir.IntegerType.get_signless(1)
            predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(PREDICATE_BITS), UNEQUAL)
            is_set = value("arith.cmpi", bit, argument, zero, predicate=predicate)
        for owner, operand in reads:
            owner.operands[operand] = is_set


def _unsupported(what: str) -> CandidateError:
    return CandidateError(Stage.COMPILE, f"group: an argument of i1 {what}")
