"""Moves assertions in front of the loops whose iterations all check the same, so that these vectorize.

A gather of rows checks the index of a row at each of its elements, and LLVM does not vectorize a loop that
may leave at each iteration.

    scf.for %row = %c0 to %c128 step %c1 {
      scf.for %column = %c0 to %c1024 step %c1 {
        %index = memref.load %indices[%row] : memref<128xindex>
        %is_inside = arith.cmpi ult, %index, %c32 : index
        cf.assert %is_inside, "an index is outside of dimension 0"
        ...
  becomes
    scf.for %row = %c0 to %c128 step %c1 {
      %index = memref.load %indices[%row] : memref<128xindex>
      %is_inside = arith.cmpi ult, %index, %c32 : index
      cf.assert %is_inside, "an index is outside of dimension 0"
      scf.for %column = %c0 to %c1024 step %c1 {
        ...
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.cpu.index_ranges import LOOP, bounds_of
from tuner.mlir.cpu.memory_accesses import accesses_in
from tuner.mlir.ir.reading import ops_in, walk

ASSERT = "cf.assert"


def lead_loops_with_assertions(module: ir.Module) -> None:
    """Moves each ``cf.assert``, with the ops that compute its condition, out of loops, in place.

    Out of an ``scf.for`` with constant bounds and at least one iteration, where neither the loop's index nor
    what the loop writes has a part in the condition, and where no assertion precedes: what follows an
    assertion may rely on it. A function whose assertion fails has then written less than before.
    """
    for assertion in walk(module, ASSERT):
        loop = assertion.parent.operation
        while _is_reached_first(assertion, loop):
            needed = _needed(assertion, loop)
            if needed is None:
                break
            for op in needed:
                op.move_before(loop)
            loop = assertion.parent.operation


def _is_reached_first(assertion: Op, loop: Op) -> bool:
    """Returns whether each run of ``loop`` reaches the assertion, before any other assertion."""
    if loop.name != LOOP:
        return False
    bounds = bounds_of(loop)
    return bounds is not None and bounds.trips > 0 and walk(loop, ASSERT)[0] == assertion


def _needed(assertion: Op, loop: Op) -> list[Op] | None:
    """Returns the ops of the loop that compute the assertion's condition, then the assertion, in order.

    None if one of them may have other results in another iteration.
    """
    accesses = accesses_in(loop, ignored=(ASSERT,))
    if accesses is None:
        return None
    written = [access.buffer for access in accesses if access.is_write]
    body = loop.regions[0].blocks[0]
    needed = [assertion]
    for op in needed:  # grows
        for operand in op.operands:
            if operand.owner == body:
                return None
            definition = operand.owner
            if isinstance(definition, ir.Block) or definition.operation.block != body:
                continue
            if not _is_steady(definition.operation, written):
                return None
            needed.append(definition.operation)
    return [op for op in ops_in(body) if op in needed]


def _is_steady(op: Op, written: list[Value]) -> bool:
    """Returns whether an op only computes, from its operands and from buffers that are not ``written``."""
    accesses = accesses_in(op)
    if accesses is None or op.regions:
        return False
    return not any(access.is_write or access.buffer in written for access in accesses)
