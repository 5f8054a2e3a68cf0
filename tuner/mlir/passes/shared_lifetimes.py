"""When a kernel's shared-memory buffers are in use, as far as barriers prove it.

Positions count the operations of the kernel's only block; what is nested counts as its outermost parent.
A barrier counts only there: one in a loop or a branch proves nothing. What an operation that is not listed
here touches, and everything in a kernel of several blocks, is taken to be in use all the time.
"""

import math
from dataclasses import dataclass
from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk

# Done with the buffer when they are done.
SYNCHRONOUS = frozenset(
    {
        *("memref.load", "memref.store", "memref.atomic_rmw", "memref.dealloc"),
        *("vector.load", "vector.store", "vector.maskedload", "vector.maskedstore"),
        *("vector.transfer_read", "vector.transfer_write"),
        *("nvgpu.ldmatrix", "gpu.subgroup_mma_load_matrix", "gpu.subgroup_mma_store_matrix"),
    }
)
# Other names of the same memory.
VIEWS = frozenset(
    {
        *("memref.subview", "memref.cast", "memref.view", "memref.reinterpret_cast", "memref.transpose"),
        *("memref.expand_shape", "memref.collapse_shape", "memref.memory_space_cast"),
    }
)
ASYNC_COPY, ASYNC_GROUP, ASYNC_WAIT = (
    f"nvgpu.device_async_{name}" for name in ("copy", "create_group", "wait")
)
ALWAYS = math.inf


@dataclass(frozen=True)
class Lifetime:
    """Where in its kernel a buffer holds something."""

    first: float  # position of the first use; -inf where unknown
    freed: float  # position of a barrier after which no thread and no copy touches it; inf if there is none

    def overlaps(self, other: "Lifetime") -> bool:
        """Tells whether both may hold something at one time."""
        return not (self.freed < other.first or other.freed < self.first)


class Kernel:
    """The operations of one ``gpu.func`` in order."""

    def __init__(self, function: Any) -> None:
        """Numbers what the lifetimes are counted in."""
        blocks = list(function.regions[0].blocks)
        self._is_straight = len(blocks) == 1
        self._block = blocks[0]
        self._top = [op.operation for op in blocks[0].operations]
        self._position = {op: index for index, op in enumerate(self._top)}
        self._groups = [self._place(op) for op in walk(function, ASYNC_GROUP)]
        self._waits = [index for index, op in enumerate(self._top) if _waits_for_all(op)]
        self._barriers = [index for index, op in enumerate(self._top) if _orders_shared_memory(op)]

    def lifetime(self, buffer: Any) -> Lifetime:
        """Returns when a buffer (a value of workgroup memory) is in use."""
        users = _users(buffer)
        if not self._is_straight or users is None:
            return Lifetime(-ALWAYS, ALWAYS)
        uses = [op for op in users if op.name != "memref.dealloc"]
        if not uses:
            return Lifetime(ALWAYS, -ALWAYS)
        places = [self._place(op) for op in uses]
        copies = [self._place(op) for op in uses if op.name == ASYNC_COPY]
        quiet: float = max(places)
        if copies:
            quiet = max(quiet, self._landed(max(copies)))
        return Lifetime(min(places), min((at for at in self._barriers if at > quiet), default=ALWAYS))

    def _landed(self, copy: float) -> float:
        """Returns the position of a wait that no copy issued up to ``copy`` outlives."""
        closed = min((at for at in self._groups if at >= copy), default=ALWAYS)
        return min((at for at in self._waits if at > closed), default=ALWAYS)

    def _place(self, op: Any) -> int:
        while op not in self._position:
            op = op.parent
        return self._position[op]


def _users(buffer: Any) -> list[Any] | None:
    """Returns all that touches the buffer, through views as well; None when something unknown does."""
    users: list[Any] = []
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


def _orders_shared_memory(op: Any) -> bool:
    """A barrier of the whole block that makes writes to shared memory visible."""
    if op.name != "gpu.barrier" or len(op.operands):
        return False
    fenced = op.attributes.get("address_spaces")
    return fenced is None or "workgroup" in str(fenced)


def _waits_for_all(op: Any) -> bool:
    if op.name != ASYNC_WAIT:
        return False
    allowed = op.attributes.get("numGroups")
    return allowed is None or ir.IntegerAttr(allowed).value == 0
