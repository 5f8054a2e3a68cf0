"""Groups of runs: many problems tuned under one budget, each as a run of its own."""
