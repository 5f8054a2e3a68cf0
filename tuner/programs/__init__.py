"""Whole MLIR programs: compile, run, compare, time and tune."""

# What other packages may import; the rest is internal.
__all__ = ["c_library", "compile", "dynamic", "fusion_tuning", "request", "run", "tuning"]
