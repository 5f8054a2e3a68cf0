"""Turns ``memref.copy`` into loops over elements.

For a copy of views LLVM would call a function of MLIR's runtime library, for one of plain buffers memcpy,
which the JIT's wheel looks up by a wrong name. Copies of a device must be ``gpu.memcpy`` by then. Types
must be ranked.

    memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  becomes
    scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
      %0 = memref.load %a[%i] : memref<4xf32>
      memref.store %0, %b[%i] : memref<4xf32>
      scf.reduce
    }
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite import parallel_loops
from tuner.mlir.rewrite.type_sizes import is_row_major
from tuner.mlir.rewrite.walking import walk


def copy_views_by_loops(function: Op) -> int:
    """Replaces each ``memref.copy`` whose rows are not known to be adjacent; returns how many."""
    copies = [copy for copy in walk(function, "memref.copy") if not all(map(_is_plain, copy.operands))]
    _replace(copies)
    return len(copies)


def copy_by_loops(root: Op | ir.Module) -> None:
    """Replaces every ``memref.copy`` below an op."""
    _replace(walk(root, "memref.copy"))


def _replace(copies: list[Op]) -> None:
    for copy in copies:
        source, target = copy.operands
        with copy.location, ir.InsertionPoint(copy):
            parallel_loops.copy(source, target)
        copy.erase()


def _is_plain(buffer: Value) -> bool:
    return isinstance(buffer.type, ir.UnrankedMemRefType) or is_row_major(buffer.type)
