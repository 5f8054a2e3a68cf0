"""``tuner.insert_barriers``: the barriers of a loop that fills shared memory and reads it again."""

import itertools
from typing import Any

from tuner.mlir.bindings import ext, ir, transform
from tuner.mlir.building import create
from tuner.mlir.ops.dialect import InPlaceEffects, TunerDialect, attribute, refuse, walk
from tuner.mlir.types import is_workgroup

WRITES = ("vector.transfer_write", "vector.store", "memref.store")
COPIES = ("linalg.copy", "memref.copy")


class InsertBarriersOp(TunerDialect.Operation, name="insert_barriers"):  # type: ignore[misc,call-arg,name-defined]
    """Inserts ``gpu.barrier`` into every ``scf.for`` whose body itself writes shared memory.

    One behind the last such write. With ``loop_top = 1`` (i64, 0 unless given) another at the top of the
    body: needed where a tile may still be read when the next one is written to the same place, that is
    unless the loop is pipelined over more buffers than its depth. The handle (a func.func) stays valid.
    Silenceable failure: no loop writes shared memory.
    """

    target: ext.Operand[transform.AnyOpType]

    class Transform(transform.TransformOpInterface):  # type: ignore[misc]
        """Runs on every function of the handle."""

        @staticmethod
        def apply(op: Any, rewriter: Any, results: Any, state: Any) -> Any:
            """Changes the payload in place."""
            for function in state.get_payload_ops(op.target):
                loops = [(loop, _writes(loop)) for loop in walk(function, "scf.for")]
                filling = [(loop, writes) for loop, writes in loops if writes]
                if not filling:
                    return refuse(op, f"found {len(loops)} loops, allowed one that writes shared memory")
                for loop, writes in filling:
                    _insert(loop, writes[-1], attribute(op, "loop_top", 0) == 1)
            return transform.DiagnosedSilenceableFailure.Success

        @staticmethod
        def allow_repeated_handle_operands(op: Any) -> bool:
            """Tells that one handle is enough."""
            return False


def attach() -> None:
    """Gives the op its behaviour in the current context."""
    InsertBarriersOp.Transform.attach(InsertBarriersOp.OPERATION_NAME)
    InPlaceEffects.attach(InsertBarriersOp.OPERATION_NAME)


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
