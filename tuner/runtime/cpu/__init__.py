"""Compiled functions, thread teams, guarded arrays, load and roofline of this machine's processor."""

# What other packages may import; the rest is inside.
__all__ = [
    "content_hash",
    "host",
    "jit",
    "memory",
    "object_files",
    "roofline",
    "stack_overflow",
    "team_threads",
    "thread_team",
    "timing_conditions",
]
