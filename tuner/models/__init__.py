"""Whole MLIR programs: compile, run, compare, time and tune."""

# What other packages may import; the rest is inside.
__all__ = ["c_library", "compile", "library", "quantized", "run", "torch"]
