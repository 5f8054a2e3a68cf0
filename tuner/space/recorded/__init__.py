"""Recorded search spaces as files: T4 (by this tuner and by others), and Kernel Tuner's caches."""
