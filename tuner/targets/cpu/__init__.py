"""The CPU target and its baselines: OpenBLAS, MKL, BLIS and oneDNN."""

# What other packages may import; the rest is inside.
__all__ = ["baseline_libraries", "callables", "compiler", "evaluator", "packed_callables"]
