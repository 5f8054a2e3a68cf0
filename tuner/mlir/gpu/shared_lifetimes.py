"""Live ranges of a kernel's shared-memory buffers, as far as barriers prove them.

An analysis of outlined kernels that changes nothing: live intervals of one basic block, as in linear-scan
register allocation (Poletto and Sarkar 1999). Positions count the ops of the kernel's only block; a nested op
has the position of its outermost parent. A buffer is free after a barrier that follows its last use, since
other threads may lag until then; a barrier in a loop or a branch proves nothing. Buffers with a use that is
not listed here, and all buffers of a kernel of several blocks, are live all the time.
"""

import math
from dataclasses import dataclass

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.buffer_roots import VIEWS
from tuner.mlir.rewrite.walking import walk

# Ops whose accesses are complete when the op is.
SYNCHRONOUS = frozenset(
    {
        *("memref.load", "memref.store", "memref.atomic_rmw", "memref.dealloc"),
        *("vector.load", "vector.store", "vector.maskedload", "vector.maskedstore"),
        *("vector.transfer_read", "vector.transfer_write"),
        *("nvgpu.ldmatrix", "gpu.subgroup_mma_load_matrix", "gpu.subgroup_mma_store_matrix"),
    }
)
ASYNC_COPY, ASYNC_GROUP, ASYNC_WAIT = (
    f"nvgpu.device_async_{name}" for name in ("copy", "create_group", "wait")
)
ALWAYS = math.inf


@dataclass(frozen=True)
class Lifetime:
    """The interval in which a shared-memory buffer is in use, in positions of ops in the kernel's block."""

    first: float  # the first use; -inf where unknown
    freed: float  # a barrier after which no thread and no copy accesses the buffer; inf if there is none

    def overlaps(self, other: "Lifetime") -> bool:
        """Returns whether the buffers of both intervals may be in use at the same time."""
        return not (self.freed < other.first or other.freed < self.first)


class SharedMemoryLiveness:
    """Computes when each shared-memory buffer of one ``gpu.func`` is in use, as far as barriers prove it."""

    def __init__(self, function: Op) -> None:
        """Numbers the ops of the kernel, and finds its barriers and waits."""
        blocks = list(function.regions[0].blocks)
        self._is_straight = len(blocks) == 1
        self._block = blocks[0]
        self._top = [op.operation for op in blocks[0].operations]
        self._position = {op: index for index, op in enumerate(self._top)}
        self._groups = [self._position_of(op) for op in walk(function, ASYNC_GROUP)]
        self._waits = [index for index, op in enumerate(self._top) if _waits_for_all(op)]
        self._barriers = [index for index, op in enumerate(self._top) if _orders_shared_memory(op)]

    def lifetime(self, buffer: Value) -> Lifetime:
        """Returns the interval in which ``buffer``, a memref in workgroup memory, is in use.

        From -inf to inf where that is not known; from inf to -inf for a buffer without uses, which overlaps
        only an interval that is not known.
        """
        users = _users(buffer)
        if not self._is_straight or users is None:
            return Lifetime(-ALWAYS, ALWAYS)
        uses = [op for op in users if op.name != "memref.dealloc"]
        if not uses:
            return Lifetime(ALWAYS, -ALWAYS)
        positions = [self._position_of(op) for op in uses]
        copies = [self._position_of(op) for op in uses if op.name == ASYNC_COPY]
        complete: float = max(positions)
        if copies:
            complete = max(complete, self._copied_by(max(copies)))
        return Lifetime(min(positions), min((at for at in self._barriers if at > complete), default=ALWAYS))

    def _copied_by(self, copy: float) -> float:
        """Returns the first wait after which all async copies up to position ``copy`` are complete."""
        closed = min((at for at in self._groups if at >= copy), default=ALWAYS)
        return min((at for at in self._waits if at > closed), default=ALWAYS)

    def _position_of(self, op: Op) -> int:
        while op not in self._position:
            op = op.parent
        return self._position[op]


def _users(buffer: Value) -> list[Op] | None:
    """Returns all ops that use the buffer, also through views; None if one of them is not listed."""
    users: list[Op] = []
    for use in buffer.uses:
        op = use.owner.operation
        if op.name in VIEWS:
            through = _users(op.results[0])
            if through is None:
                return None
            users.extend([op, *through])
        elif op.name in SYNCHRONOUS or op.name == ASYNC_COPY:
            users.append(op)
        else:
            return None
    return users


def _orders_shared_memory(op: Op) -> bool:
    """Returns whether an op is a barrier of the whole block that makes writes to shared memory visible."""
    if op.name != "gpu.barrier" or len(op.operands):
        return False
    fenced = op.attributes.get("address_spaces")
    return fenced is None or "workgroup" in str(fenced)


def _waits_for_all(op: Op) -> bool:
    if op.name != ASYNC_WAIT:
        return False
    allowed = op.attributes.get("numGroups")
    return allowed is None or ir.IntegerAttr(allowed).value == 0
