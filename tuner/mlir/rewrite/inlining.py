"""Replaces a call by the body of the called function.

%y = func.call @twice(%x) : (f32) -> f32
becomes
%y = arith.addf %x, %x : f32
"""

from tuner.mlir.bindings import Op, ir


def inline_call(call: Op, function: Op) -> None:
    """Replaces a call by a copy of the body of ``function``, which must have one block; erases the call."""
    copy = function.clone(ip=ir.InsertionPoint(function))
    block = copy.regions[0].blocks[0]
    for argument, operand in zip(block.arguments, call.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *body, end = [op.operation for op in block.operations]
    for op in body:
        op.move_before(call)
    for result, value in zip(call.results, end.operands, strict=True):
        result.replace_all_uses_with(value)
    call.erase()
    copy.erase()
