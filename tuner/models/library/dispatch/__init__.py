"""Calls with arrays of any size: which tuned kernel, or the baseline, computes them."""

# What other packages may import; the rest is inside.
__all__ = ["matmul"]
