"""`make gpu-check`: everything that a GPU has to prove, in child processes, within eight minutes."""
