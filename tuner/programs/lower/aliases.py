"""Finds the values that may alias a buffer, and the operations that use them, by following def-use chains.

Followed are views, ``arith.select`` and structured control flow. The token of asynchronous work is followed
too, because the work may use the buffer until its token is waited for.
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
    """The memrefs that may share memory with one buffer, their users, and whether it is freed or returned."""

    values: frozenset[Value]  # memrefs that may be the buffer or a part of it
    users: frozenset[Op]  # users of these memrefs, and of the tokens of asynchronous work on the buffer
    is_freed: bool  # by any operation
    is_returned: bool  # by the function
    has_address: bool  # the address is taken, so that there may be uses that no def-use chain shows


def aliases_of(buffer: Value) -> Aliases:
    """Returns the memrefs that may be ``buffer`` or a part of it, with their users.

    Follows uses from the definition through views, ``arith.select`` and scf; ``buffer`` is the memref that
    the allocation, or the block argument, defines.
    """
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
    """Returns what one use of the buffer results in: aliases, or tokens of work on the buffer."""
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
