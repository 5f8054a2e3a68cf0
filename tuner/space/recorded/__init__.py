"""Recorded search spaces as files: T4 (by this tuner and by others), and Kernel Tuner's caches."""

# What other packages may import; the rest is inside.
__all__ = ["reading", "recording", "t4"]
