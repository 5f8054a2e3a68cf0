"""Calls with arrays of any size: which tuned kernel, or the baseline, computes them."""
