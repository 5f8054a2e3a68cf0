"""Pure functions over finished trials: selected result, ablation, constraint mining, nearest tasks."""
