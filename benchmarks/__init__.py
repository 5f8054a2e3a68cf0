"""What is timed, never a test: run by hand on a quiet machine, committed with its description."""
