"""Queries of the results database: best trials, past runs, differences, regression checks, reports."""

# What other packages may import; the rest is inside.
__all__ = [
    "best_trials",
    "database",
    "database_name",
    "differences",
    "explanations",
    "exported_trial",
    "output",
    "past_runs",
    "portfolio",
    "regression",
    "report",
    "script_stages",
]
