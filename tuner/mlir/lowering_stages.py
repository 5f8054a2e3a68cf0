"""Collects the IR after each stage of a lowering, for a caller in the same process that requests it."""

from collections.abc import Iterator
from contextlib import contextmanager

from tuner.mlir.bindings import ir

_kept: list[tuple[str, str]] | None = None  # the list of the active kept_stages block


@contextmanager
def kept_stages() -> Iterator[list[tuple[str, str]]]:
    """Yields a list that receives (stage, IR after it) of all that is lowered in the block; not nestable."""
    global _kept
    found: list[tuple[str, str]] = []
    _kept = found
    try:
        yield found
    finally:
        _kept = None


def reached(stage: str, module: ir.Module) -> None:
    """Records the IR of a module after ``stage``; does nothing outside of a ``kept_stages`` block."""
    if _kept is not None:
        _kept.append((stage, str(module)))
