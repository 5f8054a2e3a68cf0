"""Runs and times compiled code on this machine's processor and GPU."""

# What other packages may import; the rest is inside.
__all__ = [
    "arrays",
    "compiled_files",
    "cpu",
    "extensions",
    "process_state",
    "programs",
    "timing",
    "timing_lock",
    "wheel_tools",
    "workers",
]
