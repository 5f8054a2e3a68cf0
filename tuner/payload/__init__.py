"""A problem as MLIR text, as random arrays, and its float64 answer."""
