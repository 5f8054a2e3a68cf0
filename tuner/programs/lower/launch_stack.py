"""Frees the stack that a launch takes, so that a loop of launches does not fill it.

Translation to LLVM allocates a kernel's arguments on the stack where the launch is, and in a loop anew in
each iteration. The driver copies the arguments before the call returns.

    gpu.launch_func @m::@k blocks in (...) threads in (...) : i64 args(...)
  becomes
    %0 = llvm.intr.stacksave : !llvm.ptr
    gpu.launch_func @m::@k blocks in (...) threads in (...) : i64 args(...)
    llvm.intr.stackrestore %0 : !llvm.ptr
"""

from tuner.mlir.bindings import ir
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.walking import walk


def give_stack_back(module: ir.Module) -> None:
    """Puts every launch of a module in LLVM dialect between ``stacksave`` and ``stackrestore``."""
    for launch in walk(module, "gpu.launch_func"):
        with launch.location, ir.InsertionPoint(launch):
            stack = value("llvm.intr.stacksave", ir.Type.parse("!llvm.ptr"))
        with launch.location, ir.InsertionPoint.after(launch):
            create("llvm.intr.stackrestore", [], [stack])
