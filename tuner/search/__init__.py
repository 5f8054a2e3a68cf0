"""Search methods over a feasible set, and the cost models that rank configurations first."""

# What other packages may import; the rest is inside.
__all__ = ["cost_model", "method", "samplers"]
