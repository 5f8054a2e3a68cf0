"""The IR after each stage of a lowering, kept for whoever compiles in this process and asks."""

from collections.abc import Iterator
from contextlib import contextmanager

from tuner.mlir.bindings import ir

_kept: list[tuple[str, str]] | None = None  # of who asked


@contextmanager
def kept_stages() -> Iterator[list[tuple[str, str]]]:
    """Gives a list that gets (stage, IR after it) of what is lowered in the block; blocks are not nested."""
    global _kept
    found: list[tuple[str, str]] = []
    _kept = found
    try:
        yield found
    finally:
        _kept = None


def reached(stage: str, module: ir.Module) -> None:
    """Keeps the IR of a module that has come through a stage."""
    if _kept is not None:
        _kept.append((stage, str(module)))
