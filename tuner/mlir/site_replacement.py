"""Replaces a matmul of a program by code that takes row-major arrays without gaps and writes all of C.

Views are copied first. Where the matmul adds to what C holds, the product goes to a buffer of its own, which
is added afterwards.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tuner.mlir import parallel_loops
from tuner.mlir.bindings import ir
from tuner.mlir.building import create, value
from tuner.mlir.matmul_sites import MatmulSite
from tuner.mlir.types import is_row_major


def replace_site(site: MatmulSite, multiply: Callable[[Any, Any, Any], None]) -> None:
    """Rewrites in place; ``multiply`` builds ``C = A B`` of three plain memrefs."""
    is_added = site.zero_fill is None
    with site.op.location, ir.InsertionPoint(site.op):
        a, b = _Operand.read(site.a), _Operand.read(site.b)
        c = _Operand.to_write(site.c, is_added)
        multiply(a.value, b.value, c.value)
        if is_added:
            parallel_loops.add_to(site.c, c.value)
        elif c.is_own:
            parallel_loops.copy(c.value, site.c)
        for operand in (a, b, c):
            operand.free()
    site.op.erase()
    if site.zero_fill is not None:
        site.zero_fill.erase()


def allocate(kind: Any) -> Any:
    """Creates a buffer of a static memref type."""
    return value("memref.alloc", kind, operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]))


@dataclass(frozen=True)
class _Operand:
    """A row-major array: the program's, or one of our own."""

    value: Any
    is_own: bool

    @classmethod
    def read(cls, given: Any) -> "_Operand":
        operand = cls.to_write(given, is_elsewhere=False)
        if operand.is_own:
            parallel_loops.copy(given, operand.value)
        return operand

    @classmethod
    def to_write(cls, given: Any, is_elsewhere: bool) -> "_Operand":
        if is_row_major(given.type) and not is_elsewhere:
            return cls(given, False)
        return cls(allocate(ir.MemRefType.get(given.type.shape, given.type.element_type)), True)

    def free(self) -> None:
        if self.is_own:
            create("memref.dealloc", [], [self.value])
