"""Tuning runs and campaigns, dispatch rules and shipped results, and choices without a search."""

# What other packages may import; the rest is inside.
__all__ = [
    "budget",
    "campaign",
    "events",
    "missing_cells",
    "pool",
    "pretuned",
    "remeasurement",
    "request",
    "rule",
    "run",
    "run_steps",
    "tuned_run",
    "untuned",
]
