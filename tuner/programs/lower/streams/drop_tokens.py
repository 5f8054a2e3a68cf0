"""Drops async tokens: device work becomes synchronous, and what must wait for what is found anew later.

Takes GPU dialect with tokens; gives it without, ``gpu.wait`` erased. The order of the text is one that the
tokens allow: an op that takes a token stands behind the op that returns it. Tokens that scf hands on, as
iter_args of a loop, go with it. Rejected: tokens that other ops take, such as arith.select.

    %t = gpu.wait async
    %u = gpu.memcpy async [%t] %b, %a : memref<4xf32>, memref<4xf32>
    gpu.wait [%u]
  becomes
    gpu.memcpy %b, %a : memref<4xf32>, memref<4xf32>
"""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir, passmanager
from tuner.mlir.effects.buffer_accesses import DEVICE_OPS, inside
from tuner.mlir.rewrite.building import create
from tuner.mlir.rewrite.definitions import attributes_of
from tuner.mlir.rewrite.launch_operands import SEGMENTS
from tuner.mlir.rewrite.located_error import location_of
from tuner.programs.lower.streams.async_ops import ASYNC, is_token

WAIT = "gpu.wait"
CARRIERS = frozenset({"scf.for", "scf.while", "scf.if", "scf.index_switch", "scf.yield", "scf.condition"})


def drop_tokens(function: Op) -> None:
    """Makes device work synchronous, in place. Raises CandidateError(COMPILE) for tokens that others use."""
    _forget_carried(function)
    for op in reversed(list(inside(function))):  # users of a token before the op that returns it
        if op.name == WAIT or (op.name in DEVICE_OPS and _has_tokens(op)):
            _refuse_other_users(op)
            if op.name != WAIT:
                _make_synchronous(op)
            op.erase()


def _forget_carried(function: Op) -> None:
    """Lets structured control flow hand on one token that nothing makes, which is then folded away."""
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
    """Lets device work depend on no token that control flow handed it."""
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
