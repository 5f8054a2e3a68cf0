"""Computations on trials, without I/O: results, ratios, importance, constraints, portfolios, scheduling."""

# What other packages may import; the rest is inside.
__all__ = [
    "constraint_mining",
    "coverage",
    "importance",
    "portfolio",
    "ratios",
    "row_ranges",
    "scheduler",
    "selected_result",
    "slowdown",
    "time_matrix",
    "warm_start",
]
