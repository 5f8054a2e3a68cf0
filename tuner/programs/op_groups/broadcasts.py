"""Gives each user of a broadcast its own: a group computes it again in place of reading the larger tensor."""

from tuner.mlir.bindings import Op, ir
from tuner.programs.op_groups.op_names import (
    GENERIC,
    body_of,
    dimensions,
    inputs_of,
    is_identity,
    is_parallel,
    maps_of,
    users,
)
from tuner.programs.op_groups.payload import TensorPayload


def broadcast_for_each_user(payload: TensorPayload) -> None:
    """Clones broadcasts that several operations read, in place, so that each can join its reader's group."""
    for op in payload.ops:
        if is_broadcast(op):
            for user in users(op.results[0])[1:]:
                _give_own(op, user)


def is_broadcast(op: Op) -> bool:
    """Returns whether a generic repeats its only input along further dimensions, and computes nothing."""
    if op.name != GENERIC or len(op.results) != 1 or len(inputs_of(op)) != 1 or not all(is_parallel(op)):
        return False
    block = op.regions[0].blocks[0]
    source, result = maps_of(op)
    loops = dimensions(source)
    is_moved = len(body_of(op)) == 1 and body_of(op)[0].operands[0] == block.arguments[0]
    return is_moved and is_identity(result) and loops is not None and len(loops) < source.n_dims


def _give_own(op: Op, user: Op) -> None:
    with ir.InsertionPoint(user), op.location:
        copy = op.clone()
    for number, value in enumerate(user.operands):
        if value == op.results[0]:
            user.operands[number] = copy.results[0]
