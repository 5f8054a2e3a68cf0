"""Whole MLIR programs: compile, run, compare, time and tune."""

# What other packages may import; the rest is internal.
__all__ = ["compile", "dynamic", "lowering", "request", "run", "tuning"]
