"""Search methods over a feasible set, and cost models that rank configurations before a search."""

# What other packages may import; the rest is inside.
__all__ = ["cost_model", "method", "prior", "samplers"]
