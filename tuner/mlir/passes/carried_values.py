"""What flows into a value through structured control flow: initial values, what turns and branches yield."""

from typing import Any

from tuner.mlir.bindings import ir

FOR_BOUNDS = 3  # operands of scf.for before its initial values
BRANCHES = frozenset({"scf.if", "scf.index_switch"})


def is_carried(value: Any) -> bool:
    """Tells whether a value is a result or a block argument that control flow hands on."""
    if isinstance(value.owner, ir.Block):
        op = value.owner.owner.operation
        return bool(op.name == "scf.while" or (op.name == "scf.for" and value.arg_number > 0))
    return value.owner.operation.name in {"scf.for", "scf.while", *BRANCHES}


def sources_of(value: Any) -> list[Any]:
    """Returns the values that a carried one may be, each one step back."""
    if not isinstance(value.owner, ir.Block):
        return _sources_of_result(value.owner.operation, value.result_number)
    op = value.owner.owner.operation
    if op.name == "scf.for":
        return _turns(op, value.arg_number - 1)
    if value.owner == op.regions[0].blocks[0]:
        return [op.operands[value.arg_number], terminator_of(op, 1).operands[value.arg_number]]
    return [terminator_of(op, 0).operands[1 + value.arg_number]]


def terminator_of(op: Any, region: int) -> Any:
    """Returns the last operation of a region's only block."""
    return last_of(op.regions[region].blocks[0])


def last_of(block: Any) -> Any:
    """Returns the last operation of a block."""
    return block.operations[len(block.operations) - 1].operation


def _sources_of_result(op: Any, number: int) -> list[Any]:
    if op.name == "scf.for":
        return _turns(op, number)
    if op.name == "scf.while":
        return [terminator_of(op, 0).operands[1 + number]]
    return [terminator_of(op, region).operands[number] for region in range(len(op.regions))]


def _turns(loop: Any, number: int) -> list[Any]:
    return [loop.operands[FOR_BOUNDS + number], terminator_of(loop, 0).operands[number]]
