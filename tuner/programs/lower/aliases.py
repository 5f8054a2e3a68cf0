"""The values that may name a buffer, and the ops that use it: a search forwards over def-use chains.

Followed are views, ``arith.select`` and structured control flow; behind work with a token also that token,
since the work goes on until it is waited for.
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value
from tuner.mlir.effects.buffer_roots import VIEWS, is_buffer
from tuner.mlir.effects.region_dataflow import BRANCHES, FOR_BOUNDS
from tuner.programs.lower.streams.async_ops import is_token

FREEING = frozenset({"memref.dealloc", "gpu.dealloc", "gpux.dealloc", "memref.realloc"})
ADDRESS = "memref.extract_aligned_pointer_as_index"


@dataclass(frozen=True)
class Aliases:
    """What is known of one buffer."""

    values: frozenset[Value]  # the memrefs that may be it or a part of it
    users: frozenset[Op]  # of those, and of the tokens of their work
    is_freed: bool  # somewhere
    is_returned: bool  # by the function
    has_address: bool  # its address is taken, so that uses may be out of sight


def aliases_of(buffer: Value) -> Aliases:
    """Searches from a buffer's definition."""
    values: set[Value] = set()
    users: dict[Op, None] = {}
    open_values = [buffer]
    while open_values:
        each = open_values.pop()
        if each in values:
            continue
        values.add(each)
        for use in each.uses:
            user = use.owner.operation
            users[user] = None
            open_values += _forwarded(user, use.operand_number)
    names = {user.name for user in users}
    freed = any(user.name in FREEING and is_buffer(user.operands[-1].type) for user in users)
    memrefs = frozenset(each for each in values if is_buffer(each.type))
    return Aliases(memrefs, frozenset(users), freed, _is_returned(users, memrefs), ADDRESS in names)


def _is_returned(users: dict[Op, None], memrefs: frozenset[Value]) -> bool:
    returns = [user for user in users if user.name == "func.return"]
    return any(operand in memrefs for user in returns for operand in user.operands)


def _forwarded(user: Op, number: int) -> list[Value]:
    """Returns the values behind one use that name the same buffer, or work on it that goes on."""
    tokens = [result for result in user.results if is_token(result)]
    if user.name in VIEWS:
        return list(user.results)[:1]
    if user.name == "arith.select":
        return list(user.results)
    if user.name == "scf.for":
        return [
            user.regions[0].blocks[0].arguments[1 + number - FOR_BOUNDS],
            user.results[number - FOR_BOUNDS],
        ]
    if user.name == "scf.while":
        return [user.regions[0].blocks[0].arguments[number]]
    if user.name in ("scf.yield", "scf.condition"):
        return _yielded(user, user.parent.operation, number)
    return tokens


def _yielded(end: Op, parent: Op, number: int) -> list[Value]:
    if parent.name in BRANCHES:
        return [parent.results[number]]
    if parent.name == "scf.for":
        return [parent.regions[0].blocks[0].arguments[1 + number], parent.results[number]]
    if parent.name == "scf.while":
        if end.name == "scf.yield":
            return [parent.regions[0].blocks[0].arguments[number]]
        return [parent.regions[1].blocks[0].arguments[number - 1], parent.results[number - 1]]
    return []
