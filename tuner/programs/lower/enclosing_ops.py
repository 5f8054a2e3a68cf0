"""The ops around an op of a host function."""

from collections.abc import Iterator

from tuner.mlir.bindings import Block, Op


def around(op: Op) -> Iterator[Op]:
    """Yields the ops around an op, the innermost first, up to its function."""
    while op.name != "func.func":
        op = op.parent.operation
        yield op


def holder_of(op: Op, block: Block) -> Op | None:
    """Returns the op of a block that is, or is around, an op of its function; None where there is none."""
    return next((each for each in (op, *around(op)) if each.block == block), None)
