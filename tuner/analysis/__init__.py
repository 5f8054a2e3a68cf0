"""Pure functions over finished trials: selected result, ablation, constraint mining, nearest tasks."""

# What other packages may import; the rest is inside.
__all__ = [
    "constraint_mining",
    "dispatch",
    "importance",
    "portfolio",
    "ratios",
    "scheduler",
    "selected_result",
    "slowdown",
    "time_matrix",
    "warm_start",
]
