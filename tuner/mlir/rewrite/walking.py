"""Walks over IR: that call a function for each op, or collect ops by name or by a predicate."""

from collections.abc import Callable, Iterator

from tuner.mlir.bindings import Block, Op, WalkResult, ir, pattern_rewrites


def walk_ops(root: Op | ir.Module, visit: Callable[[Op], WalkResult], *, is_pre_order: bool = False) -> None:
    """Calls ``visit`` for ``root`` and all ops in it, nested ops first or, in pre-order, last.

    An exception of ``visit`` is raised as it is: MLIR's walk turns it into a RuntimeError, whose text is a
    traceback.
    """
    raised: list[BaseException] = []

    def guarded(op: Op) -> WalkResult:
        try:
            return visit(op)
        except BaseException as error:
            raised.append(error)
            raise

    order = ir.WalkOrder.PRE_ORDER if is_pre_order else ir.WalkOrder.POST_ORDER
    try:
        root.operation.walk(guarded, order)
    except RuntimeError:
        if raised:
            raise raised[0] from None
        raise


def walk(root: Op | ir.Module, *names: str) -> list[Op]:
    """Returns the ops named ``names`` in ``root``, and ``root`` itself, in post-order: nested ops first.

    ``root`` is included only if it has one of the names. Ops in unreachable blocks are left out. Uses MLIR's
    pattern driver to search for the names: a pattern that only records ops takes a fiftieth of the time of a
    callback per op.
    """
    found: list[Op] = []

    def note(op: Op, _: object) -> bool:
        found.append(op.operation)
        return True  # nothing was rewritten

    patterns = pattern_rewrites.RewritePatternSet(root.operation.context)
    for name in names:
        patterns.add(name, note)
    pattern_rewrites.walk_and_apply_patterns(root.operation, patterns.freeze())
    return [*found, root.operation] if root.operation.name in names else found


def walk_where(root: Op | ir.Module, is_wanted: Callable[[Op], bool]) -> list[Op]:
    """Returns the ops for which ``is_wanted`` holds, of ``root`` and all ops in it, in post-order."""
    found: list[Op] = []

    def visit(op: Op) -> WalkResult:
        if is_wanted(op):
            found.append(op)
        return WalkResult.ADVANCE

    walk_ops(root, visit)
    return found


def parents_of(op: Op) -> Iterator[Op]:
    """Yields the ops around an op, the innermost first, up to and including its function.

    Yields nothing for a function, and ends with the outermost op where there is no function.
    """
    while not op.name.endswith(".func") and op.parent is not None:
        op = op.parent.operation
        yield op


def ancestor_in_block(op: Op, block: Block) -> Op | None:
    """Returns the op of ``block`` that is ``op`` or one of its parents within its function, else None."""
    return next((each for each in (op, *parents_of(op)) if each.block == block), None)
