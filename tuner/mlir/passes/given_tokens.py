"""Takes the tokens off device work that its author made asynchronous: what must wait for what is found anew.

Nothing is lost: whatever waits for a token stands behind what gave it, so the order of the text is one of
those that the tokens allow.
"""

from typing import Any

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.building import create
from tuner.mlir.passes.async_ops import is_token
from tuner.mlir.passes.buffer_accesses import DEVICE_OPS, inside
from tuner.mlir.passes.launch_operands import SEGMENTS
from tuner.mlir.unfit import place_of

WAIT = "gpu.wait"


def drop_tokens(function: Any) -> None:
    """Makes device work synchronous, in place. Raises CandidateError(COMPILE) for tokens that others use."""
    for op in reversed(list(inside(function))):  # who waits for a token before who gives it
        if op.name == WAIT or (op.name in DEVICE_OPS and _has_tokens(op)):
            _refuse_other_users(op)
            if op.name != WAIT:
                _make_synchronous(op)
            op.erase()


def _make_synchronous(op: Any) -> None:
    attributes = {name: op.attributes[name] for name in op.attributes}
    if SEGMENTS in attributes:
        sizes = list(ir.DenseI32ArrayAttr(attributes[SEGMENTS]))
        attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([0, *sizes[1:]])
    operands = [each for each in op.operands if not is_token(each)]
    results = [each.type for each in op.results if not is_token(each)]
    with op.location, ir.InsertionPoint(op):
        made = create(op.name, results, operands, **attributes)
    for index, result in enumerate(made.results):
        op.results[index].replace_all_uses_with(result)


def _has_tokens(op: Any) -> bool:
    return any(is_token(value) for value in [*op.operands, *op.results])


def _refuse_other_users(op: Any) -> None:
    for result in filter(is_token, op.results):
        for use in result.uses:
            found = f"{use.owner.name} {place_of(op)}: found a token of {op.name}"
            raise CandidateError(Stage.COMPILE, f"{found}, allowed for gpu operations in the same block")
