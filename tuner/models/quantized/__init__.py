"""Quantized weights: files that have them, and libraries that multiply them."""

# What other packages may import; the rest is inside.
__all__ = ["quantized_files"]
