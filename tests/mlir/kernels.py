"""GPU dialect for tests: one kernel, two shared buffers, and the launches around it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.texts import text_beside

SHARED = "memref<256xf32, #gpu.address_space<workgroup>>"


@contextmanager
def parsed(text: str) -> Iterator[Any]:
    """Gives the module in a context of its own."""
    from tuner.mlir import transform
    from tuner.mlir.bindings import ir

    with transform.new_context(), ir.Location.unknown():
        yield transform.parse(text, "test")


def changed(change: Callable[..., Any], text: str, *given: Any) -> tuple[str, str, Any]:
    """Returns a module before and after a pass, and what the pass returns."""
    with parsed(text) as module:
        before = str(module)
        result = change(module, *given)
        assert module.operation.verify()
        return before, str(module), result


def counts(text: str, *parts: str) -> list[int]:
    """Returns how often each part is in a text."""
    return [text.count(part) for part in parts]


def kernel(*body: str, launch: str = "") -> str:
    """Returns a module with a kernel and its launch.

    ``body`` may use the shared buffers %a and %b of 1 KiB each, the thread %i, its value %v, and %g.
    """
    lines = "\n".join(f"      {line}" for line in body)
    return text_beside(__file__, "KERNEL").replace("      BODY", lines).replace("LAUNCH", launch)


def store(buffer: str) -> str:
    """Returns a write to %a or %b."""
    return f"memref.store %v, %{buffer}[%i] : {SHARED}"


def load(buffer: str, name: str = "") -> str:
    """Returns a read of %a or %b, and a use of it."""
    result = name or f"of_{buffer}"
    use = f"memref.store %{result}, %g[%i] : memref<256xf32>"
    return f"%{result} = memref.load %{buffer}[%i] : {SHARED} {use}"


BARRIER = "gpu.barrier"
