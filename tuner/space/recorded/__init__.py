"""Recorded search spaces as T4 files, by this tuner and by others."""

# What other packages may import; the rest is inside.
__all__ = ["reading", "recording"]
