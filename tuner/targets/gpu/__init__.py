"""Targets for NVIDIA GPUs, real and simulated, and the assembler ptxas."""

# What other packages may import; the rest is inside.
__all__ = ["arrays", "baseline", "block_sample", "compiler", "evaluator", "sass", "target"]
