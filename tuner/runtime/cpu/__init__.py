"""This machine's processor: compiled functions, thread teams, guarded arrays, load and roofline."""

# What other packages may import; the rest is inside.
__all__ = [
    "cold_caches",
    "content_hash",
    "faulting_memory",
    "host",
    "jit",
    "linkable_objects",
    "memory",
    "object_files",
    "roofline",
    "stack_overflow",
    "team_threads",
    "thread_team",
    "timing_conditions",
]
