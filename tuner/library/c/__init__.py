"""Tuned kernels of several problems as a C library: header, object file, dispatch, fallback."""

# What other packages may import; the rest is inside.
__all__ = ["kernels", "writer"]
