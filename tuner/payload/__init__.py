"""A problem as MLIR text, as random arrays, and its expected result in float64."""
