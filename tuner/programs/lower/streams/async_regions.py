"""Inlines the bodies of ``async.execute``; dependences between the inlined operations are computed later.

Takes a function with regions of the async dialect; removes the regions. Program order is one of the orders
that their tokens allow, because a region follows the regions that it depends on. Rejected: other operations
of the async dialect, such as groups, and async values that control flow forwards.

    %t, %f = async.execute -> !async.value<memref<4xf32>> {
      %0 = gpu.alloc () : memref<4xf32>
      async.yield %0 : memref<4xf32>
    }
    %1 = async.await %f : !async.value<memref<4xf32>>
  becomes
    %0 = gpu.alloc () : memref<4xf32>
"""

from tuner.mlir.bindings import Op, Value
from tuner.mlir.effects.region_dataflow import last_of
from tuner.mlir.rewrite.located_error import unsupported
from tuner.mlir.rewrite.walking import walk, walk_where

EXECUTE, AWAIT = "async.execute", "async.await"
ALLOWED = f"{EXECUTE}, {AWAIT} and async.yield, in one block"


def inline_async_regions(function: Op) -> None:
    """Replaces each ``async.execute`` of a function by the operations in its body, in place.

    Raises CandidateError(COMPILE) for other operations of the async dialect than async.execute, async.await
    and async.yield, and for async values that control flow forwards.
    """
    found = walk(function, EXECUTE, AWAIT)  # inner regions first
    made: dict[Value, Value] = {}  # value of the async dialect -> the plain value
    for op in found:
        if op.name == EXECUTE:
            _move_body(op, made)
        elif list(op.results):
            if op.operands[0] not in made:
                raise unsupported(op, "a value that control flow hands on", ALLOWED)
            op.results[0].replace_all_uses_with(made[op.operands[0]])
    for op in reversed(found):
        _refuse_users(op)
        op.erase()
    left = walk_where(function, lambda op: op.name.startswith("async."))
    if left:
        raise unsupported(left[0], left[0].name, ALLOWED)


def _move_body(op: Op, made: dict[Value, Value]) -> None:
    block = op.regions[0].blocks[0]
    given = list(op.operands)[len(op.operands) - len(block.arguments) :]  # the operands after the tokens
    for argument, operand in zip(block.arguments, given, strict=True):
        if operand not in made:
            raise unsupported(op, "a value that control flow hands on", ALLOWED)
        argument.replace_all_uses_with(made[operand])
    end = last_of(block)
    made.update(zip(list(op.results)[1:], list(end.operands), strict=True))
    for inner in list(block.operations)[:-1]:
        inner.operation.move_before(op)


def _refuse_users(op: Op) -> None:
    for result in op.results:
        for use in result.uses:
            raise unsupported(use.owner.operation, f"a token or value of {op.name}", ALLOWED)
