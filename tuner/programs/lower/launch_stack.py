"""Releases the stack memory of a launch, so that a loop of launches does not exhaust the stack.

Translation to LLVM IR allocates a kernel's arguments on the stack at the launch; in a loop, again in each
iteration. The driver copies the arguments before the call returns.

    gpu.launch_func @m::@k blocks in (...) threads in (...) : i64 args(...)
  becomes
    %0 = llvm.intr.stacksave : !llvm.ptr
    gpu.launch_func @m::@k blocks in (...) threads in (...) : i64 args(...)
    llvm.intr.stackrestore %0 : !llvm.ptr
"""

from tuner.mlir.bindings import ir
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.walking import walk


def restore_stack(module: ir.Module) -> None:
    """Makes each launch of a module in LLVM dialect release the stack memory of its arguments, in place.

    Inserts ``llvm.intr.stacksave`` before, and ``llvm.intr.stackrestore`` after, every ``gpu.launch_func``.
    """
    for launch in walk(module, "gpu.launch_func"):
        with launch.location, ir.InsertionPoint(launch):
            stack = value("llvm.intr.stacksave", ir.Type.parse("!llvm.ptr"))
        with launch.location, ir.InsertionPoint.after(launch):
            create("llvm.intr.stackrestore", [], [stack])
