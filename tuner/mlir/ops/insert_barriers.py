"""``tuner.insert_barriers``: barriers between writes of a tile in shared memory and reads by other threads.

Takes a function whose loops fill shared memory and then read it. Inserts a barrier after the last write in
each such loop's body, and one at its top where requested. Not handled: writes nested deeper in the body.

    scf.for %i = %c0 to %c64 step %c4 {
      vector.store %x, %tile[%c4] : memref<4xf32, #gpu.address_space<workgroup>>, vector<2xf32>
      %y = vector.load %tile[%c4] : memref<4xf32, #gpu.address_space<workgroup>>, vector<2xf32>
  with loop_top = 1 becomes
    scf.for %i = %c0 to %c64 step %c4 {
      gpu.barrier
      vector.store %x, %tile[%c4] : memref<4xf32, #gpu.address_space<workgroup>>, vector<2xf32>
      gpu.barrier
      %y = vector.load %tile[%c4] : memref<4xf32, #gpu.address_space<workgroup>>, vector<2xf32>
"""

import itertools

from tuner.mlir.bindings import Op, ir
from tuner.mlir.ops.dialect import InPlaceOp, attribute
from tuner.mlir.rewrite.building import create
from tuner.mlir.rewrite.type_sizes import is_workgroup
from tuner.mlir.rewrite.walking import walk

WRITES = ("vector.transfer_write", "vector.store", "memref.store")
COPIES = ("linalg.copy", "memref.copy")


class InsertBarriersOp(InPlaceOp, name="insert_barriers"):
    """The transform op ``tuner.insert_barriers``, which puts barriers into loops that fill shared memory.

    Inserts a ``gpu.barrier`` after the last write in every ``scf.for`` whose body directly writes shared
    memory. Attribute ``loop_top`` (i64, default 0): 1 also inserts a barrier at the top of the body. That is
    needed where one iteration may still read a tile that the next one writes, unless the loop is pipelined
    over more buffers than its depth. The handle (a func.func) stays valid. Silenceable failure: no such loop.
    """

    def change(self, function: Op) -> str | None:
        """Inserts ``gpu.barrier`` into each loop that directly writes shared memory.

        Changes one function in place. Returns None, or a message if the function has no such loop.
        """
        loops = [(loop, _writes(loop)) for loop in walk(function, "scf.for")]
        filling = [(loop, writes) for loop, writes in loops if writes]
        if not filling:
            return f"found {len(loops)} loops, allowed one that writes shared memory"
        for loop, writes in filling:
            _insert(loop, writes[-1], attribute(self, "loop_top", 0) == 1)
        return None


def _writes(loop: Op) -> list[Op]:
    body = [op.operation for op in loop.regions[0].blocks[0].operations]
    return [
        op for op in body if op.name in WRITES + COPIES and is_workgroup(ir.MemRefType(op.operands[1].type))
    ]


def _insert(loop: Op, last_write: Op, at_top: bool) -> None:
    body = list(loop.regions[0].blocks[0].operations)
    behind = next(op for before, op in itertools.pairwise(body) if before.operation == last_write)
    with loop.location:
        with ir.InsertionPoint(behind):
            create("gpu.barrier")
        if at_top:
            with ir.InsertionPoint(body[0]):
                create("gpu.barrier")
