"""Analytical cost models: the resources of a kernel on the hardware, and the cycles of a schedule."""

# What other packages may import; the rest is inside.
__all__ = ["configurations"]
