"""Whole programs: compiled, run, compared, timed, tuned."""
