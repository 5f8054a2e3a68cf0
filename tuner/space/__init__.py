"""Knobs, constraints, and the feasible set of configurations."""
