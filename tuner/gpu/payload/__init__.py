"""Payloads of matmuls on a GPU, with the buffers that a script asks for."""

# What other packages may import; the rest is inside.
__all__ = ["scratch"]
