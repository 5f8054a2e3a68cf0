"""Lets the host wait for each piece of device work: the plain meaning of a program, to compare others with.

``gpu-to-llvm`` leaves synchronous allocations and copies as they are, without a word; so each gets tokens.
"""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.passes.async_ops import make_async, wait_async, wait_on_host
from tuner.mlir.passes.buffer_accesses import inside, is_device_work


def wait_for_each(function: Any) -> None:
    """Gives every piece of device work a stream of its own, which the host waits for at once."""
    works = [op for op in inside(function) if is_device_work(op)]
    for op in works:
        with op.location, ir.InsertionPoint(op):
            dependency = wait_async([])
        token = make_async(op, dependency)
        with op.location, ir.InsertionPoint(op):
            wait_on_host([token])
    for op in reversed(works):
        op.erase()
