"""Targets for NVIDIA GPUs: compiling by ptxas, verifying, timing, cuBLAS as the baseline, and SASS."""

# What other packages may import; the rest is inside.
__all__ = ["baseline", "evaluator"]
