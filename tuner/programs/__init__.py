"""Whole MLIR programs: compile, run, compare, time and tune."""
