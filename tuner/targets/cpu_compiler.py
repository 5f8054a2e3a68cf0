"""What makes code for the CPU, told without importing it."""

from tuner.machine import Compiler
from tuner.mlir.cpu_pipeline import pipeline_sha256
from tuner.mlir.wheels import llvm_version, packages


def cpu_compiler() -> Compiler:
    """Returns the pinned wheels and the lowering pipeline."""
    return Compiler(llvm_version(), packages(), pipeline_sha256())
