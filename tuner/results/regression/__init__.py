"""Regression checks of stored results, measured again: still as fast, still correct."""
