"""Def-use edges through structured control flow: which values a result or block argument of scf ops may be.

Covers, for scf.for, scf.while, scf.if and scf.index_switch, what MLIR's ``RegionBranchOpInterface`` gives in
C++: an iter_arg is its initial value or the value that an iteration yields; a result of scf.if is the value
that either branch yields. ``targets_of`` gives the same edges forwards.
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


def targets_of(op: Op, number: int) -> list[Value] | None:
    """Returns the values to which control flow may forward operand ``number`` of ``op``, directly.

    Those are results and block arguments. None where ``op`` neither has regions nor ends a block. Exact for
    the ops of this module; any other op with regions, and the ops that end blocks in it, may forward each
    operand to all of its results and block arguments, but linalg and gpu.launch forward none.
    """
    if op.name == "scf.for":
        arguments = op.regions[0].blocks[0].arguments
        carried = number - FOR_BOUNDS
        return [arguments[0]] if carried < 0 else [arguments[1 + carried], op.results[carried]]
    if op.name == "scf.while":
        return [op.regions[0].blocks[0].arguments[number]]
    if op.name.startswith("linalg.") or op.name in ("gpu.launch", *BRANCHES):
        return []
    if list(op.successors):
        return [argument for block in op.successors for argument in block.arguments]
    if list(op.regions):
        return _all_targets(op)
    if list(op.results) or op != last_of(op.block):
        return None
    return _targets_of_yield(op, op.parent.operation, number)


def _targets_of_yield(end: Op, parent: Op, number: int) -> list[Value]:
    if parent.name in BRANCHES:
        return [parent.results[number]]
    if parent.name == "scf.for":
        return [parent.regions[0].blocks[0].arguments[1 + number], parent.results[number]]
    if parent.name == "scf.while":
        if end.name == "scf.yield":
            return [parent.regions[0].blocks[0].arguments[number]]
        left = number - 1  # operand 0 is the condition
        return [parent.regions[1].blocks[0].arguments[left], parent.results[left]] if number else []
    return [] if parent.name.endswith(".func") else _all_targets(parent)


def _all_targets(op: Op) -> list[Value]:
    blocks = [block for region in op.regions for block in region.blocks]
    return [*op.results, *(argument for block in blocks for argument in block.arguments)]


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
