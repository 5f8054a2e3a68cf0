"""Collects the IR after each stage of a lowering, for a caller in the same process that requests it."""

from collections.abc import Iterator
from contextlib import contextmanager

from tuner.mlir.bindings import ir

_kept: list[tuple[str, str]] | None = None  # the list of the active kept_stages block


@contextmanager
def kept_stages() -> Iterator[list[tuple[str, str]]]:
    """Yields a list to which each lowering in the ``with`` block appends (stage name, IR text after it).

    Pairs are in the order of the stages. Lowerings of other threads are recorded too; blocks cannot be
    nested.
    """
    global _kept
    found: list[tuple[str, str]] = []
    _kept = found
    try:
        yield found
    finally:
        _kept = None


def reached(stage: str, module: ir.Module) -> None:
    """Appends (``stage``, the module's IR text) to the list of the active ``kept_stages`` block, if any."""
    if _kept is not None:
        _kept.append((stage, str(module)))
