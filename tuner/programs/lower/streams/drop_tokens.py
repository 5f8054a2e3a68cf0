"""Removes async tokens: device work becomes synchronous, and dependences are computed again later.

Takes GPU dialect with tokens; removes the tokens and erases ``gpu.wait``. Program order is one of the orders
that the tokens allow, because an operation that takes a token follows the operation that returns it. Tokens
that scf forwards, such as iter_args of a loop, are removed as well. Rejected: tokens used by other
operations, such as arith.select.

    %t = gpu.wait async
    %u = gpu.memcpy async [%t] %b, %a : memref<4xf32>, memref<4xf32>
    gpu.wait [%u]
  becomes
    gpu.memcpy %b, %a : memref<4xf32>, memref<4xf32>
"""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir, passmanager
from tuner.mlir.effects.address_flow import ASYNC, is_token
from tuner.mlir.effects.buffer_accesses import DEVICE_OPS, inside
from tuner.mlir.rewrite.building import create
from tuner.mlir.rewrite.definitions import attributes_of
from tuner.mlir.rewrite.launch_operands import SEGMENTS
from tuner.mlir.rewrite.located_error import location_of

WAIT = "gpu.wait"
CARRIERS = frozenset({"scf.for", "scf.while", "scf.if", "scf.index_switch", "scf.yield", "scf.condition"})


def drop_tokens(function: Op) -> None:
    """Makes a function's device work synchronous in place: removes async tokens and ``gpu.wait``.

    Raises CandidateError(COMPILE) if an operation other than GPU work and scf uses a token.
    """
    _forget_carried(function)
    for op in reversed(list(inside(function))):  # users of a token before the operation that returns it
        if op.name == WAIT or (op.name in DEVICE_OPS and _has_tokens(op)):
            _refuse_other_users(op)
            if op.name != WAIT:
                _make_synchronous(op)
            op.erase()


def _forget_carried(function: Op) -> None:
    """Replaces all tokens that structured control flow forwards by one poison token, which is then folded."""
    uses = [
        use
        for op in inside(function)
        for result in op.results
        if is_token(result)
        for use in result.uses
        if use.owner.name in CARRIERS
    ]
    if not uses:
        return
    block = function.regions[0].blocks[0]
    with function.location, ir.InsertionPoint.at_block_begin(block):
        nothing = create("ub.poison", [ir.Type.parse(ASYNC)], value=ir.Attribute.parse("#ub.poison"))
    for use in uses:
        use.owner.operands[use.operand_number] = nothing.results[0]
    for op in list(inside(function)):
        if op.name == WAIT or op.name in DEVICE_OPS:
            _forget_tokens_of_carriers(op, nothing.results[0])
    passmanager.PassManager.parse("func.func(canonicalize)").run(function)


def _forget_tokens_of_carriers(op: Op, nothing: Value) -> None:
    """Removes the dependence of device work on tokens that control flow forwards."""
    for number, each in enumerate(op.operands):
        if is_token(each) and (isinstance(each.owner, ir.Block) or each.owner.name in CARRIERS):
            op.operands[number] = nothing


def _make_synchronous(op: Op) -> None:
    attributes = attributes_of(op)
    if SEGMENTS in attributes:
        sizes = list(ir.DenseI32ArrayAttr(attributes[SEGMENTS]))
        attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([0, *sizes[1:]])
    operands = [each for each in op.operands if not is_token(each)]
    results = [each.type for each in op.results if not is_token(each)]
    with op.location, ir.InsertionPoint(op):
        made = create(op.name, results, operands, **attributes)
    for index, result in enumerate(made.results):
        op.results[index].replace_all_uses_with(result)


def _has_tokens(op: Op) -> bool:
    return any(is_token(value) for value in [*op.operands, *op.results])


def _refuse_other_users(op: Op) -> None:
    for result in filter(is_token, op.results):
        for use in result.uses:
            found = f"{use.owner.name} {location_of(op)}: found a token of {op.name}"
            raise CandidateError(Stage.COMPILE, f"{found}, allowed for gpu operations in the same block")
