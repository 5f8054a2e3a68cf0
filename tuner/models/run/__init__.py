"""Compiled host programs as Python functions, on a device or on the host."""

# What other packages may import; the rest is inside.
__all__ = ["loading"]
