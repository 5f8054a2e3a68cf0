"""Regression checks of stored results, measured again: still as fast, still correct."""

# What other packages may import; the rest is inside.
__all__ = ["audit", "gate", "script_check"]
