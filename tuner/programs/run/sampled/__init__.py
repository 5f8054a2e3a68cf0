"""Launches on the simulated GPU of which some blocks run, and a reference does the rest."""
