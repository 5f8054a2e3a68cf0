"""Replaces a matmul of a program by code that takes row-major arrays without gaps and writes all of C.

Takes a match of ``find_matmuls.py``. Operands with gaps are copied first. Where the matmul adds to what C
holds, the product goes to a buffer of its own, which is added afterwards.

    linalg.generic ... ins(%a, %b : ...) outs(%c : memref<4x16xf32>)    // C += A B
  becomes
    %product = memref.alloc() : memref<4x16xf32>
    <multiply %a, %b, %product>
    scf.parallel (%i, %j) = ... { <%c[%i, %j] += %product[%i, %j]> }
    memref.dealloc %product : memref<4x16xf32>
"""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.programs.matmuls.find_matmuls import MatmulMatch
from tuner.mlir.rewrite import parallel_loops
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.type_sizes import is_row_major


def replace_matmul(match: MatmulMatch, multiply: Callable[[Value, Value, Value], None]) -> None:
    """Rewrites in place; ``multiply`` builds ``C = A B`` of three plain memrefs."""
    is_added = match.zero_fill is None
    with match.op.location, ir.InsertionPoint(match.op):
        a, b = _Operand.read(match.a), _Operand.read(match.b)
        c = _Operand.to_write(match.c, is_added)
        multiply(a.value, b.value, c.value)
        if is_added:
            parallel_loops.add_to(match.c, c.value)
        elif c.is_own:
            parallel_loops.copy(c.value, match.c)
        for operand in (a, b, c):
            operand.free()
    match.op.erase()
    if match.zero_fill is not None:
        match.zero_fill.erase()


def allocate(kind: Type) -> Value:
    """Creates a buffer of a static memref type."""
    return value("memref.alloc", kind, operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]))


@dataclass(frozen=True)
class _Operand:
    """A row-major array: the program's, or an allocated one."""

    value: Value
    is_own: bool  # allocated here

    @classmethod
    def read(cls, given: Value) -> "_Operand":
        operand = cls.to_write(given, is_kept=False)
        if operand.is_own:
            parallel_loops.copy(given, operand.value)
        return operand

    @classmethod
    def to_write(cls, given: Value, is_kept: bool) -> "_Operand":
        if is_row_major(given.type) and not is_kept:
            return cls(given, False)
        return cls(allocate(ir.MemRefType.get(given.type.shape, given.type.element_type)), True)

    def free(self) -> None:
        if self.is_own:
            create("memref.dealloc", [], [self.value])
