"""The CPU target and its baselines: BLAS libraries, oneDNN, and libraries of quantized matmuls."""

# What other packages may import; the rest is inside.
__all__ = [
    "baseline_libraries",
    "callables",
    "compiler",
    "evaluator",
    "fusion_draws",
    "loaded_kernel",
    "packed_callables",
    "target",
]
