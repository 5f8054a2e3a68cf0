"""Lowering of a whole function: read, outlined into kernels, lowered for a device or for the host."""

# What other packages may import; the rest is inside.
__all__ = ["resources"]
