"""Reads and writes masked vectors of i1 as whole vectors, before LLVM dialect.

LLVM stores a vector of i1 as bits, but masked ones as a byte for each element: what a plain vector has
written, a masked one reads wrongly. The buffers are those of a group, on whole cache lines of the stack.

    %r = vector.transfer_read %b[%i], %p, %m : memref<32xi1>, vector<16xi1>
    vector.transfer_write %v, %b[%i], %m : vector<16xi1>, memref<32xi1>
  becomes
    %all = vector.transfer_read %b[%i], %p : memref<32xi1>, vector<16xi1>
    %r = arith.select %m, %all, %pads
    %old = vector.transfer_read %b[%i], %p : memref<32xi1>, vector<16xi1>
    %new = arith.select %m, %v, %old
    vector.transfer_write %new, %b[%i] : vector<16xi1>, memref<32xi1>
"""

from collections.abc import Sequence

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.walking import walk_where

READ, WRITE = "vector.transfer_read", "vector.transfer_write"


def unmask_truths(module: ir.Module) -> None:
    """Replaces masked reads and writes of vectors of i1 by plain ones, in place."""
    for op in walk_where(module, _is_masked):
        with ir.InsertionPoint(op), op.location:
            (_unmask_read if op.name == READ else _unmask_write)(op)
        op.erase()


def _is_masked(op: Op) -> bool:
    if op.name not in (READ, WRITE) or not list(op.attributes["operandSegmentSizes"])[-1]:
        return False
    vector = op.results[0] if op.name == READ else op.operands[0]
    return str(ir.VectorType(vector.type).element_type) == "i1"


def _unmask_read(op: Op) -> None:
    memory, *places, padding, mask = op.operands
    kind = op.results[0].type
    found = _read(op, kind, memory, places, padding)
    pads = value("vector.broadcast", kind, padding)
    op.results[0].replace_all_uses_with(value("arith.select", kind, mask, found, pads))


def _unmask_write(op: Op) -> None:
    vector, memory, *places, mask = op.operands
    truth = ir.IntegerType.get_signless(1)
    padding = value("arith.constant", truth, value=ir.IntegerAttr.get(truth, 0))
    before = _read(op, vector.type, memory, places, padding)
    chosen = value("arith.select", vector.type, mask, vector, before)
    segments = ir.DenseI32ArrayAttr.get([1, 1, len(places), 0])
    create(WRITE, [], [chosen, memory, *places], operandSegmentSizes=segments, **_kept(op))


def _read(op: Op, kind: Type, memory: Value, places: Sequence[Value], padding: Value) -> Value:
    """Creates the read of a whole vector where a masked operation reads or writes."""
    segments = ir.DenseI32ArrayAttr.get([1, len(places), 1, 0])
    return value(READ, kind, memory, *places, padding, operandSegmentSizes=segments, **_kept(op))


def _kept(op: Op) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in ("in_bounds", "permutation_map")}
