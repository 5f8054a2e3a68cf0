"""Launches of which the simulated GPU runs some blocks, and a reference computes the others."""
