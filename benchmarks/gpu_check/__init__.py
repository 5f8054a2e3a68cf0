"""`make gpu-check`: all checks that need a GPU, in child processes, within eight minutes."""
