"""Finds the op of a script that fails, where MLIR's diagnostic names only the payload op that it failed on.

The ops of the entry sequence run one after another. A binary search over its prefixes finds the shortest
prefix that fails to apply; the last op of that prefix is the failing one.
"""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.interpreter import apply_script, entry_sequence, new_context, parse
from tuner.mlir.op_place import SCRIPT, OpPlace


def failing_op(script: str, payload: str) -> OpPlace | None:
    """Returns which top-level op of a transform script fails on a payload, and its place in the script.

    ``script`` and ``payload`` are MLIR text. A binary search finds the shortest prefix of the script's entry
    sequence that fails; its last op is the failing one. Returns None for a script that applies, does not
    parse, has no entry sequence, or has a pass that is refused since it writes files, starts programs or
    prints. Raises CandidateError(BIND) for a payload that does not parse.
    """
    with new_context(), ir.Location.unknown():
        try:
            bound = parse(script, SCRIPT)
            block = entry_sequence(bound).regions[0].blocks[0]
        except CandidateError:
            return None
        ops = [op.operation for op in block.operations]
        applied, failing = 0, len(ops) - 1  # lengths of prefixes; the last op is transform.yield
        if not _fails(script, payload, failing):
            return None
        while failing - applied > 1:
            middle = (applied + failing) // 2
            if _fails(script, payload, middle):
                failing = middle
            else:
                applied = middle
        at = ops[failing - 1].location
        assert isinstance(at, ir.FileLineColLoc)  # the script was parsed from text above
        return OpPlace(SCRIPT, ops[failing - 1].name, at.start_line, at.start_col)


def _fails(script: str, payload: str, count: int) -> bool:
    """Returns whether the first ``count`` ops of a script fail to apply to the payload."""
    module, bound = parse(payload, "payload"), parse(script, SCRIPT)
    block = entry_sequence(bound).regions[0].blocks[0]
    for op in reversed(list(block.operations)[count:]):  # users of a value come after its definition
        op.operation.erase()
    ir.Operation.create("transform.yield", ip=ir.InsertionPoint(block))
    try:
        apply_script(module, bound)
    except CandidateError as error:
        return error.stage is Stage.COMPILE
    return False
