"""Knobs, constraints, the feasible set and its rows."""
