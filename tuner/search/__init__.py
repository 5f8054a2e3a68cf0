"""Search methods over a feasible set, and the cost models that rank configurations first."""
