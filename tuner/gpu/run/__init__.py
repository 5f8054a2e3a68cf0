"""Compiled programs on a device, as Python functions."""

# What other packages may import; the rest is inside.
__all__ = ["device_function", "sampled_launches"]
