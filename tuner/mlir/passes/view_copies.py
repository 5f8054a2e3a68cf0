"""Copies on the host become loops.

Of views LLVM would ask for a function of MLIR's own runtime library; of plain buffers for memcpy, which the
JIT's wheel looks up by a wrong name.
"""

from typing import Any

from tuner.mlir import parallel_loops
from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk
from tuner.mlir.types import is_row_major


def copy_views_by_loops(function: Any) -> int:
    """Replaces each ``memref.copy`` whose rows are not known to be adjacent; returns how many."""
    copies = [copy for copy in walk(function, "memref.copy") if not all(map(_is_plain, copy.operands))]
    _replace(copies)
    return len(copies)


def copy_by_loops(root: Any) -> None:
    """Replaces every ``memref.copy`` below an op; those of a device must be its own by then."""
    _replace(walk(root, "memref.copy"))


def _replace(copies: list[Any]) -> None:
    for copy in copies:
        source, target = copy.operands
        with copy.location, ir.InsertionPoint(copy):
            parallel_loops.copy(source, target)
        copy.erase()


def _is_plain(buffer: Any) -> bool:
    return isinstance(buffer.type, ir.UnrankedMemRefType) or is_row_major(buffer.type)
