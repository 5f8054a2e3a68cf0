"""How much a report shows."""

RUNS_SHOWN = 20  # unless more are asked for
