"""``tuner.pack_by_rows``: packing reads whole rows of B, not one panel of columns after the other.

Takes a function on buffers. Exchanges a loop over panels with the loop over rows that is its body, where both
only copy to one buffer. Reads of B are then contiguous, which the hardware prefetches, and stay on one page;
each panel is still written in order. Other loops stay as they are.

    scf.for %j = %c0 to %c200 step %c64 {
      %view = memref.subview %packed[%panel, 0, 0] [1, 32, 64] [1, 1, 1] : ...
      scf.for %i = %c0 to %c32 step %c1 {
        %x = vector.transfer_read %b[%i, %j], %zero : memref<32x200xf32>, vector<64xf32>
        vector.transfer_write %x, %view[%i, %c0] {in_bounds = [true]} : ...
      }
    }
  becomes
    scf.for %i = %c0 to %c32 step %c1 {
      scf.for %j = %c0 to %c200 step %c64 {
        %view = memref.subview %packed[%panel, 0, 0] [1, 32, 64] [1, 1, 1] : ...
        %x = vector.transfer_read %b[%i, %j], %zero : memref<32x200xf32>, vector<64xf32>
        vector.transfer_write %x, %view[%i, %c0] {in_bounds = [true]} : ...
      }
    }
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ops.dialect import InPlaceOp
from tuner.mlir.rewrite.walking import walk, walk_where

READ, WRITE = "vector.transfer_read", "vector.transfer_write"
# Ops of a copy: besides reads and writes of memory only what has no effect, or may be executed in any order.
OF_A_COPY = {
    *(READ, WRITE, "memref.prefetch", "memref.subview", "scf.for", "scf.yield", "affine.apply", "affine.min"),
    *("arith.constant", "arith.addi", "arith.subi", "arith.muli", "vector.create_mask", "ub.poison"),
    *("vector.constant_mask", "vector.mask", "vector.yield", "vector.maskedload", "vector.maskedstore"),
}
STORES = (WRITE, "vector.maskedstore")
BOUNDS = 3  # operands of an scf.for: lower bound, upper bound, step; then the initial values of its results
VIEW = "memref.subview"


class PackByRowsOp(InPlaceOp, name="pack_by_rows"):
    """The transform op ``tuner.pack_by_rows``, which packs panels of columns row by row.

    Exchanges each loop over panels with the loop over rows in it, where these loops only copy to one buffer,
    which they do not read. Changes nothing where no such pair of loops is. The handle (a func.func) stays
    valid. Never fails.
    """

    def change(self, function: Op) -> str | None:
        """Exchanges the loops over panels and rows of packing copies in one function, in place.

        Always returns None.
        """
        for panels in walk(function, "scf.for"):
            rows = _rows_of(panels)
            if rows is not None and _only_copies(panels):
                _exchange(panels, rows)
        return None


def _rows_of(panels: Op) -> Op | None:
    """Returns the one loop over single rows in a loop over panels; None where the two cannot be exchanged."""
    body = [op.operation for op in panels.regions[0].blocks[0].operations]
    loops = [op for op in body if op.name == "scf.for"]
    if len(loops) != 1 or len(panels.operands) > BOUNDS or len(loops[0].operands) > BOUNDS:
        return None
    (rows,) = loops
    is_last = body[-2] == rows  # before scf.yield
    is_rectangular = all(_is_outside(bound, panels) for bound in rows.operands)
    is_of_rows = _constant(rows.operands[2]) == 1 and _constant(panels.operands[2]) != 1
    return rows if is_last and is_rectangular and is_of_rows else None


def _only_copies(loop: Op) -> bool:
    """Returns whether a loop only copies to one buffer, which is allocated outside and not read in it."""
    ops = walk_where(loop, lambda _: True)
    written = {_root(op.operands[_written_operand(op)]) for op in ops if op.name in STORES}
    read = {_root(op.operands[0]) for op in ops if op.name in (READ, "vector.maskedload")}
    is_copy = all(op.name in OF_A_COPY for op in ops)
    return is_copy and len(written) == 1 and not written & read and _is_allocated(next(iter(written)))


def _written_operand(store: Op) -> int:
    """Returns the number of the operand that is the memref: a transfer_write has the vector before it."""
    return 1 if store.name == WRITE else 0


def _is_allocated(buffer: Value) -> bool:
    return isinstance(buffer, ir.OpResult) and buffer.owner.name == "memref.alloc"


def _root(value: Value) -> Value:
    """Returns the buffer that subviews start from."""
    while isinstance(value, ir.OpResult) and value.owner.name == VIEW:
        value = value.owner.operands[0]
    return value


def _is_outside(value: Value, loop: Op) -> bool:
    """Returns whether a value is defined before a loop, not in its body."""
    block = value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block
    return bool(block != loop.regions[0].blocks[0])


def _constant(value: Value) -> int | None:
    """Returns the number of an ``arith.constant`` of type index; None for another value."""
    if not isinstance(value, ir.OpResult) or value.owner.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(value.owner.attributes["value"]).value)


def _exchange(panels: Op, rows: Op) -> None:
    """Exchanges bounds and induction variables of two loops; moves what is before the inner one into it."""
    inside = rows.regions[0].blocks[0]
    first = inside.operations[0]
    for op in [op.operation for op in panels.regions[0].blocks[0].operations][:-2]:
        op.move_before(first.operation)
    outer, inner = panels.regions[0].blocks[0].arguments[0], inside.arguments[0]
    uses = [[(use.owner, use.operand_number) for use in value.uses] for value in (outer, inner)]
    for places, value in zip(uses, (inner, outer), strict=True):
        for owner, number in places:
            owner.operands[number] = value
    for number in range(BOUNDS):
        bounds = panels.operands[number], rows.operands[number]
        panels.operands[number], rows.operands[number] = reversed(bounds)
