"""Def-use edges through structured control flow: which values a result or block argument of scf ops may be.

Covers, for scf.for, scf.while, scf.if and scf.index_switch, what MLIR's ``RegionBranchOpInterface`` gives in
C++: an iter_arg is its initial value or the value that an iteration yields; a result of scf.if is the value
that either branch yields.
"""

from tuner.mlir.bindings import Block, Op, Value, ir

FOR_BOUNDS = 3  # operands of scf.for before its initial values
BRANCHES = frozenset({"scf.if", "scf.index_switch"})


def is_carried(value: Value) -> bool:
    """Returns whether ``value`` is a result or block argument to which scf control flow forwards values.

    The index of an ``scf.for`` is not.
    """
    if isinstance(value.owner, ir.Block):
        op = value.owner.owner.operation
        return bool(op.name == "scf.while" or (op.name == "scf.for" and value.arg_number > 0))
    return value.owner.operation.name in {"scf.for", "scf.while", *BRANCHES}


def sources_of(value: Value) -> list[Value]:
    """Returns the values that scf control flow may forward directly to ``value``: initial and yielded values.

    ``value`` must be a result or block argument for which ``is_carried`` is true.
    """
    if not isinstance(value.owner, ir.Block):
        return _sources_of_result(value.owner.operation, value.result_number)
    op = value.owner.owner.operation
    if op.name == "scf.for":
        return _initial_and_yielded(op, value.arg_number - 1)
    if value.owner == op.regions[0].blocks[0]:
        return [op.operands[value.arg_number], terminator_of(op, 1).operands[value.arg_number]]
    return [terminator_of(op, 0).operands[1 + value.arg_number]]


def terminator_of(op: Op, region: int) -> Op:
    """Returns the last op of the only block of the op's region number ``region``, counted from 0."""
    return last_of(op.regions[region].blocks[0])


def last_of(block: Block) -> Op:
    """Returns the last op of a block, which is its terminator where the block has one."""
    return block.operations[len(block.operations) - 1].operation


def _sources_of_result(op: Op, number: int) -> list[Value]:
    if op.name == "scf.for":
        return _initial_and_yielded(op, number)
    if op.name == "scf.while":
        return [terminator_of(op, 0).operands[1 + number]]
    return [terminator_of(op, region).operands[number] for region in range(len(op.regions))]


def _initial_and_yielded(loop: Op, number: int) -> list[Value]:
    """Returns the initial value of iter_arg ``number`` of an scf.for, and the value yielded for it."""
    return [loop.operands[FOR_BOUNDS + number], terminator_of(loop, 0).operands[number]]
