"""``tuner.insert_barriers``: the barriers of a loop that fills shared memory and reads it again."""

import itertools
from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import create
from tuner.mlir.ops.dialect import InPlaceOp, attribute, walk
from tuner.mlir.types import is_workgroup

WRITES = ("vector.transfer_write", "vector.store", "memref.store")
COPIES = ("linalg.copy", "memref.copy")


class InsertBarriersOp(InPlaceOp, name="insert_barriers"):
    """Inserts ``gpu.barrier`` into every ``scf.for`` whose body itself writes shared memory.

    One behind the last such write. With ``loop_top = 1`` (i64, 0 unless given) another at the top of the
    body: needed where a tile may still be read when the next one is written to the same place, that is
    unless the loop is pipelined over more buffers than its depth. The handle (a func.func) stays valid.
    Silenceable failure: no loop writes shared memory.
    """

    def change(self, function: Any) -> str | None:
        """Changes one function."""
        loops = [(loop, _writes(loop)) for loop in walk(function, "scf.for")]
        filling = [(loop, writes) for loop, writes in loops if writes]
        if not filling:
            return f"found {len(loops)} loops, allowed one that writes shared memory"
        for loop, writes in filling:
            _insert(loop, writes[-1], attribute(self, "loop_top", 0) == 1)
        return None


def _writes(loop: Any) -> list[Any]:
    body = [op.operation for op in loop.regions[0].blocks[0].operations]
    return [
        op for op in body if op.name in WRITES + COPIES and is_workgroup(ir.MemRefType(op.operands[1].type))
    ]


def _insert(loop: Any, last_write: Any, at_top: bool) -> None:
    body = list(loop.regions[0].blocks[0].operations)
    behind = next(op for before, op in itertools.pairwise(body) if before.operation == last_write)
    with loop.location:
        with ir.InsertionPoint(behind):
            create("gpu.barrier")
        if at_top:
            with ir.InsertionPoint(body[0]):
                create("gpu.barrier")
