"""Tuning runs and campaigns: settings, search, final re-measurement, selected result."""

# What other packages may import; the rest is inside.
__all__ = [
    "budget",
    "campaign",
    "events",
    "missing_cells",
    "pool",
    "pretuned",
    "request",
    "rule",
    "run",
    "run_steps",
    "tuned_run",
    "untuned",
]
