"""Finds the values that may hold the address of a buffer, and the operations that use them.

The closure of ``address_flow`` forwards, from the definition of the buffer. The token of asynchronous work is
followed too, because the work may use the buffer until its token is waited for.
"""

from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value
from tuner.mlir.effects.address_flow import handed_on, is_buffer, is_token
from tuner.mlir.effects.region_dataflow import targets_of
from tuner.mlir.rewrite.walking import parents_of

FREEING = frozenset({"memref.dealloc", "gpu.dealloc", "gpux.dealloc", "memref.realloc"})


@dataclass(frozen=True)
class Aliases:
    """The values that may hold one buffer's address, their users, and whether it is freed, returned, kept."""

    values: frozenset[Value]  # memrefs, descriptors, integers, pointers, ...; without tokens
    users: frozenset[Op]  # users of these values, and of the tokens of asynchronous work on the buffer
    is_freed: bool  # by any operation
    is_returned: bool  # by the function, as a memref
    is_kept: bool  # the address may be in memory, so that there may be uses that no def-use chain shows


def aliases_of(buffer: Value) -> Aliases:
    """Returns the values that may hold the address of ``buffer`` or of a part of it, with their users.

    Follows uses from the definition, through everything that ``address_flow`` knows; ``buffer`` is the memref
    that the allocation, or the block argument, defines.
    """
    values: set[Value] = set()
    users: dict[Op, None] = {}
    is_kept = False
    open_values = [buffer]
    while open_values:
        each = open_values.pop()
        if each in values:
            continue
        values.add(each)
        for use in each.uses:
            user = use.owner.operation
            users[user] = None
            open_values += _tokens(user)
            if is_token(each):
                open_values += targets_of(user, use.operand_number) or []
                continue
            found = handed_on(user, use.operand_number)
            open_values += found.values
            is_kept = is_kept or found.is_kept
    freed = any(user.name in FREEING and is_buffer(user.operands[-1].type) for user in users)
    held = frozenset(each for each in values if not is_token(each))
    return Aliases(held, frozenset(users), freed, _is_returned(users, held), is_kept)


def _tokens(user: Op) -> list[Value]:
    """Returns the tokens of the work that a user is, or is in the kernel of."""
    launches = (each for each in parents_of(user) if each.name == "gpu.launch")
    return [result for op in (user, *launches) for result in op.results if is_token(result)]


def _is_returned(users: dict[Op, None], values: frozenset[Value]) -> bool:
    returns = [user for user in users if user.name == "func.return"]
    return any(each in values and is_buffer(each.type) for user in returns for each in user.operands)
