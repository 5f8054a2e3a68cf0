"""Bundles: files that carry compiled candidates to a machine with a GPU, and their results back."""

# What other packages may import; the rest is inside.
__all__ = ["command"]
