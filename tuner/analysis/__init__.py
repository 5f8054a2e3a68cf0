"""Computations on measured trials, without I/O: selected result, ratios, importance, portfolios, budgets."""

# What other packages may import; the rest is inside.
__all__ = [
    "constraint_mining",
    "importance",
    "portfolio",
    "ratios",
    "scheduler",
    "selected_result",
    "slowdown",
    "time_matrix",
    "warm_start",
]
