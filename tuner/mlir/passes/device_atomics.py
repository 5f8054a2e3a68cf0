"""Relaxes atomics whose result nobody reads: ``memref.atomic_rmw`` comes out stronger than it means to be.

Upstream gives them acquire-release order among all devices and the host, which costs fences. What is added up
this way is read by a later kernel, so relaxed order within the device is enough; ptxas then emits ``RED``.
"""

from tuner.mlir.bindings import ir
from tuner.mlir.ops.dialect import walk

MONOTONIC = 2  # LLVM's AtomicOrdering, "relaxed" in PTX


def relax_reductions(module: ir.Module) -> int:
    """Changes every ``llvm.atomicrmw`` without readers; returns how many."""
    unread = [op for op in walk(module, "llvm.atomicrmw") if not list(op.results[0].uses)]
    for op in unread:
        op.attributes["ordering"] = ir.Attribute.parse(f"{MONOTONIC} : i64")
        op.attributes["syncscope"] = ir.StringAttr.get("device")
    return len(unread)
