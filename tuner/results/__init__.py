"""Queries of the results database: best trials, past runs, differences, regression checks, reports."""

# What other packages may import; the rest is inside.
__all__ = [
    "best_trials",
    "constraint_suggestions",
    "database",
    "database_name",
    "differences",
    "explanations",
    "exported_trial",
    "output",
    "past_runs",
    "portfolio",
    "queries",
    "regression",
    "report",
    "script_stages",
    "tuned_range",
]
