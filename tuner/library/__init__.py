"""Tuned schedules of several problems as files that other programs load."""

# What other packages may import; the rest is inside.
__all__ = [
    "bundle",
    "c",
    "contraction_report",
    "dispatch",
    "entries",
    "library",
]
