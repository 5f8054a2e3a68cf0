"""Gives back the stack that a launch takes: a loop of launches must not fill it.

Translation to LLVM makes room for a kernel's arguments where the launch is, and in a loop that is new room in
each turn. The driver copies the arguments before the call returns.
"""

from tuner.mlir.bindings import ir
from tuner.mlir.building import create, value
from tuner.mlir.ops.dialect import walk


def give_stack_back(module: ir.Module) -> None:
    """Puts every launch of a module in LLVM dialect between ``stacksave`` and ``stackrestore``."""
    for launch in walk(module, "gpu.launch_func"):
        with launch.location, ir.InsertionPoint(launch):
            stack = value("llvm.intr.stacksave", ir.Type.parse("!llvm.ptr"))
        with launch.location, ir.InsertionPoint.after(launch):
            create("llvm.intr.stackrestore", [], [stack])
