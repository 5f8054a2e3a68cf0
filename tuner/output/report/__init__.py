"""A report as one page: values in, HTML and SVG out."""

RUNS_SHOWN = 20  # unless more are asked for
