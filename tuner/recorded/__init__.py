"""Recorded search spaces as files: T4 (ours and others'), Kernel Tuner's caches."""

from tuner.recorded.reading import read_recorded

__all__ = ["read_recorded"]
