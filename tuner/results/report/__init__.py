"""A report of runs and best trials as one HTML page with SVG plots."""

RUNS_SHOWN = 20  # by default

# What other packages may import; the rest is inside.
__all__ = ["page"]
