"""Creates ``memref.copy``, and replaces it by loops over elements.

Otherwise LLVM would call a function of MLIR's runtime library for a copy of views, and memcpy for a copy of
plain buffers, which the JIT's wheel looks up by a wrong name. Copies to and from the device must be
``gpu.memcpy`` by then. Types must be ranked.

    memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  becomes
    scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
      %0 = memref.load %a[%i] : memref<4xf32>
      memref.store %0, %b[%i] : memref<4xf32>
      scf.reduce
    }
"""

from collections.abc import Callable

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite import parallel_loops
from tuner.mlir.rewrite.building import create
from tuner.mlir.rewrite.type_sizes import is_row_major
from tuner.mlir.rewrite.walking import walk


def copy_buffer(target: Value, source: Value) -> None:
    """Creates ``memref.copy`` from ``source`` to ``target``, memrefs of the same shape."""
    create("memref.copy", [], [source, target])


def copy_views_by_loops(function: Op) -> int:
    """Replaces each ``memref.copy`` from or to a ranked memref that is not row-major by loops, in place.

    Returns the number of replaced copies.
    """
    copies = [copy for copy in walk(function, "memref.copy") if not all(map(_is_plain, copy.operands))]
    for copy in copies:
        replace_copy(copy, parallel_loops.copy)
    return len(copies)


def copy_by_loops(root: Op | ir.Module) -> None:
    """Replaces every ``memref.copy`` nested in ``root`` by a loop over the elements, in place."""
    for copy in walk(root, "memref.copy"):
        replace_copy(copy, parallel_loops.copy)


def replace_copy(copy: Op, build: Callable[[Value, Value], None]) -> None:
    """Replaces a ``memref.copy`` by the ops that ``build(source, target)`` creates in its place."""
    with copy.location, ir.InsertionPoint(copy):
        build(*copy.operands)
    copy.erase()


def _is_plain(buffer: Value) -> bool:
    return isinstance(buffer.type, ir.UnrankedMemRefType) or is_row_major(buffer.type)
