"""Relaxes atomics whose result is unused: ``memref.atomic_rmw`` is lowered with a stronger order than needed.

Takes kernels in LLVM dialect; gives ``llvm.atomicrmw`` without uses monotonic order at device scope. Upstream
gives acquire-release order among all devices and the host, which costs fences. Sums that are accumulated so
are read by a later kernel only, so relaxed order is enough; ptxas then emits ``RED``. Atomics with a used
result stay.

    %old = llvm.atomicrmw fadd %p, %x acq_rel : !llvm.ptr<1>, f32
  becomes
    %old = llvm.atomicrmw fadd %p, %x syncscope("device") monotonic : !llvm.ptr<1>, f32
"""

from tuner.mlir.bindings import ir
from tuner.mlir.rewrite.walking import walk

MONOTONIC = 2  # LLVM's AtomicOrdering, "relaxed" in PTX


def relax_unused_atomics(module: ir.Module) -> int:
    """Gives each ``llvm.atomicrmw`` without a used result relaxed order at device scope; returns how many.

    Changes ``module`` in place; an atomic operation whose result is used stays as it is.
    """
    unread = [op for op in walk(module, "llvm.atomicrmw") if not list(op.results[0].uses)]
    for op in unread:
        op.attributes["ordering"] = ir.Attribute.parse(f"{MONOTONIC} : i64")
        op.attributes["syncscope"] = ir.StringAttr.get("device")
    return len(unread)
