"""Pure functions over finished trials: the answer, ablation, mining, the nearest tasks."""
