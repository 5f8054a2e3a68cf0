"""Recorded search spaces as files: T4 (ours and others'), Kernel Tuner's caches."""
